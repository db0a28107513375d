"""Calls about whole models."""
