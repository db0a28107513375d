"""Whether the suite finds faults: implementations that are wrong in one way, each caught by a case named beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import qlinearconv_mutants
import slice_mutants
import topk_mutants
from one_node import Array, Implementation, Mutant

from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records import record, terms
from epcheck.conformance.records.outcome import DONE, FAILED, Outcome
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets.target import Target, resolve
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase

OPERATORS: dict[str, Any] = {"Slice": slice_mutants, "TopK": topk_mutants, "QLinearConv": qlinearconv_mutants}
ALL = [(operator, mutant) for operator, module in OPERATORS.items() for mutant in module.MUTANTS.values()]
CALLABLE = Target("implementation", (), ())


@cache
def built_cases(operator: str) -> tuple[BuiltCase, ...]:
    return tuple(case.build() for case in suite.cases([operator]))


def failures(implementation: Implementation, operator: str) -> dict[str, str]:
    """case id -> why, for every case of the operator that the implementation does not pass."""
    opinions = {
        built.case.id: opinion(prepared_case.of(built), CALLABLE, outcome(implementation, built))
        for built in built_cases(operator)
    }
    return {case: f"{o.status}: {o.message}" for case, o in opinions.items() if o.status != terms.PASS}


def outcome(implementation: Callable[[bytes, Mapping[str, Array]], tuple[Array, ...]], built: BuiltCase) -> Outcome:
    try:
        outputs = implementation(built.model, built.feeds)
    except Exception as error:
        return Outcome(FAILED, "run", str(error))
    return Outcome(DONE, outputs=dict(zip(built.node.outputs, outputs, strict=True)))


def test_there_are_at_least_fourteen_mutants_of_each_operator_and_forty_five_in_all() -> None:
    assert {operator: len(module.MUTANTS) >= 14 for operator, module in OPERATORS.items()} == dict.fromkeys(
        OPERATORS, True
    )
    assert len(ALL) >= 45


def test_no_two_mutants_are_the_same() -> None:
    assert len({id(mutant.implementation) for _, mutant in ALL}) == len(ALL)
    assert len({(operator, mutant.fault) for operator, mutant in ALL}) == len(ALL)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_implementation_without_a_fault_passes_every_case(operator: str) -> None:
    assert failures(OPERATORS[operator].CORRECT, operator) == {}


@pytest.mark.parametrize(("operator", "mutant"), ALL, ids=[f"{operator}-{mutant.name}" for operator, mutant in ALL])
def test_a_fault_is_caught(operator: str, mutant: Mutant) -> None:
    """`pytest -rP` shows how many cases catch each."""
    caught = failures(mutant, operator)
    print(f"{mutant.fault}: caught by {len(caught)} cases")
    assert mutant.caught_by in caught, f"{mutant.fault}: {len(caught)} other cases catch it: {list(caught)[:10]}"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("slice_mutants", "backward_end_clamped_to_0"),
        ("topk_mutants", "higher_index_first"),
        ("qlinearconv_mutants", "per_tensor_scale_for_per_channel"),
    ],
)
def test_a_mutant_is_caught_and_blamed_as_a_target_of_the_runner(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The way of a user: `--ep python:module:function`, a worker, the runner, the judge, a record."""
    monkeypatch.chdir(Path(__file__).parent)
    right = resolve(f"python:{module}:CORRECT")
    wrong = resolve(f"python:{module}:{name}")
    case = suite.case_by_id(getattr(import_module(module), name).caught_by)
    records: list[record.Record] = []
    run_plan(Plan((case,), (wrong,), baseline=right), records.append)
    (found,) = records
    assert (found.case_id, found.status, found.blame, found.reading) == (case.id, "mismatch", "candidate", "failure")
    assert found.candidate.attempts == 2
    assert found.baseline is not None
    assert found.baseline.status == "pass"
    assert found.reason.endswith(f"python:{module}:CORRECT is right")
