"""`validate` with several wrong nodes: all are named, in the headline, the terminal, the page and the JSON document."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from epcheck.api import ValidateOptions, validate
from epcheck.conformance.targets.target import Target
from epcheck.models.validation.validation import WRONG
from tests.models.small_models import floats, layers
from tests.models.small_models import model as small_model

HERE = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("culprits") / "model.onnx"
    onnx.save(layers(5), path)
    return path


def test_all_wrong_nodes_are_named_with_their_effects(model: Path, tmp_path: Path) -> None:
    doubles = Target("doubles", (sys.executable,), ("python:wrong_backends:doubles_relu", "--path", str(HERE)))
    html, data = tmp_path / "page.html", tmp_path / "found.json"
    found = validate(ValidateOptions((model,), (doubles,), "cpu", seeds=(0,), html=html, json=data)).validation
    assert found.status == WRONG
    assert [node.index for culprit in found.culprits for node in culprit.nodes] == [2, 6, 10, 14, 18]
    assert found.headline.endswith("outputs are wrong: 5 nodes alike: Relu (`n2`, `n6`, `n10` and 2 more)")
    assert found.unexplained == "with the baseline's values in place of theirs the rest of the model is right"
    text = html.read_text("utf-8")
    assert text.count("Alone node 2 `n2` (Relu) changes &#39;out4&#39; by") == 1
    document = json.loads(data.read_text("utf-8"))
    assert document["other_culprits"] == []
    assert [node["name"] for node in document["culprit"]["nodes"]] == ["n2", "n6", "n10", "n14", "n18"]
    assert (document["culprit"]["effect"]["output"], document["culprit"]["count"]) == ("out4", 5)
    assert document["culprit"]["effect"]["error"] > 0.1


def transformer(count: int) -> onnx.ModelProto:
    """x -> (MatMul, Gelu, plus the layer's input, LayerNormalization) `count` times."""
    random, nodes, value = np.random.default_rng(0), [], "x"
    weights = {"scale": np.ones(64, np.float32)}
    for at in range(count):
        weights[f"w{at}"] = (random.standard_normal((64, 64)) / 8).astype(np.float32)
        nodes += [helper.make_node("MatMul", [value, f"w{at}"], [f"m{at}"], name=f"mm{at}"),
                  helper.make_node("Gelu", [f"m{at}"], [f"g{at}"], name=f"gelu{at}"),
                  helper.make_node("Add", [f"g{at}", value], [f"r{at}"], name=f"add{at}"),
                  helper.make_node("LayerNormalization", [f"r{at}", "scale"], [f"l{at}"], name=f"ln{at}")]  # fmt: skip
        value = f"l{at}"
    return small_model(nodes, [floats("x", 4, 16, 64)], [value], weights)


def test_24_faulty_nodes_are_one_finding_within_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "transformer.onnx"
    onnx.save(transformer(24), path)
    wrong = Target("wrong", (sys.executable,), ("python:wrong_backends:enlarges_gelu", "--path", str(HERE)))
    began = time.monotonic()
    found = validate(ValidateOptions((path,), (wrong,), "cpu", seeds=(0,), budget=60)).validation
    assert time.monotonic() - began < 60
    assert (found.status, found.left_out, found.other_culprits) == (WRONG, (), ())
    assert found.culprit is not None
    assert [node.name for node in found.culprit.nodes] == [f"gelu{at}" for at in range(24)]
    assert found.headline.endswith(": 24 nodes alike: Gelu (`gelu0`, `gelu1`, `gelu2` and 21 more)")
    assert sum(found.culprit.sessions) <= 8  # none for each node


def test_speed_is_told_as_ratios(model: Path, tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    found = validate(ValidateOptions((model,), ("cpu",), "cpu", seeds=(0,), speed=True, html=html)).validation
    speeds = found.speeds
    assert speeds is not None
    assert speeds.baseline is not None
    assert speeds.ratio == pytest.approx(speeds.candidate.median_s / speeds.baseline.median_s)
    assert len(speeds.candidate.runs_s) >= 5
    low, high = speeds.candidate.spread_s
    assert min(speeds.candidate.runs_s) <= low <= speeds.candidate.median_s <= high <= max(speeds.candidate.runs_s)
    assert len(speeds.baseline.nodes) == 10  # of 20, the slowest first
    times = [node.seconds for node in speeds.baseline.nodes]
    assert times == sorted(times, reverse=True)
    assert {node.operator for node in speeds.baseline.nodes} <= {"MatMul", "Add", "Relu", "Sub"}
    assert speeds.candidate.bytes > 10 << 20
    assert "times as long as on &#39;cpu without optimisation&#39;" in html.read_text("utf-8")
