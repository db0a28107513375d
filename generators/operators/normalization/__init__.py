"""The family normalization: normalizations."""
