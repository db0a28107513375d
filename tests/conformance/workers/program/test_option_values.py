"""Values of options that leave a provider without a node are told before the suite, in one sentence."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest

from epcheck.api import environments
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, RECORD
from epcheck.conformance.workers.program.backends import canary, option_values
from epcheck.conformance.workers.program.backends.onnxruntime import OnnxRuntimeBackend

REFUSES = "; correct the option, or leave it out"


class ChoosyBackend(OnnxRuntimeBackend):
    """Takes nodes of these models, unless an option has the value `NOPE`; one that is `dies` ends in an error."""

    def __init__(self, takes: tuple[bytes, ...] = (canary.MODEL, option_values.MODEL)) -> None:
        super().__init__()
        self.takes = takes

    def session(self, request: dict[str, Any], model: bytes | str) -> Any:
        ((_, options),) = request["providers"]
        if "dies" in options.values() and model == option_values.MODEL:
            raise RuntimeError("no session")
        taken = model in self.takes and "NOPE" not in options.values()

        class Session:
            node = ("Choosy" if taken else CPU, "Add", "n0")

            def get_providers(_self) -> list[str]:  # noqa: N805
                return ["Choosy", CPU]

        return Session()

    def assignment(self, session: Any, recorded: bool) -> list[list[str]]:
        assert recorded
        return [list(session.node)]


def trouble(options: Mapping[str, str], backend: OnnxRuntimeBackend | None = None) -> str:
    sessions = {"providers": [["Choosy", dict(options)]], "config": {RECORD: "1"}, "device": None}
    return canary.trouble_with(backend or ChoosyBackend(), sessions)


def test_its_model_has_four_additions_that_onnxruntime_runs() -> None:
    model = onnx.load_from_string(option_values.MODEL)
    onnx.checker.check_model(model, full_check=True)
    types = [each.type.tensor_type.elem_type for each in model.graph.output]
    assert types == [onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.INT32, onnx.TensorProto.UINT8]
    assert [node.op_type for node in model.graph.node].count("Add") == 4
    assert onnxruntime.InferenceSession(option_values.MODEL, providers=[CPU]).get_providers() == [CPU]


@pytest.mark.parametrize(
    ("options", "blamed"),
    [
        ({"device_id": "NOPE"}, "device_id = NOPE"),
        ({"device_id": "NOPE", "device_type": "gpu"}, "device_id = NOPE"),
        ({"device_id": "NOPE", "device_type": "NOPE"}, "device_id = NOPE, device_type = NOPE"),
    ],
)
def test_the_option_without_which_nodes_are_taken_is_named(options: dict[str, str], blamed: str) -> None:
    assert trouble(options) == f"Choosy takes no node with {blamed}, but takes nodes without it{REFUSES}"


def test_a_provider_that_takes_other_nodes_or_none_at_all_is_left_alone() -> None:
    assert trouble({"device_id": "NOPE"}, ChoosyBackend(takes=())) == ""
    assert trouble({"device_id": "1"}, ChoosyBackend(takes=(option_values.MODEL,))) == ""
    assert trouble({}, ChoosyBackend(takes=())) == ""


def test_an_option_whose_session_fails_takes_no_node() -> None:
    choosy = ChoosyBackend(takes=(option_values.MODEL,))
    assert trouble({"device_id": "dies"}, choosy) == (
        f"Choosy takes no node with device_id = dies, but takes nodes without it{REFUSES}"
    )


OPENVINO = next((made for made in environments() if made.name == "openvino" and made.is_complete), None)


@pytest.mark.skipif(OPENVINO is None, reason="`epcheck env create openvino` was not called")
def test_a_device_that_openvino_does_not_have_is_told() -> None:
    assert OPENVINO is not None
    target = resolve("openvino")
    text = (
        "import sys\nfrom program.backends.onnxruntime import OnnxRuntimeBackend\n"
        "config = {'session.record_ep_graph_assignment_info': '1'}\n"
        "for device in ('NOPE', 'CPU'):\n"
        f"    providers = [({target.provider!r}, {{'device_type': device}})]\n"
        "    sessions = {'providers': providers, 'config': config, 'device': None}\n"
        "    print(OnnxRuntimeBackend().trouble_with(sessions))\n"
    )
    folder = Path(target.worker).parent.parent
    done = subprocess.run([*target.command, "-c", text], cwd=folder, capture_output=True, encoding="utf-8", timeout=60)
    assert done.stdout.splitlines() == [
        f"OpenVINOExecutionProvider takes no node with device_type = NOPE, but takes nodes without it{REFUSES}", ""
    ], done.stderr  # fmt: skip
