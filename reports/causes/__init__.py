"""Causes: which cases are not right for one reason, under which condition on the node, and with which symptom."""
