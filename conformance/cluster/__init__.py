"""Runs on a cluster of machines."""
