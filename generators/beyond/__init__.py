"""Ranks beyond those that providers take."""
