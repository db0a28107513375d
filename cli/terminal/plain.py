"""Text from strangers (names in models, messages of native libraries) made fit for the terminal."""

from __future__ import annotations

from rich.markup import escape

from epcheck.models.validation.names import shortened

MESSAGE = 600
"""Characters of a sentence about a model in the terminal."""


def printable(text: str) -> str:
    """The text on one line, control characters as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def safe(text: str) -> str:
    """The text on one line, without markup of rich's."""
    return escape(printable(text))


def brief(text: str, most: int = MESSAGE) -> str:
    """As `safe`, with long names cut, of at most so many characters; for what a page and a JSON document have whole."""
    shown = shortened(text)
    if len(shown) <= most:
        return safe(shown)
    return safe(f"{shown[:most]} … ({len(text)} characters; the page, and --json FILE, have all)")
