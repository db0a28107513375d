"""The graph of a model: values, wiring, parts of it."""
