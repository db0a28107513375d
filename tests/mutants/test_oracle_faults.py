"""Every operator's oracle, broken in one way, makes some of its cases fail: the faults are in `faults/`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from fault import Fault, outputs_of

from epcheck.conformance.comparison import compare
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.truth import Outputs, Selection

FAMILIES = sorted(path.stem for path in Path(__file__).parent.glob("faults/*.py"))
FAULTS: list[Fault] = [fault for family in FAMILIES for fault in import_module(f"faults.{family}").FAULTS]
BY_OPERATOR = {key: [f for f in FAULTS if f.operator == key] for key in dict.fromkeys(f.operator for f in FAULTS)}


@cache
def built_cases(operator: str) -> tuple[BuiltCase, ...]:
    return tuple(case.build() for case in suite.cases([operator]))


def caught_by(fault: Fault) -> Iterator[str]:
    """The cases that fail under the fault; an answer to what must be refused is no failure here."""
    for built in built_cases(fault.operator):
        if not isinstance(built.truth, Outputs | Selection):
            continue
        try:
            with np.errstate(all="ignore"):
                answer = fault.answer(built)
        except (ValueError, IndexError, KeyError, AssertionError, TypeError, ZeroDivisionError):
            continue  # the misread node has no meaning: no answer to compare
        if answer is None or compare.differences(built.truth, answer):
            yield built.case.id


def test_no_fault_is_there_twice() -> None:
    assert len({(f.operator, f.what) for f in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("operator", BY_OPERATOR)
def test_the_truth_itself_passes(operator: str) -> None:
    for built in built_cases(operator):
        if isinstance(built.truth, Outputs | Selection):
            right = outputs_of(built.truth)
            assert right is not None
            assert not compare.differences(built.truth, right), built.case.id


@pytest.mark.parametrize("operator", BY_OPERATOR)
def test_every_fault_is_caught(operator: str) -> None:
    missed = [fault.what for fault in BY_OPERATOR[operator] if not any(True for _ in caught_by(fault))]
    assert missed == [], f"{operator}: no case fails under: {missed}"
