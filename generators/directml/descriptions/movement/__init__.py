"""Descriptions of the family movement: data movement."""
