"""Descriptions of the family resampling: resampling."""
