"""Delta debugging: A. Zeller, R. Hildebrandt, Simplifying and isolating failure-inducing input, IEEE TSE 28(2),
2002."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def minimize(items: Sequence[int], fails: Callable[[tuple[int, ...]], bool]) -> tuple[int, ...]:
    """The part of failing `items` that is left when no single item can be removed. Halves are removed first, then
    quarters, down to single items.

    fails: whether a part, in its order and never empty, fails in the same way. It is called once for each part.
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
