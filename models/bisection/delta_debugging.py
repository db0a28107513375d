"""The smallest part that still fails: delta debugging (A. Zeller, R. Hildebrandt, Simplifying and isolating
failure-inducing input, IEEE TSE 28(2), 2002), by leaving parts out."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def shrink(items: Sequence[int], fails: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """A part of `items`, which fail, from which no single one can be left out: halves are tried first, then quarters.

    fails: whether a part, in its order and never empty, fails in the same way; it is asked once about each.
    """
    kept, size = tuple(items), max(1, len(items) // 2)
    known: dict[tuple[int, ...], bool] = {}
    while True:
        before, start = len(kept), 0
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if rest and rest not in known:
                known[rest] = fails(rest)
            if known.get(rest):
                kept = rest
            else:
                start += size
        if size == 1 and len(kept) == before:
            return kept
        size = max(1, size // 2)
