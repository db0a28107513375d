"""Descriptions of the family attention: attention."""
