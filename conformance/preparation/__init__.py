"""Preparation: a case becomes a prepared case, and prepared cases become packs."""
