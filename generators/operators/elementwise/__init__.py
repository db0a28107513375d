"""The family elementwise: element-wise functions of one input."""
