"""Resize and Upsample."""
