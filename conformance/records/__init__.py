"""What a run leaves behind: outcomes, records, and strict JSON."""
