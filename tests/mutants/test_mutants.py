"""Whether the suite finds faults: providers that are wrong in one way, each caught by at least one case."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from epcheck.conformance.comparison import compare
from epcheck.conformance.records import record
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.specification import resolve
from epcheck.generators import registry, suite
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.graphs.graph_sample import KINDS
from epcheck.generators.truth import Refusal
from tests.mutants.mutant import Answer, Mutant, implemented

ROOT = Path(__file__).parents[2]
FILES = sorted(ROOT.glob("tests/mutants/faults/*/*.py"))
MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES]
MUTANTS: list[Mutant] = [mutant for module in MODULES for mutant in import_module(module).MUTANTS]
OPERATORS = list(dict.fromkeys(mutant.operator for mutant in MUTANTS))
IMPLEMENTED = {
    "Slice": ("tests.mutants.faults.movement.slice", "INDEX_0_NEVER_COPIED", "whole_axis_step_minus_1"),
    "TopK": ("tests.mutants.faults.reduction.topk", "HIGHER_INDEX_FIRST", "ties_largest"),
    "QLinearConv": ("tests.mutants.faults.quantized.qlinearconv", "FIRST_SCALE_FOR_ALL", "per_channel"),
}
"""Operators with an implementation of their own: its module, the name of a mutant in it, and the sample that tells."""

UNREAD = {"undefined", "optional", "beyond", *KINDS}
"""Cases of which the truth of their operator does not say all: of a graph that ends with it, of what is undefined, of
outputs that are not asked for."""

NO_MEANING = (ValueError, IndexError, KeyError, AssertionError, TypeError, ZeroDivisionError)
"""What a truth raises for a misread node that has no meaning: there is no answer to compare."""


@cache
def cases(operator: str) -> tuple[Case, ...]:
    """Of single nodes, all of which the truth of their operator defines."""
    return tuple(case for case in suite.cases([operator]) if case.kind not in UNREAD)


@cache
def built(case: Case) -> BuiltCase:
    """Most mutants are caught by the first cases of their operator: the others need not be built."""
    return case.build()


def is_wrong(answer: Answer, case: BuiltCase) -> bool:
    """Whether the case tells: another output than the truth allows, a refusal or none against the truth."""
    with np.errstate(all="ignore"):
        outputs = answer(case)
    if isinstance(case.truth, Refusal):
        return outputs is not None
    return outputs is None or not compare.are_right(case.truth, outputs)


def caught_by(mutant: Mutant) -> Iterator[str]:
    """The cases that tell the mutant, out of the one it names or of all its operator's."""
    for case in (suite.case_by_id(mutant.caught_by),) if mutant.caught_by else cases(mutant.operator):
        try:
            if is_wrong(mutant.answer, built(case)):
                yield case.id
        except NO_MEANING:
            continue


def test_no_mutant_is_there_twice() -> None:
    assert len({(mutant.operator, mutant.fault) for mutant in MUTANTS}) == len(MUTANTS)


def test_every_operator_has_mutants() -> None:
    assert set(registry.all_operators()) - set(OPERATORS) == set()


def test_no_mutant_is_lost() -> None:
    assert len(MUTANTS) >= 1141
    assert {
        operator: sum(bool(m.caught_by) for m in MUTANTS if m.operator == operator) for operator in IMPLEMENTED
    } == {
        "Slice": 34,
        "TopK": 41,
        "QLinearConv": 57,
    }


@pytest.mark.slow
@pytest.mark.parametrize("operator", IMPLEMENTED)
def test_an_implementation_without_a_fault_is_right(operator: str) -> None:
    correct = implemented(operator, "none", import_module(IMPLEMENTED[operator][0]).CORRECT, "")
    assert [case.id for case in cases(operator) if is_wrong(correct.answer, built(case))] == []


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_mutant_is_caught(operator: str) -> None:
    """By the case that it names, or by any of its operator's."""
    missed = [m.fault for m in MUTANTS if m.operator == operator and not any(True for _ in caught_by(m))]
    assert missed == [], f"{operator}: no case fails under: {missed}"


@pytest.mark.slow
@pytest.mark.parametrize("operator", IMPLEMENTED)
def test_a_mutant_is_caught_and_blamed_as_a_target_of_the_runner(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a user: `--ep python:module:function`, a worker, the runner, the judge, a record."""
    monkeypatch.chdir(ROOT)
    module, name, sample = IMPLEMENTED[operator]
    case = next(case for case in suite.cases([operator]) if case.sample == sample and case.since_version >= 10)
    right, wrong = resolve(f"python:{module}:CORRECT"), resolve(f"python:{module}:{name}")
    records: list[record.Record] = []
    run_plan(Plan((case,), (wrong,), baseline=right), records.append)
    (found,) = records
    assert (found.case_id, found.status, found.blame, found.reading) == (case.id, "mismatch", "candidate", "failure")
    assert found.candidate.attempts == 2
    assert found.baseline is not None
    assert found.baseline.status == "pass"
    assert found.reason.endswith(f"python:{module}:CORRECT is right")
