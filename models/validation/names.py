"""Names of nodes and values as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterator

LONGEST = 120
"""Characters of a name that are shown whole. Exporters write paths of modules, which are shorter; generated names may
have thousands."""

FIRST, LAST = 70, 40
"""Characters that are shown of a longer one, at its beginning and at its end: there siblings differ."""

WORD = re.compile(r"(?P<open>`)(?P<name>[^`]*)(?P<close>`)|(?P<word>[^`\s]+)|(?P<rest>\s+|`)")
"""A name between backticks, as that of a node in a sentence; a word; what is between them."""


def shorten_words(text: str, longest: int = LONGEST) -> str:
    """The text with an ellipsis in the middle of each word of more than `longest` characters. A name between backticks
    is one word, whatever is in it."""
    return "".join(shown for shown, _ in parts(text, longest))


def parts(text: str, longest: int = LONGEST) -> Iterator[tuple[str, str]]:
    """The text in parts: each as it is shown, and a word that is too long whole; empty for all others."""
    for word in filter(None, (part for found in WORD.finditer(text) for part in found.groups())):
        yield (f"{word[:FIRST]}…{word[-LAST:]}", word) if len(word) > longest else (word, "")
