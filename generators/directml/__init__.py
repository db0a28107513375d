"""DirectML operator descriptions."""
