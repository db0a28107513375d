"""Descriptions of the family normalization: normalizations."""
