"""Calls about the releases of a provider."""
