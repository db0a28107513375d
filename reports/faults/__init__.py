"""What a night's search for faults found, in the reports of the night."""
