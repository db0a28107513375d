"""A model changed so that a provider takes it and computes it right: every change that was tried and helps, applied."""
