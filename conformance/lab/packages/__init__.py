"""What the lab is made of: Debian packages, Python wheels, and their pinned versions."""
