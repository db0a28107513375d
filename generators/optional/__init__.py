"""Combinations of the optional inputs and of the optional outputs of operators."""
