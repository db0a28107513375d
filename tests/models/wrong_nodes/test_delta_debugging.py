"""Leaving out what can be left out."""

from __future__ import annotations

import pytest

from epcheck.models.wrong_nodes.delta_debugging import minimize


@pytest.mark.parametrize("needed", [{0}, {63}, {20, 21}, {3, 40, 63}, set(range(64))])
def test_what_is_left_is_what_is_needed(needed: set[int]) -> None:
    assert set(minimize(range(64), lambda part: needed <= set(part))) == needed


def test_each_part_is_tried_once() -> None:
    tried: list[tuple[int, ...]] = []

    def fails(part: tuple[int, ...]) -> bool:
        tried.append(part)
        return {5, 9} <= set(part)

    assert minimize(range(16), fails) == (5, 9)
    assert len(tried) == len(set(tried))
    assert len(tried) < 40


def test_a_single_item_stays() -> None:
    assert minimize([7], lambda _part: True) == (7,)
