"""The search for wrong nodes, and reduction: which node of a model is wrong, and the smallest part that shows it."""
