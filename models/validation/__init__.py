"""Validation: all answers about one model, as data and as a page."""
