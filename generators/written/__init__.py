"""Nodes as text: what a fuzzer found, and what stands in models of users, as cases like any other."""
