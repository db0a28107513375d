"""The workers of a run: their pools, what a session is sent, and how long it may take."""
