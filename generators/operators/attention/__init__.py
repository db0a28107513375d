"""The family attention: attention."""
