"""Calls about this machine: the cache and the DirectML lab."""
