"""Commands about whole models."""
