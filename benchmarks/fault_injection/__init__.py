"""Models with one wrong node: where the fault is, the target that has it, and Polygraphy on the same models."""
