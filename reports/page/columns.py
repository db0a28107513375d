"""JSON values that are much alike, turned into columns: what they share is written once, and the rest compresses well.

The page turns columns back into values (`expand` in page_data.js). A column of n values is one of

    {"=": value}                 n times the same
    {"v": [...]}                 the values themselves
    {"d": [...], "i": [...]}     texts that repeat: each once, and which one stands where
    {"o": {key: column, ...}}    objects with these keys, in this order
    {"a": [column, ...]}         lists of that length
    {"?": column, "g": [...]}    values of several kinds: which kind stands where, and a column of each
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

REPEATED = 0.7
"""Texts are written once each when no more than this share of them are different."""

Column = dict[str, Any]


def column(values: Sequence[Any]) -> Column:
    """The column of these values, of which there is at least one."""
    types = set(map(type, values))
    if types.isdisjoint((dict, list)):
        return _scalars(values, types)
    kinds: dict[Any, list[Any]] = {}
    which = [_kind(value) for value in values]
    for kind, value in zip(which, values, strict=True):
        kinds.setdefault(kind, []).append(value)
    if len(kinds) == 1:
        return _alike(which[0], values)
    numbers = {kind: number for number, kind in enumerate(kinds)}
    return {
        "?": _scalars([numbers[kind] for kind in which], {int}),
        "g": [_alike(kind, members) for kind, members in kinds.items()],
    }


def _kind(value: Any) -> Any:
    """Equal for values that make one column: the keys of an object, the length of a list, None for what is neither."""
    if isinstance(value, dict):
        return tuple(value)
    return len(value) if isinstance(value, list) else None


def _alike(kind: Any, values: Sequence[Any]) -> Column:
    if kind is None:
        return _scalars(values, set(map(type, values)))
    if isinstance(kind, int):
        return {"a": [column([value[i] for value in values]) for i in range(kind)]}
    return {"o": {key: column([value[key] for value in values]) for key in kind}}


def _scalars(values: Sequence[Any], types: set[type]) -> Column:
    if len(types) == 1 and _same(values):
        return {"=": values[0]}
    if types == {str}:
        places = {text: place for place, text in enumerate(dict.fromkeys(values))}
        if len(places) <= REPEATED * len(values):
            return {"d": list(places), "i": [places[text] for text in values]}
    return {"v": list(values)}


def _same(values: Sequence[Any]) -> bool:
    """For values of one type; 0.0 and -0.0 are not the same."""
    first = values[0]
    return values.count(first) == len(values) and not (
        type(first) is float and first == 0 and len(set(map(repr, values))) > 1
    )
