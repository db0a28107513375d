"""Whole models: inspection, placement, validation, bisection, reduction, and a zoo."""
