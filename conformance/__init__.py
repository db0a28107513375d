"""Conformance runs: targets, workers, scheduling, judging, records, expectations, and the DirectML lab."""
