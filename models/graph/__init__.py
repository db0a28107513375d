"""The graph of a model: its values, its wiring, and subgraphs."""
