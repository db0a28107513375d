"""A store of many runs."""
