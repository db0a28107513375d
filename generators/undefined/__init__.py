"""Nodes, or elements of their results, for which the standard defines nothing."""
