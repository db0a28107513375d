"""Planted faults of quantised models are named, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from benchmarks.fault_injection.planted_quantizers import FAULTS, WIDTH, Parts, activation, planted, scaled
from epcheck import api
from epcheck.conformance.targets.specification import resolve
from epcheck.models.execution.session import ModelSessions
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph.wiring import wire
from epcheck.models.quantization.examination import examine
from epcheck.models.quantization.result import Quantization
from epcheck.models.wrong_nodes.options import Limits


@pytest.fixture(scope="module")
def sessions() -> Iterator[ModelSessions]:
    """Without the 16-bit sums of uint8 by int8 that saturate on x86 processors without VNNI."""
    cpu = resolve("cpu")
    with ModelSessions(replace(cpu, config={**cpu.config, "session.x64quantprecision": "1"})) as found:
        yield found


def examine_once(
    model: onnx.ModelProto, feeds: Any, sessions: ModelSessions, are_feeds_generated: bool = False
) -> Quantization:
    trial = Trial("the feeds", feeds, (), are_feeds_generated)
    found = examine(wire(model), sessions, (trial,), "all", Limits())
    assert found is not None
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_the_node_at_fault_is_named_and_no_other(fault: str, sessions: ModelSessions) -> None:
    model, feeds, node, kind = planted(fault)
    found = examine_once(model, feeds, sessions)
    assert [(each.node.name, str(each.fault)) for each in found.faults] == [(node, kind)]


def test_a_model_that_is_quantised_rightly_has_no_fault(sessions: ModelSessions) -> None:
    model, feeds, _, _ = planted("")
    found = examine_once(model, feeds, sessions)
    assert (found.quantizers, found.found, len(found.measured)) == (14, (), 4)
    assert found.error is not None
    assert 0.001 < found.error < 0.03
    assert all(abs(each.bits_lost) < 0.5 for each in found.measured)


def test_several_faults_hide_none(sessions: ModelSessions) -> None:
    parts = Parts()
    for layer in range(3):
        activation(layer, 1 / 8)(parts)
    scaled(3, "b1_scale")(parts)
    found = examine_once(parts.model(), parts.feeds, sessions)
    assert [(each.node.name, str(each.fault)) for each in found.faults] == [
        ("x0_q", "saturates"), ("x1_q", "saturates"), ("b1_dq", "bias scale"), ("x2_q", "saturates"),
    ]  # fmt: skip


def test_the_effect_and_a_better_scale_are_measured(sessions: ModelSessions) -> None:
    model, feeds, _, _ = planted("activation saturates")
    (fault,) = examine_once(model, feeds, sessions).faults
    assert fault.effect is not None
    assert fault.effect.alone > 10 * fault.effect.better
    assert fault.scale is not None
    assert 5 / 255 < fault.scale < 7 / 255
    assert "of the values are beyond [-0." in fault.words


def test_a_scale_that_does_not_matter_is_listed_apart(sessions: ModelSessions) -> None:
    parts = Parts()
    activation(1, 30)(parts)
    parts.values["w1"] = np.zeros_like(parts.values["w1"])  # nothing depends on what it reads
    found = examine_once(parts.model(), parts.feeds, sessions)
    assert [each.node.name for each in found.harmless] == ["x1_q"]
    assert found.faults == ()


@pytest.mark.parametrize("bound", [6.0, 2.0, 1.0])
def test_a_relu_or_clip_that_the_quantiser_replaces_is_no_saturation(bound: float, sessions: ModelSessions) -> None:
    parts = Parts()
    scale = np.array(bound / 255, np.float32)
    parts.values |= {"x1_scale": scale, "x1_back": scale, "x1_zero": np.array(0, np.uint8)}
    parts.values["b1_scale"] = np.asarray(scale * parts.values["w1_scale"])
    found = examine_once(parts.model(), parts.feeds, sessions).found
    assert [str(each.fault) for each in found] == (["saturates"] if bound == 2 else [])


def test_made_up_feeds_may_be_larger_than_those_of_calibration(sessions: ModelSessions) -> None:
    parts = Parts()
    activation(1, 0.6)(parts)
    assert examine_once(parts.model(), parts.feeds, sessions, are_feeds_generated=True).found == ()
    assert [each.node.name for each in examine_once(parts.model(), parts.feeds, sessions).faults] == ["x1_q"]


def test_scales_along_an_axis_need_opset_13(sessions: ModelSessions) -> None:
    parts = Parts()
    found = examine_once(parts.model(opset=11), parts.feeds, sessions)
    assert {(each.node.name, str(each.fault)) for each in found.faults} == {
        (f"{name}{layer}_dq", "axis") for name in "wb" for layer in range(3)
    }
    assert "from opset 13 on" in found.faults[0].words


def test_a_scale_of_0_of_weights_that_are_all_0_is_no_fault(sessions: ModelSessions) -> None:
    parts = Parts()
    parts.values["w1"][:, 3] = 0
    parts.values["w1_scale"] = np.where(np.arange(WIDTH) == 3, 0, parts.values["w1_scale"]).astype(np.float32)
    found = examine_once(parts.model(), parts.feeds, sessions)
    assert [(each.node.name, str(each.fault)) for each in found.faults] == [("b1_dq", "bias scale")]


def test_a_model_without_quantisers_has_nothing_to_examine(sessions: ModelSessions) -> None:
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) '
                                    "{ y = Relu(x) }")  # fmt: skip
    trial = Trial("the feeds", {"x": np.ones(2, np.float32)}, ())
    assert examine(wire(model), sessions, (trial,), "all", Limits()) is None


def test_the_doctor_names_the_node_on_its_page_and_in_its_document(tmp_path: Path) -> None:
    model, feeds, _, _ = planted("activation saturates")
    path = tmp_path / "int8.onnx"
    path.write_bytes(model.SerializeToString())
    np.savez(tmp_path / "feeds.npz", **feeds)
    options = api.DoctorOptions(
        path, target="cpu", feeds=tmp_path / "feeds.npz", html=tmp_path / "page.html", json=tmp_path / "d.json"
    )
    found = api.doctor(options)
    assert found.status == "faulty"
    assert "`x1_q` (QuantizeLinear) saturates" in found.headline
    document = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))
    assert [each["fault"] for each in document["quantization"]["found"]] == ["saturates"]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Are its quantisers right?" in page
    assert "x1_q" in page
    assert "in float16?" not in page
