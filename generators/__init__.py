"""Operators: cases, oracles, bounds of errors, DirectML operator descriptions. `operators/` has the recipe for one."""
