"""All-pairs designs: few rows, in which any two values of two parameters occur together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

Row = Mapping[str, Any]


def all_pairs(choices: Mapping[str, Sequence[Any]], is_valid: Callable[[Row], bool]) -> tuple[Row, ...]:
    """Rows in a stable order that begins with the first value of each parameter: every pair of values of two parameters
    that some valid row has is in one of them. Each next row is the first of those that have most pairs that are new."""
    names = tuple(choices)
    rows = [dict(zip(names, values, strict=True)) for values in product(*choices.values())]
    valid = [row for row in rows if is_valid(row)]
    if not valid or len(names) < 2:
        return tuple(valid)
    table = np.array([[list(choices[name]).index(row[name]) for name in names] for row in valid])
    columns = [table[:, i] * len(choices[names[j]]) + table[:, j] for i, j in combinations(range(len(names)), 2)]
    missing = [np.isin(np.arange(column.max() + 1), column) for column in columns]
    found: list[int] = []
    chosen = 0
    while True:
        found.append(chosen)
        for column, absent in zip(columns, missing, strict=True):
            absent[column[chosen]] = False
        gain = np.sum([absent[column] for column, absent in zip(columns, missing, strict=True)], axis=0)
        chosen = int(gain.argmax())
        if not gain[chosen]:
            return tuple(valid[index] for index in found)
