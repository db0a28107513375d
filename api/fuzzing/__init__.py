"""Cases that nobody wrote."""
