"""Calls about the suite: listing cases, running and judging them, reproducing them, coverage, expectations."""
