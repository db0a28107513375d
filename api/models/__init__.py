"""Calls about whole models: validation, reduction, the zoo."""
