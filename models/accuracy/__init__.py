"""How far values are apart, and how far they may be."""
