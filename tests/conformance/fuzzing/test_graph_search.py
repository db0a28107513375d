"""Graphs: a fault that no single node shows is found and made small; one that a node explains is not reported."""

from __future__ import annotations

import pytest

from epcheck.conformance.fuzzing import graph_search
from epcheck.conformance.fuzzing.baseline import Baseline
from epcheck.conformance.fuzzing.graph_search import FoundGraphs, GraphSearch, at_level
from epcheck.conformance.fuzzing.rounds import Rounds, RoundsByLevel
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.targets.specification import resolve
from epcheck.generators.fuzzing.graphs import graph_document
from epcheck.generators.graphs.node_graph import NodeGraph
from tests.conformance.small_cases import HERE

OPERATORS = ["Relu", "Add", "Mul", "Neg", "Transpose"]


@pytest.fixture(autouse=True)
def _beside_the_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setattr(graph_search, "TEMPLATES", 500)  # of five operators


def search(backend: str, count: int = 60, examples: tuple[NodeGraph, ...] = (), baseline: str = "") -> FoundGraphs:
    target = resolve(f"python:fuzzing_backends:{backend}")

    def plan_at(level: str) -> Plan:
        return Plan((), (at_level(target, level),), jobs=1)

    def plan_of_baseline(level: str) -> Plan:
        return Plan((), (at_level(resolve(f"python:fuzzing_backends:{baseline}"), level),), jobs=1)

    with (
        Rounds(Plan((), (target,), jobs=1)) as plain,
        RoundsByLevel(plan_at) as levels,
        RoundsByLevel(plan_of_baseline) as others,
    ):
        asked = Baseline(others if baseline else None, "all")
        return GraphSearch(plain, levels, lambda _words: None, baseline=asked).run(OPERATORS, 1, 60, count, examples)


def test_a_provider_without_a_fault_has_none() -> None:
    found = search("right")
    assert found.faults == {}
    assert found.judged >= 55
    assert set(found.statuses) == {"pass"}


def test_a_wrong_fusion_is_found_and_made_small() -> None:
    found = search("fuses_add_and_relu_wrong", 200)
    faults = list(found.faults.values())
    assert faults
    for fault in faults:
        assert fault.record.status == "mismatch"
        assert fault.cause.symptom.operator == "Add → Relu"
        assert fault.level == "disabled"  # a callable has no levels
    again = graph_document.decode(faults[0].line)
    assert isinstance(again, NodeGraph)
    replayed = search("fuses_add_and_relu_wrong", 0, (again,))
    assert [fault.replayed for fault in replayed.faults.values()] == [True]
    assert search("right", 0, (again,)).faults == {}
    alone = search("fuses_add_and_relu_wrong", 0, (again,), "right")
    assert [fault.is_new for fault in alone.faults.values()] == [True]
    shared = search("fuses_add_and_relu_wrong", 0, (again,), "fuses_add_and_relu_wrong")
    assert [(fault.cause.shared, fault.is_new) for fault in shared.faults.values()] == [(True, False)]


def test_what_a_node_does_wrong_alone_is_no_fault_of_graphs() -> None:
    """Templates that show the fault are left out; graphs reach such values again, and a node is wrong alone there."""
    found = search("negates_where_all_are_below_0", 100)
    assert found.faults == {}
    assert found.templates > 50
