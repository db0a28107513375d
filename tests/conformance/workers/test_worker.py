"""The worker program: the process as whoever starts it sees it."""

from __future__ import annotations

import ast
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from epcheck.conformance.targets.target import WORKER
from epcheck.conformance.workers.program import failure, protocol
from epcheck.conformance.workers.program.backends.onnxruntime import OnnxRuntimeBackend
from epcheck.conformance.workers.session_result import session_result
from tests.conformance.faulty_backends import FAULTS
from tests.conformance.small_cases import HERE


def test_an_exception_without_a_long_message_is_sent_whole() -> None:
    assert failure.failure(ValueError("no such axis")) == {"error": "ValueError", "message": "no such axis"}


@pytest.mark.parametrize(
    ("on_cpu", "platform", "cost"), [(True, "linux", 0.25), (True, "win32", 4), (False, "linux", 4)]
)
def test_a_session_on_a_busy_cpu_costs_what_processors_did(
    on_cpu: bool, platform: str, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert session_result({"stage": "done", "busy_s": 4, "cpu_s": 0.25}).cost_s(on_cpu) == cost


class Peer:
    """A worker process, spoken to directly."""

    def __init__(self, *arguments: str, worker: Path = WORKER, options: Sequence[str] = ()) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *options, str(worker), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ask(self, header: dict[str, Any], tensors: Mapping[str, Any], model: bytes | None = None) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        named = {} if model is None else {"": np.frombuffer(model, np.uint8)}
        protocol.write_frame(self.process.stdin, protocol.encode(header, {**named, **tensors}))
        return protocol.read_frame(self.process.stdout)

    def run(self, model: bytes, feeds: Mapping[str, Any], **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        request = {
            "op": "run", "id": "a case", "providers": [["CPUExecutionProvider", {}]], "device": "cpu",
            "config": {"session.record_ep_graph_assignment_info": "1"}, "outputs": ["y"], **changes,
        }  # fmt: skip
        header, body = self.ask(request, feeds, model)
        return header, dict(protocol.decode(header, body))

    def end(self) -> tuple[int, str]:
        _, log = self.process.communicate(timeout=20)
        return self.process.returncode, log.decode("utf-8", "replace")


def one_node(op_type: str, shape: tuple[int, ...], element: int = TensorProto.FLOAT, **attributes: Any) -> bytes:
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x"], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info("y", element, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.fixture(scope="module")
def ort() -> Iterator[Peer]:
    peer = Peer("onnxruntime")
    yield peer
    assert peer.end() == (0, "")


def test_the_handshake_is_answered_with_protocol_and_facts(ort: Peer) -> None:
    header, body = ort.ask({"op": "hello"}, {})
    facts = header["facts"]
    assert (header["op"], header["protocol"], body) == ("hello", protocol.PROTOCOL, b"")
    assert facts["onnxruntime"] == onnxruntime.__version__
    assert facts["numpy"] == np.__version__
    assert facts["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["interpreter"] == sys.executable
    assert "CPUExecutionProvider" in facts["providers"].split(", ")
    assert all(isinstance(value, str) and facts["os"] for value in facts.values())


def test_a_case_is_answered_with_outputs_and_assignment(ort: Peer) -> None:
    x = np.array([-1.5, 0.0, 2.0], np.float32)
    header, outputs = ort.run(one_node("Abs", (3,)), {"x": x})
    assert (header["id"], header["stage"]) == ("a case", "done")
    assert header["assignment"] == [["CPUExecutionProvider", "Abs", ""]]
    assert (header["unwritten"], header["repeat_differs"]) == ([], [])
    assert header["create_s"] > 0 < header["run_s"]
    assert outputs["y"].tolist() == [1.5, 0.0, 2.0]


def test_an_empty_output_is_an_output(ort: Peer) -> None:
    header, outputs = ort.run(one_node("Abs", (0, 2)), {"x": np.zeros((0, 2), np.float32)})
    assert (header["stage"], outputs["y"].shape, outputs["y"].dtype) == ("done", (0, 2), np.float32)


def test_an_output_that_changes_from_run_to_run_is_listed(ort: Peer) -> None:
    header, outputs = ort.run(one_node("RandomNormalLike", (4,)), {"x": np.zeros(4, np.float32)})
    assert outputs["y"].shape == (4,)
    assert (header["stage"], header["unwritten"], header["repeat_differs"]) == ("done", [], ["y"])


def test_a_model_that_cannot_be_loaded_fails_at_create(ort: Peer) -> None:
    header, outputs = ort.run(b"no model", {})
    assert (header["stage"], header["error"], outputs) == ("create", "InvalidProtobuf", {})
    assert "protobuf parsing failed" in header["message"].lower()


def test_feeds_that_do_not_fit_fail_at_run(ort: Peer) -> None:
    header, _ = ort.run(one_node("Abs", (3,)), {"x": np.zeros(3, np.float64)})
    assert (header["stage"], header["error"]) == ("run", "InvalidArgument")


def test_an_output_of_text_is_a_failure_and_not_the_end(ort: Peer) -> None:
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
            [helper.make_tensor_value_info("y", TensorProto.STRING, [1])],
        ),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    header, outputs = ort.run(model.SerializeToString(), {"x": np.zeros(1, np.float32)}, device=None)
    assert (header["stage"], header["error"], outputs) == ("run", "TypeError", {})
    assert ort.run(one_node("Abs", (1,)), {"x": np.ones(1, np.float32)})[0]["stage"] == "done"


def test_a_session_that_was_not_asked_to_record_is_profiled(ort: Peer) -> None:
    header, _ = ort.run(one_node("Abs", (1,)), {"x": np.ones(1, np.float32)}, config={})
    assert (header["stage"], header["assignment"]) == ("done", [["CPUExecutionProvider", "Abs", "Abs_0"]])


def test_without_a_record_of_its_own_the_profile_proves_placement(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with onnxruntime 1.20, which has no get_provider_graph_assignment_info."""
    owner = next(c for c in onnxruntime.InferenceSession.__mro__ if "get_provider_graph_assignment_info" in vars(c))
    monkeypatch.delattr(owner, "get_provider_graph_assignment_info")
    answer, outputs = OnnxRuntimeBackend().run(
        {
            "providers": [["CPUExecutionProvider", {}]],
            "config": {"session.record_ep_graph_assignment_info": "1"},
            "device": "cpu",
        },
        one_node("Abs", (2,)),
        {"x": np.array([-1, 2], np.float32)},
    )
    assert (answer["stage"], answer["assignment"]) == ("done", [["CPUExecutionProvider", "Abs", "Abs_0"]])
    assert outputs["y"].tolist() == [1.0, 2.0]


def test_what_a_backend_prints_goes_to_stderr() -> None:
    peer = Peer("python:faulty_backends:faulty", "--path", str(HERE))
    number = np.array([list(FAULTS).index("print"), 0], np.float32)
    header, outputs = peer.run(b"", {"x": number})
    assert (header["stage"], outputs["y"].tolist()) == ("done", number.tolist())
    code, log = peer.end()
    assert code == 0
    lines = log.replace("\r\n", "\n")  # of Windows' print
    assert lines.startswith("a library that talks\nEPC1 and a native one \0\ufffd\nand a program that it starts\n")


def test_a_prelude_runs_before_the_backend_and_its_facts_are_reported(tmp_path: Any) -> None:
    prelude = tmp_path / "prelude.py"
    prelude.write_text(
        "import sys\nassert 'numpy' not in sys.modules\nsys._epcheck_facts = lambda: {'adapter': 'none'}\n"
    )
    peer = Peer("python:faulty_backends:right", "--path", str(HERE), "--prelude", str(prelude))
    header, _ = peer.ask({"op": "hello"}, {})
    peer.end()
    assert header["facts"]["adapter"] == "none"


def test_it_ends_when_it_is_asked_to_and_when_its_input_ends() -> None:
    asked = Peer("python:faulty_backends:right", "--path", str(HERE))
    assert asked.ask({"op": "exit"}, {}) is None
    assert asked.end() == (0, "")
    assert Peer("python:faulty_backends:right", "--path", str(HERE)).end() == (0, "")


PROGRAM = WORKER.parent
SOURCES = sorted(PROGRAM.rglob("*.py"))


@pytest.mark.parametrize("name", ["protocol", "serve", "main", "worker", "backends"])
def test_modules_beside_the_worker_file_are_not_importable_by_their_bare_names(name: str, tmp_path: Path) -> None:
    """A backend that imports a `protocol` of its own gets its own, or none."""
    tmp_path.joinpath("mine.py").write_text(f"import {name}\n", encoding="utf-8")
    code, log = Peer("python:mine:f", "--path", str(tmp_path)).end()
    assert (code, log.splitlines()[-1]) == (1, f"ModuleNotFoundError: No module named '{name}'")


def test_a_user_s_modules_that_are_named_like_ours_are_found(tmp_path: Path) -> None:
    tmp_path.joinpath("protocol.py").write_text("y = 7\n", encoding="utf-8")
    mine = "import protocol\n\ndef f(model, feeds):\n    return [feeds['x'] * protocol.y]\n"
    tmp_path.joinpath("mine.py").write_text(mine, encoding="utf-8")
    peer = Peer("python:mine:f", "--path", str(tmp_path))
    header, outputs = peer.run(b"", {"x": np.ones(2, np.float32)})
    assert (header["stage"], outputs["y"].tolist()) == ("done", [7.0, 7.0])
    assert peer.end() == (0, "")


@pytest.mark.parametrize(("value", "seen"), [("", 1.0), ("0", 0.0)])
def test_the_runtime_s_telemetry_is_off_unless_the_user_wants_it(
    value: str, seen: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends names and hashes of models to the runtime's maker, and writes into the user's cache."""
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    if value:
        monkeypatch.setenv("ORT_DISABLE_TELEMETRY", value)
    mine = "import os\n\nDISABLED = float(os.environ['ORT_DISABLE_TELEMETRY'])\n\n"
    mine += "def f(model, feeds):\n    return [feeds['x'] * 0 + DISABLED]\n"
    tmp_path.joinpath("mine.py").write_text(mine, encoding="utf-8")
    peer = Peer("python:mine:f", "--path", str(tmp_path))
    _, outputs = peer.run(b"", {"x": np.ones(1, np.float32)})
    assert (outputs["y"].tolist(), peer.end()) == ([seen], (0, ""))


def test_a_copy_of_the_folder_is_a_worker_wherever_it_stands(tmp_path: Path) -> None:
    copy = shutil.copytree(PROGRAM, tmp_path / "anything", ignore=shutil.ignore_patterns("__pycache__"))
    peer = Peer("onnxruntime", worker=copy / "worker.py", options=("-I", "-P") if sys.version_info >= (3, 11) else ())
    header, outputs = peer.run(one_node("Abs", (1,)), {"x": -np.ones(1, np.float32)})
    assert (header["stage"], outputs["y"].tolist()) == ("done", [1.0])
    assert peer.end() == (0, "")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(PROGRAM).as_posix())
def test_python_3_9_can_read_it(source: Path) -> None:
    """The oldest that a release of a runtime worth testing needs. Annotations are never evaluated."""
    text = source.read_text(encoding="utf-8")
    tree = ast.parse(text, feature_version=(3, 9))
    annotated = any(isinstance(node, ast.FunctionDef | ast.AnnAssign) for node in ast.walk(tree))
    assert not annotated or "from __future__ import annotations" in text
    newer = {"strict": "zip", "slots": "dataclass"}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert [k.arg for call in calls for k in call.keywords if newer.get(k.arg or "") == call.func.id] == []  # type: ignore[attr-defined]


def test_it_needs_no_package_but_numpy_and_the_runtime() -> None:
    """It runs in environments where epcheck, onnx and even pytest are not."""
    code = (
        "import builtins, runpy, sys\n"
        "def only(name, *rest, real=builtins.__import__, **named):\n"
        "    assert name.split('.')[0] not in ('epcheck', 'onnx', 'psutil', 'rich', 'typer', 'ml_dtypes'), name\n"
        "    return real(name, *rest, **named)\n"
        "builtins.__import__ = only\n"
        "sys.argv = ['worker.py', 'onnxruntime']\n"
        f"runpy.run_path({str(WORKER)!r}, run_name='__main__')\n"
    )
    request = b"".join(protocol.encode({"op": "hello"}, {}))
    done = subprocess.run([sys.executable, "-c", code], input=request, capture_output=True, check=True)
    frame = protocol.read_frame(io.BytesIO(done.stdout))
    assert frame is not None
    assert json.loads(json.dumps(frame[0]))["protocol"] == protocol.PROTOCOL
