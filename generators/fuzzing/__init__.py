"""Nodes that nobody wrote down: drawn from the declarations of the operators, judged by their oracles, made smaller."""
