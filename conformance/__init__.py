"""Targets, workers, running, judging, expectations, the command line and the pytest plugin."""
