"""Whole models in sessions of a target."""
