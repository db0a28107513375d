"""Outputs compared with the truth: exactly, in ULP, by quantisation steps, as a selection."""
