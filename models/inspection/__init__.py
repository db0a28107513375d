"""Inspection: what the file of a model says, without running it."""
