"""Whole models: inspection, placement, validation, the search for wrong nodes, reduction, and a zoo."""
