"""What the terminal prints: text in which every character shows as what it is, whatever a stranger wrote.

`text` alone makes a `Text`, and `terminal.py` prints nothing else. No markup is read anywhere: a style is beside the
words, not in them.
"""

from __future__ import annotations

import re
from typing import NewType

import rich.text

from epcheck.models.validation.names import shorten_words

MESSAGE = 600
"""Characters of a sentence about a model in the terminal."""

Text = NewType("Text", rich.text.Text)
"""Styled text on one line."""

Part = str | tuple[str, str] | Text
"""Words, from anybody; words with a style of rich's; what `text` made."""

_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing, though `str.isprintable` holds for them: Default_Ignorable_Code_Point of
Unicode's DerivedCoreProperties.txt, and the blank of Braille."""


def printable(words: str) -> str:
    """The words on one line. Controls, escape sequences, characters that turn the direction of writing or show nothing,
    and halves of surrogate pairs are written as Python writes them: `\\x1b`, `\\u202e`, `\\ud800`."""
    if words.isascii() and words.isprintable():  # nearly all
        return words
    shown = "".join(c if c.isprintable() else _escape_character(c) for c in words)
    return _IGNORABLE.sub(lambda found: _escape_character(found[0]), shown)


def _escape_character(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def text(*parts: Part, style: str = "") -> Text:
    """The parts, one behind the other. style: of them all, beside their own."""
    made = rich.text.Text(style=style)
    for part in parts:
        if isinstance(part, rich.text.Text):
            made.append_text(part)
        elif isinstance(part, str):
            made.append(printable(part))
        else:
            made.append(printable(part[0]), part[1])
    return Text(made)


def cut(words: str, most: int) -> str:
    """The words on one line, of at most so many characters and an ellipsis."""
    shown = printable(words)
    return shown if len(shown) <= most else f"{shown[:most]}…"


def brief(words: str, most: int = MESSAGE) -> str:
    """The words with long names cut, of at most so many characters; for what a page and a JSON document have whole."""
    shown = printable(shorten_words(words))
    if len(shown) <= most:
        return shown
    return f"{shown[:most]} … ({len(words)} characters; full text: the page, or --json FILE)"
