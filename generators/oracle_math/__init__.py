"""Arithmetic that several oracles share: windows, interpolation, quantisation, activations."""
