"""The folder of a run, and the files that are made of it."""
