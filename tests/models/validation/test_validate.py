"""`validate`: the questions about a model, answered on the CPU provider and on callables that are wrong on purpose."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.api import ValidateOptions
from epcheck.api import validate as validate_models
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DML, Target
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.models.execution.model_outcome import CREATE
from epcheck.models.execution.session import ModelSessions
from epcheck.models.feeds.dims import DimsError
from epcheck.models.inspection import inspect
from epcheck.models.validation import page
from epcheck.models.validation.validation import FAILS, REFUSED, RIGHT, WRONG, Validation

HERE = Path(__file__).parents[1]
HOSTILE = '"><script>alert(1)</script>'


def wrong(name: str) -> Target:
    return Target(name, (sys.executable,), (f"python:whole_model_backends:{name}", "--path", str(HERE)))


def validate(path: Path, target: str | Target | None, baseline: str | Target | None = None, **more: Any) -> Validation:
    return validate_models(ValidateOptions((path,), (target,) if target else (), baseline, **more)).validation


def save(path: Path, *nodes: onnx.NodeProto, weights: tuple[onnx.TensorProto, ...] = (), opset: int = 17) -> Path:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def perceptron(path: Path, first: str = "hidden") -> Path:
    rng = np.random.default_rng(1)
    weights = tuple(numpy_helper.from_array(rng.standard_normal((4, 4), np.float32), name) for name in ("a", "b"))
    return save(
        path,
        helper.make_node("MatMul", ["x", "a"], ["h"], name=first),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("MatMul", ["r", "b"], ["y"], name="last"),
        weights=weights,
    )


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Validation:
    path = perceptron(tmp_path_factory.mktemp("right") / "model.onnx")
    return validate(path, "cpu", "reference", dims={"batch": (1, 3)})


def test_a_right_model_is_right_against_baseline_and_truth(right: Validation) -> None:
    assert right.status == RIGHT
    assert [(verdict.trial, verdict.against, verdict.shape) for verdict in right.verdicts] == [
        (f"seed {seed}, batch={batch}", against, (batch, 4))
        for batch in (1, 3)
        for seed in (0, 1)
        for against in ("baseline", "oracle")
    ]
    assert {verdict.threshold.depth for verdict in right.verdicts} == {3}


def test_its_nodes_are_on_the_provider_by_the_record_of_the_session(right: Validation) -> None:
    assert right.placement is not None
    assert [(node.name, node.real) for node in right.placement.nodes] == [
        ("hidden", "CPUExecutionProvider"),
        ("relu", "CPUExecutionProvider"),
        ("last", "CPUExecutionProvider"),
    ]
    assert (right.placement.share, right.placement.copies, right.placement.partitions) == (1.0, (), 1)


def test_the_runtime_says_what_it_reads(right: Validation, tmp_path: Path) -> None:
    model = onnx.load(str(perceptron(tmp_path / "model.onnx")))
    model.opset_import[0].version = 99
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    found = validate(tmp_path / "model.onnx", "cpu", "none")
    findings = [finding for finding in found.inspection.findings if "has opset 99; onnxruntime" in finding.text]
    assert [finding.severity for finding in findings] == ["error"]
    assert right.inspection.loads


def test_a_wrong_node_is_named(tmp_path: Path) -> None:
    found = validate(perceptron(tmp_path / "model.onnx"), wrong("relu_is_leaky"), "cpu", seeds=(0,))
    assert found.status == WRONG
    assert found.culprit is not None
    assert [node.name for node in found.culprit.nodes] == ["relu"]
    assert found.headline == ("model.onnx runs on relu_is_leaky, but its outputs are wrong: node 1 `relu` (Relu)")


@pytest.mark.slow
def test_a_threshold_can_be_overridden(tmp_path: Path) -> None:
    found = validate(
        perceptron(tmp_path / "model.onnx"),
        wrong("relu_is_leaky"),
        "cpu",
        seeds=(0,),
        rtol=10,
    )
    assert {(verdict.right, verdict.threshold.source) for verdict in found.verdicts} == {(True, "as requested")}


@pytest.mark.slow
def test_a_process_that_dies_is_contained_and_the_node_is_named(tmp_path: Path) -> None:
    found = validate(perceptron(tmp_path / "model.onnx"), wrong("dies_of_relu"), "cpu", seeds=(0,))
    assert found.status == FAILS
    (step,) = [step for step in found.steps if step.during]
    assert (step.stage, step.during) == ("crash", "the run")
    assert found.culprit is not None
    assert [node.name for node in found.culprit.nodes] == ["relu"]


def test_a_model_that_the_runtime_refuses_has_a_page_with_the_message(tmp_path: Path) -> None:
    path = save(tmp_path / "model.onnx", helper.make_node("NoSuchOperator", ["x"], ["y"], name="odd"))
    found = validate(path, "cpu", "none")
    assert found.status == REFUSED
    assert found.steps[0].stage == CREATE
    texts = [finding.text for finding in found.inspection.findings]
    assert "onnx's checker: node 'odd' (NoSuchOperator): opset 17 has no operator NoSuchOperator" in texts
    assert "Session creation ends" not in page.render(found)
    assert "No: session creation ends with" in page.render(found)


@pytest.mark.slow
def test_users_feeds_are_taken_in_place_of_generated_ones(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x=np.ones((2, 4), np.float32))
    found = validate(perceptron(tmp_path / "model.onnx"), "cpu", "reference", feeds=tmp_path / "mine.npz")
    assert {(verdict.trial, verdict.shape) for verdict in found.verdicts} == {("mine.npz", (2, 4))}


def test_a_dimension_that_the_model_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DimsError, match="no free dynamic dimension 'seq'; they have 'batch'"):
        validate(perceptron(tmp_path / "model.onnx"), "cpu", dims={"seq": (1,)})


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "its graph has no node"), (b"\xff" * 40, "cannot be parsed"), (None, "no such file")],
)
def test_a_broken_file_is_refused_in_a_sentence(content: bytes | None, sentence: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelFileError, match=sentence):
        validate(tmp_path / "model.onnx", "cpu")


@pytest.mark.slow
def test_nothing_of_a_model_reaches_the_page_as_markup(tmp_path: Path) -> None:
    found = validate(perceptron(tmp_path / "model.onnx", HOSTILE), wrong("relu_is_leaky"), "cpu", seeds=(0,))
    text = page.render(found)
    assert "<script" not in text
    assert text.count("<style>") == 1
    assert "default-src 'none'; style-src 'sha256-" in text.replace("&#39;", "'")


def test_the_page_answers_in_the_order_of_the_questions(right: Validation) -> None:
    text = page.render(right)
    order = ["Will it load?", "Where does it run, and why?", "Is it right?", "Which nodes are wrong?", "Reproduce it"]
    order = [f"{number} · {question}" for number, question in enumerate(order, 1)]
    assert sorted(order, key=text.index) == order


@pytest.mark.slow
def test_the_command_writes_page_and_json_and_ends_with_its_verdict(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from epcheck.cli.main import app

    path = perceptron(tmp_path / "model.onnx")
    arguments = ["validate", str(path), "--target", "cpu", "--baseline", "reference", "--dim", "batch=2"]
    done = CliRunner().invoke(app, [*arguments, "--json", str(tmp_path / "v.json")])
    assert done.exit_code == 0, done.output
    assert "model.onnx runs on CPUExecutionProvider and is right" in done.output
    assert (tmp_path / "model.onnx.validation.html").is_file()
    document = json.loads((tmp_path / "v.json").read_text(encoding="utf-8"))
    assert (document["schema"], document["status"], len(document["verdicts"])) == (2, "right", 4)
    assert CliRunner().invoke(app, ["validate", str(tmp_path / "none.onnx"), "--target", "cpu"]).exit_code == 2
    assert CliRunner().invoke(app, [*arguments, "--dim", "batch=two"]).exit_code == 2


def test_the_fixture_validates(epcheck_validate: Callable[..., Validation], tmp_path: Path) -> None:
    path = perceptron(tmp_path / "model.onnx")
    assert epcheck_validate(str(path), targets=("cpu",), baseline="none", seeds=(0,)).status == RIGHT


SIZE = 1 << 30


@pytest.mark.slow
def test_a_gigabyte_of_external_data_is_mapped_and_not_loaded(tmp_path: Path) -> None:
    rows = SIZE // 4096
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[rows, 1024])
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="weights.bin")
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(SIZE)  # sparse: it takes no room on the disk
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [4])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 1024])
    graph = helper.make_graph(
        [helper.make_node("Gather", ["w", "ids"], ["y"], name="embed")], "g", [ids], [out], [weights]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    before = psutil.Process().memory_info().rss
    found = validate(tmp_path / "model.onnx", "cpu", resolve("cpu"), seeds=(0,))
    grown = psutil.Process().memory_info().rss - before
    assert (found.status, found.inspection.bytes > SIZE) == (RIGHT, True)
    assert grown < SIZE / 10
    with ModelSessions(resolve("cpu")) as sessions:
        assert sessions.run(tmp_path / "model.onnx", {"ids": np.arange(4)}).is_done
        assert sessions.resident_bytes() < SIZE / 2


@pytest.mark.parametrize(("allowzero", "shape", "count"), [(1, (-1, 4), 1), (0, (-1, 4), 0), (1, (1, 4), 0)])
def test_a_reshape_that_directml_does_not_resolve_is_told_before_anything_runs(
    tmp_path: Path, allowzero: int, shape: tuple[int, int], count: int
) -> None:
    reshape = helper.make_node("Reshape", ["x", "shape"], ["y"], name="flatten", allowzero=allowzero)
    path = save(tmp_path / "model.onnx", reshape, weights=(numpy_helper.from_array(np.array(shape), "shape"),))
    findings = list(inspect.unresolved_reshapes(onnx.load(path), DML))
    assert [finding.severity for finding in findings] == ["warning"] * count
    assert all("'flatten' first" in finding.text for finding in findings)
    assert not list(inspect.unresolved_reshapes(onnx.load(path), CPU))
