"""The smallest set of nodes that has to stay in float32, by running the model with one set after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from epcheck.models.wrong_nodes.delta_debugging import minimize
from epcheck.models.wrong_nodes.search import LimitsReached

BOTH_WAYS = 24
"""Nodes up to which a set is made smaller from its end as well: which single nodes are left depends on the order."""


@dataclass(frozen=True)
class SmallestSet:
    """nodes: in the order of the graph. is_minimal: whether the fault comes back without any single one of them; False
    where search limit reached before that was tried."""

    nodes: tuple[int, ...]
    is_minimal: bool


def smallest_set(
    suspects: Sequence[int], others: Sequence[int], is_right: Callable[[Collection[int]], bool]
) -> SmallestSet | None:
    """The set of nodes with which the model is right; None where it is not even with all of them.

    suspects: tried first, all at once. others: taken in by and by, in this order. is_right: whether the model is, with
    these nodes in float32; it may raise LimitsReached, then the smallest set so far is the result, or it is raised on
    where there is none.
    """
    known: dict[frozenset[int], bool] = {}
    best: list[tuple[int, ...]] = []

    def try_nodes(nodes: Sequence[int]) -> bool:
        key = frozenset(nodes)
        if key not in known:
            known[key] = is_right(sorted(key))
        if known[key] and (not best or len(key) < len(best[0])):
            best[:] = [tuple(sorted(key))]
        return known[key]

    try:
        start = _enough(suspects, others, try_nodes)
        if start is None:
            return None
        minimize(start, try_nodes)
        if len(best[0]) > 1 and len(start) <= BOTH_WAYS:
            minimize(start[::-1], try_nodes)
    except LimitsReached:
        if not best:
            raise
        return SmallestSet(best[0], is_minimal=False)
    return SmallestSet(best[0], is_minimal=True)


def _enough(
    suspects: Sequence[int], others: Sequence[int], is_right: Callable[[Sequence[int]], bool]
) -> tuple[int, ...] | None:
    """The suspects, with twice as many nodes each time, until the model is right."""
    everything = tuple(dict.fromkeys((*suspects, *others)))
    count = len(suspects) or 1
    if not is_right(everything):
        return None
    while count < len(everything):
        if is_right(everything[:count]):
            return everything[:count]
        count *= 2
    return everything
