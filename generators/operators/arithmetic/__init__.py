"""The family arithmetic: arithmetic, comparison and casts."""
