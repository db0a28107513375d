"""Descriptions of the family elementwise: element-wise functions of one input."""
