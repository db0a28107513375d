"""The family movement: data movement."""
