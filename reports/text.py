"""Text from strangers (names in models, messages of native libraries) made fit to be shown."""

from __future__ import annotations

import re
from collections.abc import Sequence

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, but not tab and newline
    "\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"  # of no width, or turning the direction of writing
    "\ufffe\uffff\ud800-\udfff]"  # not characters at all
)


def visible(text: str) -> str:
    """Control characters, invisible and direction-changing ones written out (`\\x00`, `\\u202e`); tab and newline stay.

    What comes out is legal in UTF-8, HTML (escaped as ever) and XML 1.0.
    """
    if text.isascii() and text.isprintable():  # nearly all
        return text
    return _INVISIBLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def moment(iso: str) -> str:
    """`2025-01-02T03:04:05Z` as people read it; what is no such time stays as it is."""
    found = re.match(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$", iso)
    return f"{found[1]} {found[2]} UTC" if found else iso


def format_share(share: float) -> str:
    """`98.2 %`; what is not all is never rounded to 100 %."""
    return "100 %" if share == 1 else f"{min(share, 0.9999):.2%}".replace("%", " %")


def format_count(number: int, singular: str, plural: str = "") -> str:
    """`1 case`, `1,204 cases`."""
    return f"{number:,} {singular}" if number == 1 else f"{number:,} {plural or f'{singular}s'}"


def format_list(names: Sequence[str], last: str = "and") -> str:
    """`driver, runtime and OS`; empty for no names. last: stands before the last name."""
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def as_sentence(words: str) -> str:
    """With a capital letter and a full stop; empty for no words."""
    return f"{words[0].upper()}{words[1:]}." if words else ""
