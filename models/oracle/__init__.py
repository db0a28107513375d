"""The true values of a whole model."""
