"""A node that no oracle computes takes the truth from nothing but what depends on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.api import ValidateOptions, validate
from epcheck.models.accuracy.verdict import ORACLE
from epcheck.models.feeds.trials import Trial
from epcheck.models.oracle import oracle
from epcheck.models.oracle.node import OracleError
from epcheck.models.validation import truth
from epcheck.models.validation.validation import RIGHT

X = (np.eye(3) * 2 + np.arange(9).reshape(3, 3) / 10).astype(np.float32)


@pytest.fixture(autouse=True)
def _nobody_computes_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = oracle.oracle_node.evaluate

    def without_inverse(node: onnx.NodeProto, *others: Any) -> Any:
        if node.op_type == "Inverse":
            raise OracleError(f"node '{node.name}' (com.microsoft::Inverse) cannot be computed")
        return evaluate(node, *others)

    monkeypatch.setattr(oracle.oracle_node, "evaluate", without_inverse)


def inverse() -> onnx.ModelProto:
    """x -> Tanh -> a; x -> Inverse, that no oracle computes -> Exp -> y."""
    nodes = [helper.make_node("Tanh", ["x"], ["a"], name="n0"),
             helper.make_node("Inverse", ["x"], ["i"], name="n1", domain="com.microsoft"),
             helper.make_node("Exp", ["i"], ["y"], name="n2")]  # fmt: skip
    x, *ends = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 3]) for name in ("x", "a", "y"))
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", [x], ends), opset_imports=imports, ir_version=9)


def test_a_skipped_node_leaves_the_other_outputs_their_truth() -> None:
    known = truth.of_trials(inverse(), {0: Trial("t", {"x": X}, ())}, 1)
    assert known.values[0] is not None
    assert list(known.values[0]) == ["a"]
    assert known.words.startswith("an oracle in float64 computed the truth of the trial (")
    assert "; 1 node skipped (node 'n1' (com.microsoft::Inverse) cannot be computed" in known.words
    assert known.words.endswith("what depends on them has no truth")


def test_the_values_of_the_baseline_take_its_place() -> None:
    asked: list[Any] = []

    def ask(trial: Trial, names: Any) -> dict[str, Any]:
        asked.append((trial.name, list(names)))
        return {"i": np.linalg.inv(X)}

    known = truth.of_trials(inverse(), {0: Trial("t", {"x": X}, ())}, 1, ask)
    assert asked == [("t", ["i", "y"]), ("t", ["i"])]  # its values, and the type that ONNX does not infer
    assert known.values[0] is not None
    np.testing.assert_allclose(known.values[0]["y"], np.exp(np.linalg.inv(X).astype(np.float64)), rtol=1e-12)
    assert sorted(known.inner) == ["a", "i", "y"]
    assert known.words.endswith("their values are the baseline's")


def test_a_second_node_behind_the_first_that_nobody_computes_is_skipped_as_well() -> None:
    model = inverse()
    model.graph.node[2].op_type, model.graph.node[2].domain = "Inverse", "com.microsoft"
    back = {"i": np.linalg.inv(X), "y": X}
    known = truth.of_trials(model, {0: Trial("t", {"x": X}, ())}, 1, lambda _trial, names: {n: back[n] for n in names})
    assert known.values[0] is not None
    np.testing.assert_array_equal(known.values[0]["y"], X)
    assert "; 2 nodes skipped (node 'n1'" in known.words


def test_random_numbers_are_given_by_nobody() -> None:
    nodes = [helper.make_node("RandomNormalLike", ["x"], ["r"], name="n0"),
             helper.make_node("Add", ["x", "r"], ["y"], name="n1")]  # fmt: skip
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 3]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    known = truth.of_trials(model, {0: Trial("t", {"x": X}, ())}, 1, lambda _trial, _names: {"r": X})
    assert known.values == (None,)
    assert "draws random numbers" in known.words


def test_without_substitutes_an_unknown_operator_ends_the_evaluation() -> None:
    found = oracle.evaluate(inverse(), {"x": X}, ["a", "y"], substitutes={})
    assert list(found.values) == ["a"]
    assert list(found.skipped) == ["i"]


def test_a_model_with_an_unknown_operator_is_judged_by_the_oracle(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(inverse(), path)
    np.savez(tmp_path / "x.npz", x=X)
    found = validate(ValidateOptions((path,), ("cpu",), feeds=tmp_path / "x.npz", own_process=False)).validation
    assert found.status == RIGHT
    assert {verdict.output for verdict in found.verdicts if verdict.against == ORACLE} == {"a", "y"}
    assert found.headline == "model.onnx runs on CPUExecutionProvider and is right"
    assert found.nodes_judged == "all 3 nodes were judged alone, on the oracle's values: none beyond the bound"
