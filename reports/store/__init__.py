"""The store: a folder with one Parquet file for each run, its queries and its maintenance."""
