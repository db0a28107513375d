"""The rows of the table: what each runs, and what is promised of their rates."""
