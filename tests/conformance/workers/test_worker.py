"""The worker file: its frames, and the process as whoever starts it sees it."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from faulty_backends import FAULTS
from onnx import TensorProto, helper
from small_cases import HERE

from epcheck.conformance.targets.target import WORKER
from epcheck.conformance.workers.program import worker

DTYPES = [*(np.dtype(code) for code in "?bBhHiIlLqQefdFD"), np.dtype(ml_dtypes.bfloat16)]


def through_a_pipe(header: dict[str, Any], tensors: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    stream = io.BytesIO()
    worker.write_frame(stream, worker.encode(header, tensors))
    stream.seek(0)
    frame = worker.read_frame(stream)
    assert frame is not None
    assert worker.read_frame(stream) is None
    return frame[0], dict(worker.decode(*frame))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 4), (2, 3, 4), (1,) * 8], ids=str)
def test_every_bit_of_every_dtype_and_shape_comes_through(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    bits = np.random.default_rng(1).integers(0, 2 if dtype.kind == "b" else 256, (*shape, dtype.itemsize), np.uint8)
    array = bits.view(dtype).reshape(shape)
    _, received = through_a_pipe({}, {"x": array})
    assert (received["x"].dtype, received["x"].shape) == (dtype, shape)
    assert received["x"].tobytes() == array.tobytes()


def test_several_tensors_keep_their_names_and_order() -> None:
    sent = {"b": np.arange(3), "": np.zeros((0, 2)), "a\0[red]": np.array(True)}
    header, received = through_a_pipe({"op": "x", "id": "ü"}, sent)
    assert (header["op"], header["id"], list(received)) == ("x", "ü", ["b", "", "a\0[red]"])


@pytest.mark.parametrize("view", [np.arange(12.0).reshape(3, 4).T, np.arange(6.0)[::-2], np.arange(3, dtype=">i4")])
def test_values_come_through_whatever_the_memory_layout(view: np.ndarray[Any, Any]) -> None:
    _, received = through_a_pipe({}, {"x": view})
    assert np.array_equal(received["x"], view)
    assert received["x"].dtype == view.dtype.newbyteorder("=")


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([None]), np.zeros(1, "i4,f4"), np.array([b"a"])], ids=str)
def test_what_is_no_number_is_not_sent(value: np.ndarray[Any, Any]) -> None:
    with pytest.raises(TypeError, match=r"'x' has the dtype .*, which is no tensor of numbers"):
        worker.encode({}, {"x": value})


@pytest.mark.parametrize(
    ("tensors", "body"),
    [
        ([["x", "float32", [-1]]], b"1234"),
        ([["x", "float32", [2]]], b"1234"),
        ([["x", "float32", [1 << 70]]], b"1234"),
        ([["x", "float32", [1]]], b"12345678"),
        ([["x", "float32", [1.0]]], b"1234"),
        ([["x", "object", [1]]], b"12345678"),
        ([["x", "nonsense", []]], b""),
        ([["x", "float32", 4]], b"1234"),
        ([["x"]], b""),
        ([7], b""),
    ],
    ids=str,
)
def test_a_header_that_does_not_describe_its_body_is_refused(tensors: list[Any], body: bytes) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        list(worker.decode({"tensors": tensors}, body))


@pytest.mark.parametrize(
    "rubbish",
    [
        b"Welcome to this machine!",
        b"EPC1",
        b"EPC2" + bytes(12),
        worker.PREFIX.pack(b"EPC1", worker.MAX_HEADER + 1, 0),
        worker.PREFIX.pack(b"EPC1", 2, worker.MAX_BODY + 1),
        worker.PREFIX.pack(b"EPC1", 2, 0) + b"[]",
        worker.PREFIX.pack(b"EPC1", 2, 0) + b"\xff\xff",
        worker.PREFIX.pack(b"EPC1", 0, 0),
    ],
)
def test_what_is_no_frame_is_named_with_its_first_bytes(rubbish: bytes) -> None:
    with pytest.raises(worker.NotAFrame) as caught:
        worker.read_frame(io.BytesIO(rubbish))
    assert rubbish.endswith(caught.value.rubbish) or rubbish.startswith(caught.value.rubbish)
    assert str(caught.value) == f"{len(caught.value.rubbish)} bytes that are no frame: {caught.value.rubbish!r}"


@pytest.mark.parametrize("kept", [16, 20, 30])
def test_a_frame_that_is_cut_short_is_the_end_of_the_stream(kept: int) -> None:
    frame = b"".join(worker.encode({"op": "x"}, {"x": np.arange(4)}))
    assert worker.read_frame(io.BytesIO(frame[:kept])) is None


def test_a_length_that_lies_costs_no_memory() -> None:
    stream = io.BytesIO(worker.PREFIX.pack(b"EPC1", 2, worker.MAX_BODY) + b"{}" + bytes(1000))
    tracemalloc.start()
    assert worker.read_frame(stream) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * worker.CHUNK


def test_an_exception_without_a_long_message_is_sent_whole() -> None:
    assert worker.failure(ValueError("no such axis")) == {"error": "ValueError", "message": "no such axis"}


class Peer:
    """A worker process, spoken to directly."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ask(self, header: dict[str, Any], tensors: Mapping[str, Any], model: bytes | None = None) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        named = {} if model is None else {"": np.frombuffer(model, np.uint8)}
        worker.write_frame(self.process.stdin, worker.encode(header, {**named, **tensors}))
        return worker.read_frame(self.process.stdout)

    def run(self, model: bytes, feeds: Mapping[str, Any], **changes: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        request = {
            "op": "run", "id": "a case", "providers": [["CPUExecutionProvider", {}]], "device": "cpu",
            "config": {"session.record_ep_graph_assignment_info": "1"}, "outputs": ["y"], **changes,
        }  # fmt: skip
        header, body = self.ask(request, feeds, model)
        return header, dict(worker.decode(header, body))

    def end(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=20)
        return self.process.returncode, said.decode("utf-8", "replace")


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


def test_a_greeting_is_answered_with_protocol_and_facts(ort: Peer) -> None:
    header, body = ort.ask({"op": "hello"}, {})
    facts = header["facts"]
    assert (header["op"], header["protocol"], body) == ("hello", worker.PROTOCOL, b"")
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
    answer, outputs = worker.OnnxRuntime().run(
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
    code, said = peer.end()
    assert code == 0
    assert said.startswith("a library that talks\nEPC1 and a native one \0\ufffd\nand a program that it starts\n")


def test_a_prelude_runs_before_the_backend_and_its_facts_are_reported(tmp_path: Any) -> None:
    prelude = tmp_path / "prelude.py"
    prelude.write_text("import sys\nassert 'numpy' not in sys.modules\nsys._epcheck_facts = {'adapter': 'none'}\n")
    peer = Peer("python:faulty_backends:right", "--path", str(HERE), "--prelude", str(prelude))
    header, _ = peer.ask({"op": "hello"}, {})
    peer.end()
    assert header["facts"]["adapter"] == "none"


def test_it_ends_when_it_is_told_to_and_when_its_input_ends() -> None:
    asked = Peer("python:faulty_backends:right", "--path", str(HERE))
    assert asked.ask({"op": "exit"}, {}) is None
    assert asked.end() == (0, "")
    assert Peer("python:faulty_backends:right", "--path", str(HERE)).end() == (0, "")


def test_modules_beside_the_worker_file_are_not_importable_by_their_bare_names(tmp_path: Any) -> None:
    """A backend that imports trio's `outcome` gets trio's."""
    tmp_path.joinpath("mine.py").write_text("import lane\n")
    code, said = Peer("python:mine:f", "--path", str(tmp_path)).end()
    assert (code, said.splitlines()[-1]) == (1, "ModuleNotFoundError: No module named 'lane'")


def test_python_3_9_can_read_it() -> None:
    """The oldest that a release of a runtime worth testing needs."""
    ast.parse(WORKER.read_text(), feature_version=(3, 9))


def test_it_needs_no_package_but_numpy_and_the_runtime() -> None:
    """It runs in environments where epcheck, onnx and even pytest are not."""
    code = (
        "import builtins, sys\n"
        "def only(name, *rest, real=builtins.__import__, **named):\n"
        "    assert name.split('.')[0] not in ('epcheck', 'onnx', 'psutil', 'rich', 'typer', 'ml_dtypes'), name\n"
        "    return real(name, *rest, **named)\n"
        "builtins.__import__ = only\n"
        f"sys.path.insert(0, {str(WORKER.parent)!r})\n"
        "import worker\n"
        "worker.main(['onnxruntime'])\n"
    )
    request = b"".join(worker.encode({"op": "hello"}, {}))
    done = subprocess.run([sys.executable, "-c", code], input=request, capture_output=True, check=True)
    frame = worker.read_frame(io.BytesIO(done.stdout))
    assert frame is not None
    assert json.loads(json.dumps(frame[0]))["protocol"] == worker.PROTOCOL
