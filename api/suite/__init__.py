"""Calls about the suite: listing, running, judging, reproducing."""
