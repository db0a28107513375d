"""Arithmetic that several oracles share."""
