"""Calls about runs that are over: reports, comparisons, stores."""
