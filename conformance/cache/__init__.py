"""What is computed once on a machine and kept for later runs."""
