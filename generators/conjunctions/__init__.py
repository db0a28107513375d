"""Nodes in which several conditions meet that a kernel may get right one at a time."""
