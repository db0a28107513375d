"""The notes of a run, folded: what happened many times stands once, with how often."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_CASE = re.compile(r"\S+-\d+/\S+/\S+\[[\w-]+\]")
_NUMBER = re.compile(r"\b(?:0x[0-9a-fA-F]+|\d[\d,.]*)")


@dataclass(frozen=True)
class FoldedNote:
    """first: the first of the notes that say the same of different cases, processes or times. count: of them all."""

    first: str
    count: int

    def __str__(self) -> str:
        return self.first if self.count == 1 else f"{self.first} (and {self.count - 1:,} more like it)"


def fold_notes(notes: Iterable[str]) -> tuple[FoldedNote, ...]:
    """The notes without those that say the same but for case ids and numbers; what happened most often is last, since
    one that happened once says the most."""
    first: dict[str, str] = {}
    counts: dict[str, int] = {}
    for note in notes:
        stem = _NUMBER.sub("#", _CASE.sub("case", note))
        first.setdefault(stem, note)
        counts[stem] = counts.get(stem, 0) + 1
    return tuple(FoldedNote(first[stem], counts[stem]) for stem in sorted(counts, key=lambda stem: counts[stem]))
