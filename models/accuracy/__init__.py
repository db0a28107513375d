"""Accuracy of whole models: how far two values are apart, and how far they may be."""
