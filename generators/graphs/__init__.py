"""Graphs of several nodes: what is right of each value, and the fixed graphs of the suite."""
