"""What a user does, as one documented call each; no terminal in it."""
