"""Targets, their environments, and what is expected of them."""
