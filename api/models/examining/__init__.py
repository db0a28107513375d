"""Examination of strangers' models in processes of their own."""
