"""Calls about runs that have ended: their results, reports, comparisons, merging, the store and trends."""
