"""The family matmul: matrix products."""
