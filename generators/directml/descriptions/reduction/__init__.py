"""Descriptions of the family reduction: reductions, sorting and scans."""
