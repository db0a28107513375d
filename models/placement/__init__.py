"""Placement: on which provider each node of a model runs, and why."""
