"""Narrow faults: what they can be about, and which the suite meets."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Outputs, Refusal
from tests.mutants.narrow import NarrowFault, faults, main, met, properties


def test_the_properties_of_a_node() -> None:
    x = np.array([[np.nan, 1.0, -0.0]], np.float32)
    node = Node("Add", "", 14, (Operand("A", x), Operand("B", x[0])), ("C",), {})
    truth = registry.operator_of("Add").truth(node)
    assert isinstance(truth, Outputs)
    found = set(properties(node, truth))
    assert {("rank", 0, 2), ("rank", 1, 1), ("size", 0, 3), ("size", 0, 1)} <= found
    assert {("special", 0, "NaN", "first"), ("special", 0, "-0", "last")} <= found
    assert ("broadcast", 2, 1, (True, False), (False,)) in found
    assert list(properties(node, Refusal("a rule"))) == []


def test_attributes_are_properties_alone_and_in_pairs() -> None:
    x = np.ones((1, 1, 4, 4), np.float32)
    attributes = {"kernel_shape": (2, 2), "strides": (2, 1)}
    node = Node("MaxPool", "", 12, (Operand("X", x),), ("Y",), attributes)
    found = set(properties(node, registry.operator_of("MaxPool").truth(node)))
    kernel, strides = ("kernel_shape", "2: 2 ... 2"), ("strides", "2: 2 ... 1")
    assert {("attribute", kernel), ("attribute", strides), ("attributes", kernel, strides)} <= found


def test_what_a_case_has_is_met_and_what_none_has_is_not() -> None:
    assert {("rank", 0, 8), ("size", 0, 4097)} <= met("Mish")
    assert ("size", 0, 4098) not in met("Mish")


def test_a_seed_gives_the_same_faults_and_a_miss_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only = {"Mish": registry.operator_of("Mish")}
    monkeypatch.setattr(registry, "all_operators", lambda: only)
    assert faults(3, 5) == faults(3, 5)
    missing = NarrowFault("Mish", ("size", 0, 4098))
    monkeypatch.setattr("tests.mutants.narrow.faults", lambda *_: [missing])
    assert main(["--faults", "1"]) == 1
    assert capsys.readouterr().out == "not met: Mish: ('size', 0, 4098)\n0 of 1 met\n"
