"""`validate` where nothing, or not everything, can be compared: it says so, and never that the model is right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from epcheck.api import ValidateOptions, validate
from epcheck.cli.main import app
from epcheck.conformance.targets.target import Target
from epcheck.models.accuracy.verdict import ORACLE
from epcheck.models.execution.model_outcome import RUN
from epcheck.models.feeds.trials import Trial
from epcheck.models.oracle.node import OracleError
from epcheck.models.oracle.rounding import RandomRounding
from epcheck.models.validation import truth
from epcheck.models.validation.validation import FAILS, RIGHT, UNJUDGED, WRONG, Validation
from tests.models import written_models

HERE = Path(__file__).parents[1]

SQUARE = "g (float[batch, 4] x) => (float[batch, 4] y) { y = Mul(x, x) }"
RANDOM = "g (float[4] x) => (float[4] y) { r = RandomUniformLike <seed=1.0> (x) z = Sub(r, r) y = Add(x, z) }"
PICKY = "g (float[n] x) => (float[3, 4] y) { s = Constant <value_ints=[3, 4]> () y = Reshape(x, s) }"


def backend(name: str) -> Target:
    return Target(name, (sys.executable,), (f"python:whole_model_backends:{name}", "--path", str(HERE)))


def saved(folder: Path, graph: str) -> Path:
    path = folder / "model.onnx"
    onnx.save(written_models.model(graph), path)
    return path


def checked(path: Path, target: str | Target, baseline: str | Target | None = None, **more: Any) -> Validation:
    return validate(ValidateOptions((path,), (target,), baseline, **more)).validation


def test_without_a_baseline_the_oracle_judges_alone(tmp_path: Path) -> None:
    found = checked(saved(tmp_path, SQUARE), "cpu", "none")
    assert found.status == RIGHT
    assert [(verdict.trial, verdict.against) for verdict in found.verdicts] == [
        ("seed 0", ORACLE), ("seed 1, batch=2", ORACLE),
    ]  # fmt: skip
    assert found.nodes_judged == "all 1 nodes were judged alone, on the oracle's values: none beyond the bound"


def test_a_wrong_model_without_a_baseline_is_wrong(tmp_path: Path) -> None:
    relu = "g (float[1, 4] x) => (float[1, 4] y) { n = Neg(x) y = Relu(n) }"
    found = checked(saved(tmp_path, relu), backend("relu_is_leaky"), "none")
    assert (found.status, found.culprit) == (WRONG, None)
    assert [culprit.nodes[0].op_type for culprit in found.wrong_nodes] == ["Relu"]


def test_where_neither_baseline_nor_oracle_answers_nobody_can_tell(tmp_path: Path) -> None:
    path = saved(tmp_path, RANDOM)
    found = checked(path, "cpu", "none")
    assert (found.status, found.verdicts) == (UNJUDGED, ())
    assert "nothing was compared: no baseline, and no oracle for this model" in found.headline
    assert "draws random numbers" in found.headline
    done = CliRunner().invoke(app, ["validate", str(path), "--target", "cpu", "--baseline", "none"])
    assert done.exit_code == 2, done.output
    assert "cannot decide" in done.output


@pytest.mark.parametrize("baseline", ["none", "cpu"])
def test_an_output_of_random_numbers_is_not_wrong_where_it_differs(tmp_path: Path, baseline: str) -> None:
    noise = "g (float[4] x) => (float[4] y, float[4] z) { r = RandomNormalLike(x) y = Add(x, r) z = Neg(x) }"
    found = checked(saved(tmp_path, noise), "cpu", baseline, seeds=(0,), own_process=False)
    assert found.random == ("y",)
    assert (found.status, {each.output for each in found.verdicts}) == (RIGHT, {"z"})
    assert "not compared, since random numbers differ from run to run: y" in found.headline


def test_a_baseline_that_crashes_leaves_the_oracle(tmp_path: Path) -> None:
    relu = "g (float[1, 4] x) => (float[1, 4] y) { y = Relu(x) }"
    found = checked(saved(tmp_path, relu), "cpu", backend("dies_of_relu"), seeds=(0,), own_process=False)
    assert (found.status, [verdict.against for verdict in found.verdicts]) == (RIGHT, [ORACLE])


def test_a_baseline_that_crashes_where_no_oracle_answers_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(truth, "ORACLE_S", -1.0)
    relu = "g (float[1, 4] x) => (float[1, 4] y) { y = Relu(x) }"
    found = checked(saved(tmp_path, relu), "cpu", backend("dies_of_relu"), seeds=(0,), own_process=False)
    assert (found.status, found.verdicts) == (UNJUDGED, ())
    assert "'dies_of_relu' gives no result to compare with" in found.headline


def test_made_up_feeds_with_which_the_baseline_fails_as_well_do_not_suit(tmp_path: Path) -> None:
    path = saved(tmp_path, PICKY)
    found = checked(path, "cpu", dims={"n": (5,)})
    assert {step.stage for step in found.steps} == {RUN}
    assert found.status == UNJUDGED
    assert "fails as well: the generated feeds do not suit the model; name suitable feeds" in found.headline
    np.savez(tmp_path / "mine.npz", x=np.ones(5, np.float32))
    mine = checked(path, "cpu", feeds=tmp_path / "mine.npz", culprit=False)
    assert mine.status == FAILS
    assert mine.headline.endswith("does not run; the baseline fails as well: the feeds do not suit it")


def test_trials_that_were_not_compared_are_in_the_headline(tmp_path: Path) -> None:
    found = checked(saved(tmp_path, PICKY), "cpu", seeds=(0,), dims={"n": (12, 5)})
    assert found.status == RIGHT
    assert "1 of 2 trials were not compared: seed 0, n=5" in found.headline


def test_the_same_runtime_alone_is_a_weak_witness_and_said_so(tmp_path: Path) -> None:
    found = checked(saved(tmp_path, RANDOM), "cpu")
    assert (found.status, {verdict.against for verdict in found.verdicts}) == (RIGHT, {"baseline"})
    assert "it was compared with 'cpu without optimisation' alone, the same runtime" in found.headline
    assert "draws random numbers" in found.headline


def test_the_oracle_judges_every_trial(tmp_path: Path) -> None:
    found = checked(saved(tmp_path, SQUARE), "cpu", dims={"batch": (1, 3)})
    assert sorted(verdict.trial for verdict in found.verdicts if verdict.against == ORACLE) == [
        "seed 0, batch=1", "seed 0, batch=3", "seed 1, batch=1", "seed 1, batch=3",
    ]  # fmt: skip
    assert "the truth of all 4 trials" in found.truth


def test_a_trial_without_a_truth_takes_it_from_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = written_models.model(SQUARE)
    inputs = [np.ones((size, 4), np.float32) for size in (1, 2, 3)]
    tried = {at: Trial(f"trial {at}", {"x": value}, ()) for at, value in enumerate(inputs)}
    evaluate = truth.oracle.evaluate

    def picky(model: Any, feeds: Any, *arguments: Any, **more: Any) -> Any:
        if len(feeds["x"]) == 1:
            raise OracleError("a batch of 1 does not suit it")
        return evaluate(model, feeds, *arguments, **more)

    monkeypatch.setattr(truth.oracle, "evaluate", picky)
    known = truth.of_trials(graph, tried, 4)
    assert [value is not None for value in known.values] == [False, True, True, False]
    assert (known.inner_trial, sorted(known.inner)) == (1, ["y"])
    assert known.inner["y"].dtype == np.float32
    assert known.words.endswith("; not of the others: a batch of 1 does not suit it")


CANCELS = """g (float[1, 64] x) => (float[1, 64] y) <float big = {10000.0}>
    { e = Exp(x) a = Add(e, big) y = Sub(a, big) }"""


@pytest.mark.parametrize(("graph", "target", "status", "runs"), [
    (CANCELS, "cpu", RIGHT, [0]),
    ("g (float[1, 9] x) => (float[1, 9] y) { y = Relu(x) }", backend("relu_is_leaky"), WRONG, [0, 1, 2]),
])  # fmt: skip
def test_random_rounding_is_computed_until_the_outputs_are_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: str, target: str | Target, status: str, runs: list[int]
) -> None:
    seeds: list[int] = []

    def noted(types: Any, seed: int, once: bool) -> RandomRounding:
        seeds.append(seed)
        return RandomRounding(types, seed, once)

    monkeypatch.setattr(truth, "RandomRounding", noted)
    found = checked(saved(tmp_path, graph), target, "none", seeds=(0,), own_process=False)
    assert (found.status, seeds) == (status, runs)


def test_a_node_that_the_runtime_gets_wrong_on_every_level_is_seen_by_the_oracle(tmp_path: Path) -> None:
    """Candidate and baseline are alike, and wrong alike."""
    leaky = backend("relu_is_leaky")
    found = checked(saved(tmp_path, "g (float[1, 9] x) => (float[1, 9] y) { y = Relu(x) }"), leaky, leaky, seeds=(0,))
    assert (found.status, {verdict.word for verdict in found.verdicts}) == (UNJUDGED, {"right", "undecided"})
    assert "candidate and baseline are both far from what the oracle computes for y" in found.headline


def test_a_model_of_a_billion_operations_has_a_truth(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = numpy_helper.from_array(rng.standard_normal((1024, 1024), np.float32), "w")
    sizes = [512, 1024]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in "xy"]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weights])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    found = checked(path, "cpu", seeds=(0,))
    assert found.truth.startswith("an oracle in float64 computed the truth of the trial (1.1e+09 operations")
    assert found.status == RIGHT


def test_two_targets_of_a_reduction_are_refused_in_a_sentence(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["reduce", str(saved(tmp_path, SQUARE)), "-t", "cpu", "--target", "reference"])
    assert done.exit_code == 2
    assert "--target is given 2 times (cpu, reference)" in done.output


def test_a_batch_that_the_model_declares_and_cannot_take_is_tried_as_one_sample(tmp_path: Path) -> None:
    path = saved(tmp_path, "g (float[batch, 4] x) => (float[1, 4] y) {"
                           " s = Constant <value_ints=[1, 4]> () y = Reshape(x, s) }")  # fmt: skip
    found = checked(path, "cpu")
    candidate = [(step.trial, step.stage) for step in found.steps if step.target == "cpu"]
    assert candidate == [("seed 0", "done"), ("seed 1, batch=2", RUN), ("seed 1", "done")]
    assert (found.status, found.headline) == (RIGHT, "model.onnx runs on CPUExecutionProvider and is right")
    done = CliRunner().invoke(app, ["validate", str(path), "--target", "cpu"])
    assert (
        "candidate and baseline fail the same way: the generated feeds do not suit the model; another trial"
        in done.output
    )


def test_a_batch_that_the_candidate_alone_cannot_take_is_its_fault(tmp_path: Path) -> None:
    found = checked(saved(tmp_path, "g (float[batch, 4] x) => (float[batch, 4] y) { y = Relu(x) }"),
                    backend("one_sample"), "cpu", culprit=False)  # fmt: skip
    assert (found.status, [step.trial for step in found.steps if step.stage == RUN]) == (FAILS, ["seed 1, batch=2"])


def test_the_page_gives_a_reason_for_trials_that_do_not_suit(tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    checked(saved(tmp_path, PICKY), "cpu", dims={"n": (5,)}, html=html)
    assert "Candidate and baseline fail the same way: the generated feeds do not suit the model." in html.read_text(
        "utf-8"
    )
