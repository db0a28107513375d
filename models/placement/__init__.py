"""On which provider each node runs, and why."""
