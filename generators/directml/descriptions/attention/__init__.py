"""Descriptions of the family attention: multi-head attention."""
