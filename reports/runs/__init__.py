"""The run folder, and what is made from its journal: summary, JSON, JUnit XML, Parquet."""
