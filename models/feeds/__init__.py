"""Inputs for a model: made from a seed, or read from files."""
