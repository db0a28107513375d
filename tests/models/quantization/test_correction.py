"""Corrected quantisers: fewer faults, and outputs nearer to those in floating point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from benchmarks.fault_injection.planted_quantizers import FAULTS, planted
from epcheck.conformance.targets.specification import resolve
from epcheck.models.execution.session import ModelSessions
from epcheck.models.feeds.trials import Trial
from epcheck.models.graph.wiring import wire
from epcheck.models.quantization.correction import correct
from epcheck.models.quantization.examination import examine
from epcheck.models.quantization.result import Quantization
from epcheck.models.wrong_nodes.options import Limits

LOST = ("weights saturate", "weights waste their range", "scale of 0")
"""Faults of constants, whose float values are not in the model."""


@pytest.fixture(scope="module")
def sessions() -> Iterator[ModelSessions]:
    """Without the 16-bit sums of uint8 by int8 that saturate on x86 processors without VNNI."""
    cpu = resolve("cpu")
    with ModelSessions(replace(cpu, config={**cpu.config, "session.x64quantprecision": "1"})) as found:
        yield found


def examine_once(model: onnx.ModelProto, feeds: Mapping[str, Any], sessions: ModelSessions) -> Quantization:
    found = examine(wire(model), sessions, (Trial("the feeds", feeds, ()),), "all", Limits())
    assert found is not None
    return found


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in LOST])
def test_a_correction_leaves_no_fault(fault: str, sessions: ModelSessions) -> None:
    model, feeds, name, _ = planted(fault)
    faults = examine_once(model, feeds, sessions).faults
    model, done = correct(model, faults)
    assert {found.node.index for found in faults} <= done.keys()
    onnx.checker.check_model(model, full_check=True)
    found = examine_once(model, feeds, sessions)
    assert found.faults == ()
    assert found.error is not None
    assert found.error < 0.03
    assert name in {node.name for node in model.graph.node}


@pytest.mark.parametrize("fault", LOST)
def test_constants_that_are_lost_stay_as_they_are(fault: str, sessions: ModelSessions) -> None:
    model, feeds, _, _ = planted(fault)
    faults = examine_once(model, feeds, sessions).faults
    changed, done = correct(model, faults)
    assert faults
    assert done == {}
    assert changed == model


def test_a_bias_keeps_its_values(sessions: ModelSessions) -> None:
    model, feeds, _, _ = planted("scale of a bias")
    (fault,) = examine_once(model, feeds, sessions).faults
    changed, _ = correct(model, (fault,))

    def read_bias(each: onnx.ModelProto) -> Any:
        node = next(node for node in each.graph.node if node.name == "b1_dq")
        stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in each.graph.initializer}
        return stored[node.input[0]] * stored[node.input[1]].astype(np.float64)

    np.testing.assert_allclose(read_bias(changed), read_bias(model), atol=1e-3)
