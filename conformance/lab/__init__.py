"""The real DirectML provider on Linux, in a private folder."""
