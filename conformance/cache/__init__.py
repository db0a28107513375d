"""The cache: what is computed once on a machine and kept for later runs."""
