"""Nodes of whole models on the way to being cases of the suite: how each computes, and how its values are spread."""
