"""What arbitrary code in a jailed process tries, what of ours it is tried on, and how the code gets in."""
