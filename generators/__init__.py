"""Operators: cases, oracles, comparators and DirectML operator descriptions."""
