"""Runs on a cluster of machines: the client's side, and the side of a node."""
