"""The search: faults of providers that are wrong in one known way are found, made small, and told apart once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from epcheck.conformance.fuzzing.baseline import Baseline
from epcheck.conformance.fuzzing.fault import Fault
from epcheck.conformance.fuzzing.rounds import Rounds, RoundsByLevel
from epcheck.conformance.fuzzing.search import Found, Limits, Search
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.specification import resolve
from epcheck.generators import registry
from epcheck.generators.fuzzing import reduction
from epcheck.generators.serialization import node_json
from epcheck.generators.serialization.node_json import SerializedNode
from tests.conformance.small_cases import HERE


@pytest.fixture(autouse=True)
def _beside_the_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)


def search(
    backend: str,
    *operators: str,
    count: int = 200,
    seed: int = 1,
    examples: Sequence[SerializedNode] = (),
    expectations: Sequence[Expectation] = (),
    baseline: str = "",
) -> Found:
    target = resolve(f"python:fuzzing_backends:{backend}")

    def plan_at(_level: str) -> Plan:
        return Plan((), (resolve(f"python:fuzzing_backends:{baseline}"),), jobs=1)

    with Rounds(Plan((), (target,), jobs=1)) as rounds, RoundsByLevel(plan_at) as others:
        asked = Baseline(others if baseline else None)
        found = Search(rounds, replace(target, expectations=tuple(expectations)), lambda _words: None, asked)
        return found.run([registry.operator_of(key) for key in operators], seed, Limits(60, count), examples)


def only(found: Found) -> Fault:
    (fault,) = found.faults.values()
    return fault


def test_a_provider_without_a_fault_has_none() -> None:
    found = search("right", "Slice", "Concat", count=150)
    assert found.faults == {}
    assert found.judged == 150
    assert found.statuses == {"pass": 150}


def test_a_wrong_size_is_found_and_made_small() -> None:
    fault = only(search("wrong_beyond_16", "Identity", count=100))
    (operand,) = fault.node.inputs
    assert operand is not None
    assert operand.value.shape == (17,)
    assert (fault.cause.symptom.operator, fault.record.status, fault.record.blame) == (
        "Identity",
        "mismatch",
        "candidate",
    )
    assert fault.occurrences >= 2


def test_a_refused_attribute_is_one_fault_however_often_it_is_seen() -> None:
    fault = only(search("refuses_negative_axes", "Concat", count=100))
    assert fault.record.status == "refused"
    assert fault.node.attributes == {"axis": -1}
    assert all(o.value.size <= 1 and o.value.ndim <= 3 for o in fault.node.inputs if o is not None)
    assert fault.occurrences >= 2


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_crash_is_found_and_the_search_goes_on() -> None:
    found = search("aborts_on_empty_data", "Identity", count=120)
    fault = only(found)
    assert fault.record.status == "crash"
    assert reduction.measure(fault.node)[1] <= 1
    assert found.judged == 120


def test_what_was_found_once_is_replayed_first() -> None:
    line = only(search("refuses_negative_axes", "Concat", count=100)).line
    written = node_json.decode(line)
    again = search("refuses_negative_axes", "Concat", count=1, examples=[written])
    assert again.replayed == 1
    assert only(again).replayed
    mended = search("right", "Concat", count=1, examples=[written])
    assert (mended.replayed, mended.faults) == (1, {})
    of_others = search("right", "Slice", count=1, examples=[written])
    assert of_others.replayed == 0


def test_a_recorded_deviation_is_known_and_not_made_small() -> None:
    entry = Expectation("Concat-*/*/axis_minus_1[*", "refused", "negative axes are not implemented")
    fault = only(search("refuses_negative_axes", "Concat", count=100, expectations=[entry]))
    assert not fault.is_new
    assert fault.known == "Concat-*/*/axis_minus_1[*: negative axes are not implemented"
    assert fault.rounds == 0


def test_what_the_baseline_shows_too_is_no_new_fault() -> None:
    fault = only(search("refuses_negative_axes", "Concat", count=100, baseline="refuses_negative_axes"))
    assert (fault.cause.shared, fault.is_new) == (True, False)
    assert fault.node.attributes == {"axis": -1}
    alone = only(search("refuses_negative_axes", "Concat", count=100, baseline="right"))
    assert (alone.cause.shared, alone.is_new) == (False, True)
    assert alone.cause.id != fault.cause.id
    lost = only(search("refuses_negative_axes", "Concat", count=100, baseline="no_such_backend"))
    assert lost.is_new


def test_a_fault_of_the_candidate_alone_is_found_beside_one_that_both_show() -> None:
    """Both look alike. Each is made small without becoming the other."""
    found = search("wrong_beyond_16", "Identity", count=200, baseline="wrong_beyond_40")
    sizes = {
        fault.cause.shared: fault.node.inputs[0].value.size for fault in found.faults.values() if fault.node.inputs[0]
    }
    assert sizes == {False: 17, True: 41}


def test_the_same_seed_finds_the_same() -> None:
    first, second = (only(search("wrong_beyond_16", "Identity", count=60, seed=4)) for _ in range(2))
    assert first.record.case_id == second.record.case_id
    assert first.occurrences == second.occurrences
