"""Recipes: environments in which providers really run on any machine, made by one command."""
