"""All-pairs designs: every pair that is valid, and few rows."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

from epcheck.generators.sources.pairwise import Row, all_pairs

CHOICES: dict[str, tuple[Any, ...]] = {"a": (0, 1, 2), "b": ("x", "y"), "c": (None, (1, 2)), "d": (0, 1, 2, 3)}


def pairs_of(rows: tuple[Row, ...]) -> set[tuple[Any, ...]]:
    return {((p, row[p]), (q, row[q])) for row in rows for p, q in combinations(row, 2)}


def every_row() -> tuple[Row, ...]:
    return tuple(dict(zip(CHOICES, values, strict=True)) for values in product(*CHOICES.values()))


def test_every_pair_is_in_a_row_and_the_first_row_is_the_usual_one() -> None:
    rows = all_pairs(CHOICES, lambda _: True)
    assert rows[0] == {"a": 0, "b": "x", "c": None, "d": 0}
    assert pairs_of(rows) == pairs_of(every_row())
    assert 12 <= len(rows) <= 16 < len(every_row()) == 48
    assert rows == all_pairs(CHOICES, lambda _: True)


def test_rows_that_are_not_valid_are_left_out_and_so_are_pairs_that_only_they_have() -> None:
    def is_valid(row: Row) -> bool:
        return not (row["a"] == 2 and row["b"] == "y") and row["d"] != 3

    rows = all_pairs(CHOICES, is_valid)
    assert all(map(is_valid, rows))
    assert pairs_of(rows) == pairs_of(tuple(filter(is_valid, every_row())))


def test_one_parameter_or_none_has_all_its_values() -> None:
    assert all_pairs({"a": (1, 2)}, lambda _: True) == ({"a": 1}, {"a": 2})
    assert all_pairs(CHOICES, lambda _: False) == ()
