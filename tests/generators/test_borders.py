"""Lengths and special values that are made by rule, and the faults that they show and other samples do not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from epcheck.conformance.comparison import compare
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.families import borders
from epcheck.generators.truth import Outputs

LENGTHS = {f"length_{size}" for size in borders.SIZES}


@cache
def built(operator: str) -> tuple[BuiltCase, ...]:
    """The cases of an operator's newest version in float32."""
    cases = list(suite.cases([operator], ["float32"]))
    newest = max(case.since_version for case in cases)
    own = [case.build() for case in cases if case.since_version == newest and not case.sample.startswith("graph_")]
    return tuple(case for case in own if isinstance(case.truth, Outputs))


def is_rule_made(case: BuiltCase) -> bool:
    return case.case.sample in LENGTHS or case.case.sample.startswith("special_tail_of_")


def tells(case: BuiltCase, size: int) -> bool:
    """Whether a provider is caught whose results of one size end with a 7."""
    assert isinstance(case.truth, Outputs)
    (output,) = case.truth.outputs
    if output.value.size != size:
        return False
    wrong = output.value.copy()
    wrong.reshape(-1)[-1] = 7
    return not compare.are_right(case.truth, {output.name: wrong})


@pytest.mark.parametrize("operator", ["Exp", "HardSwish", "Add"])
def test_a_fault_at_one_size_is_seen_at_each_border(operator: str) -> None:
    before = {size for size in borders.SIZES if any(tells(c, size) for c in built(operator) if not is_rule_made(c))}
    now = {size for size in borders.SIZES if any(tells(c, size) for c in built(operator))}
    assert now == set(borders.SIZES)
    assert len(before) <= 5


def test_special_values_stand_first_and_after_the_last_vector() -> None:
    for width in borders.WIDTHS:
        values = borders.add_tail(np.ones(borders.tail_shape(width), np.float32), np.array([np.nan, np.inf], "f4"))
        special = np.flatnonzero(~np.isfinite(values)).tolist()
        assert special == [0, 2 * width, 2 * width + 1, 2 * width + 2]
        assert values.size // width == 2


def test_the_widths_end_with_other_values() -> None:
    kinds = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)
    lasts = [borders.add_tail(np.ones(borders.tail_shape(width), np.float32), kinds)[-1] for width in borders.WIDTHS]
    assert len({str(value) for value in lasts}) >= 2


def test_a_kernel_that_reads_nan_as_0_in_the_rest_of_a_vector_is_caught() -> None:
    rests = [case for case in built("Exp") if case.case.sample.startswith("special_tail_of_")]
    caught = []
    for case in rests:
        assert isinstance(case.truth, Outputs)
        (output,) = case.truth.outputs
        wrong = output.value.copy()
        wrong[-borders.REST :] = np.nan_to_num(wrong[-borders.REST :], nan=1.0, posinf=np.inf)
        caught.append(not compare.are_right(case.truth, {output.name: wrong}))
    assert len(caught) == 3
    assert any(caught)
