"""The data of a run: its description, outcomes, opinions and records; and how they are read and written as JSON."""
