"""The order of Debian's version numbers (Debian Policy, 5.6.12; deb-version(7))."""

from __future__ import annotations

import re

Order = tuple[int, tuple[tuple[tuple[int, ...], int], ...], tuple[tuple[tuple[int, ...], int], ...]]


def order(version: str) -> Order:
    """Sorts versions: epoch, upstream version, revision. Raises ValueError for an epoch that is no number."""
    epoch, colon, rest = version.partition(":") if ":" in version else ("", "", version)
    upstream, dash, revision = rest.rpartition("-")
    return int(epoch) if colon else 0, _parts(upstream if dash else rest), _parts(revision if dash else "")


def _parts(text: str) -> tuple[tuple[tuple[int, ...], int], ...]:
    """What is no number and what is one, in turn: the first by character, the second by value."""
    pairs = re.findall(r"(\D*)(\d*)", text)
    return tuple(((*map(_weight, other), 0), int(digits or 0)) for other, digits in pairs)


def _weight(character: str) -> int:
    """`~` stands before the end, which is 0; letters before all else."""
    if character == "~":
        return -1
    return ord(character) + (0 if character.isalpha() else 256)
