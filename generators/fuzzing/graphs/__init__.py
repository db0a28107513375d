"""Graphs of several nodes: composed of drawn nodes, judged node by node, made smaller by leaving nodes out."""
