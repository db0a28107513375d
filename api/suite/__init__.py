"""Calls about the suite: listing, running, judging, showing and reproducing cases; coverage, expectations."""
