"""Execution of whole models in sessions of a target."""
