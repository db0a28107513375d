"""How far from the truth a floating-point result may be."""
