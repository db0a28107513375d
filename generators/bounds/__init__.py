"""Bounds: how far from the truth a floating-point result may be, and which source says so."""
