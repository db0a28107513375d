"""Descriptions of the family matmul: matrix products."""
