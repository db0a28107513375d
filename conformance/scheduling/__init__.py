"""Scheduling: which case runs when, in which worker, and how often."""
