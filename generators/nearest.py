"""Which of the known names an unknown one is probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MOST = 3
"""Names that a message suggests at most."""


def find_nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> tuple[str, ...]:
    """The known names that are written almost alike, the nearest first, MOST at most; one alone where only the case of
    letters differs. cutoff: the least similarity, from 0 to 1, as `difflib` measures it."""
    by_lower: dict[str, str] = {}
    for each in known:
        by_lower.setdefault(each.lower(), each)
    if name.lower() in by_lower:
        return (by_lower[name.lower()],)
    return tuple(by_lower[lower] for lower in get_close_matches(name.lower(), by_lower, MOST, cutoff))


def ask_if_meant(names: Sequence[str]) -> str:
    """`Did you mean Slice, Split or Size?`; empty where there is none."""
    if not names:
        return ""
    return f"Did you mean {' or '.join(filter(None, (', '.join(names[:-1]), names[-1])))}?"
