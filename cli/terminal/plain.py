"""Text from strangers (names in models, messages of native libraries) made fit for the terminal."""

from __future__ import annotations

from rich.markup import escape


def printable(text: str) -> str:
    """The text on one line, control characters as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def safe(text: str) -> str:
    """The text on one line, without markup of rich's."""
    return escape(printable(text))
