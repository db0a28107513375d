"""The family reduction: reductions, sorting and scans."""
