"""Whole models in sessions: paths and bytes, levels and wanted outputs, and whatever happens to the worker."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target
from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.conformance.workers.client import TargetDown
from epcheck.conformance.workers.program.protocol import PROTOCOL
from epcheck.models.execution import model_source
from epcheck.models.execution.model_outcome import CRASH, CREATE, RUN, TIMEOUT
from epcheck.models.execution.session import ModelSessions, share_workers
from tests.models import decoders

X = np.array([[1.0, -2.0]], np.float32)
HERE = Path(__file__).parents[1]


def model(*nodes: onnx.NodeProto, outputs: tuple[str, ...] = ("y",), weights: tuple[onnx.TensorProto, ...] = ()):  # type: ignore[no-untyped-def]
    """A model of float32 [1, 2] values with the input `x`."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in outputs],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def relu_neg() -> onnx.ModelProto:
    return model(
        helper.make_node("Relu", ["x"], ["y"], name="first"),
        helper.make_node("Neg", ["y"], ["z"], name="second"),
        outputs=("y", "z"),
    )


@pytest.fixture(scope="module")
def cpu() -> Iterator[ModelSessions]:
    with ModelSessions(resolve("cpu")) as sessions:
        yield sessions


def backend(name: str, deadline_s: float = 60.0, **changes: Any) -> ModelSessions:
    target = Target(name, (sys.executable,), (f"python:whole_model_backends:{name}", "--path", str(HERE)), **changes)
    return ModelSessions(target, deadline_s)


def test_a_model_gives_its_outputs_and_the_record_of_its_nodes(cpu: ModelSessions) -> None:
    answer = cpu.run(relu_neg(), {"x": X}, level="disabled")
    assert answer.is_done, answer.message
    assert {name: value.tolist() for name, value in answer.outputs.items()} == {"y": [[1, 0]], "z": [[-1, 0]]}
    assert sorted(answer.assignment or ()) == [
        ("CPUExecutionProvider", "Neg", "second"),
        ("CPUExecutionProvider", "Relu", "first"),
    ]


def test_an_output_is_written_into_the_buffer_of_its_input(cpu: ModelSessions) -> None:
    model = decoders.group_query_decoder()
    tokens, mask = np.int64([[3, 1, 4]]), np.ones((1, 3), np.int64)
    names = [f"{layer}.{part}" for layer in (0, 1) for part in ("key", "value")]
    shared = {f"past_key_values.{name}": f"present.{name}" for name in names}
    buffers = {name: np.full((1, decoders.KEY_HEADS, 6, decoders.SIZE), 7, np.float32) for name in shared}
    empty = {name: buffer[:, :, :0] for name, buffer in buffers.items()}
    fed = {"input_ids": tokens, "attention_mask": mask}
    alone, together = cpu.run_in_place(model, fed | empty, {}), cpu.run_in_place(model, fed | buffers, shared)
    assert (alone.message, together.message) == ("", "")
    for name in shared.values():
        assert alone.outputs[name].shape[2] == 3
        assert np.array_equal(together.outputs[name][:, :, :3], alone.outputs[name])
        assert (together.outputs[name][:, :, 3:] == 7).all()
    assert np.array_equal(together.outputs["logits"], alone.outputs["logits"])


def processes_of(targets: Sequence[Target]) -> list[int]:
    """The ids of the processes in which sessions run that follow each other, each with the model anew."""
    found = []
    for target in targets:
        with ModelSessions(target) as sessions:
            assert sessions.run(relu_neg(), {"x": X}).is_done
            assert sessions.run(relu_neg(), {"x": X}).is_done
            assert sessions.created == 1
            assert sessions.facts["onnxruntime"]
            assert sessions._client._process is not None
            found.append(sessions._client._process.process.pid)
    return found


def test_sessions_leave_their_worker_to_the_next_of_the_target_within_a_block() -> None:
    cpu = resolve("cpu")
    other = replace(cpu, environment={**os.environ, "OTHER": "1"})
    with share_workers((cpu,)):
        first, again, elsewhere, last = processes_of((cpu, cpu, other, cpu))
        assert first == again == last != elsewhere
        assert psutil.pid_exists(first)
    assert not psutil.pid_exists(first)
    assert len(set(processes_of((cpu, cpu)))) == 2


def test_a_callable_has_no_buffers_to_share() -> None:
    with backend("never_the_same") as sessions:
        answer = sessions.run_in_place(relu_neg(), {"x": X}, {"x": "y"})
    assert (answer.stage, answer.message) == (RUN, "a callable has no buffers that inputs and outputs could share")


def test_only_the_wanted_outputs_come(cpu: ModelSessions) -> None:
    assert list(cpu.run(relu_neg(), {"x": X}, outputs=["z"]).outputs) == ["z"]


def test_the_same_model_keeps_its_session_and_another_level_has_its_own(cpu: ModelSessions) -> None:
    made = [
        cpu.run(relu_neg(), {"x": X}, level="extended").create_s is not None,
        cpu.run(relu_neg(), {"x": X + 1}, level="extended").create_s is not None,
        cpu.run(relu_neg(), {"x": X}, level="disabled").create_s is not None,
    ]
    assert made == [True, False, True]


def test_a_kept_session_takes_new_feeds(cpu: ModelSessions) -> None:
    first, second = (cpu.run(relu_neg(), {"x": X + add}).outputs["y"].tolist() for add in (0, 3))
    assert (first, second) == ([[1, 0]], [[4, 1]])


def test_optimisation_levels_reach_the_runtime(cpu: ModelSessions) -> None:
    weights = numpy_helper.from_array(np.ones((1, 2), np.float32), "w")
    folded = model(
        helper.make_node("Neg", ["w"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"]), weights=(weights,)
    )
    counts = {level: len(cpu.run(folded, {"x": X}, level=level).assignment or ()) for level in ("disabled", "basic")}
    assert counts == {"disabled": 2, "basic": 1}


def test_a_model_that_cannot_be_loaded_is_an_error_of_session_creation(cpu: ModelSessions) -> None:
    answer = cpu.run(model(helper.make_node("NoSuchOperator", ["x"], ["y"])), {"x": X})
    assert (answer.stage, answer.during) == (CREATE, "session creation")
    assert "NoSuchOperator" in answer.message


def test_feeds_that_do_not_fit_are_an_error_of_the_run_and_the_worker_goes_on(cpu: ModelSessions) -> None:
    answer = cpu.run(relu_neg(), {"x": np.zeros((5, 5), np.float32)})
    assert (answer.stage, answer.during) == (RUN, "the run")
    assert cpu.run(relu_neg(), {"x": X}).is_done


def test_sequences_maps_and_text_travel_as_tensors(cpu: ModelSessions) -> None:
    sequence = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    text = helper.make_tensor_type_proto(TensorProto.STRING, [2])
    nodes = [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("Identity", ["a"], ["b"])]
    inputs = [helper.make_value_info("s", sequence), helper.make_value_info("a", text)]
    outputs = [helper.make_value_info("t", sequence), helper.make_value_info("b", text)]
    whole = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    answer = cpu.run(whole, {"s": [X, X[:, :1]], "a": np.array(["ü", "ab"], object)})
    assert answer.is_done, answer.message
    assert {name: value.shape for name, value in answer.outputs.items()} == {
        "t[0]": (1, 2),
        "t[1]": (1, 1),
        "b": (2, 2),
    }
    assert [bytes(row).decode() for row in answer.outputs["b"]] == ["ü", "ab"]


def saved(folder: Path, location: str = "weights.bin") -> Path:
    """A model whose weight is in a file beside it."""
    weights = numpy_helper.from_array(np.array([[10.0, 20.0]], np.float32), "w")
    whole = model(helper.make_node("Add", ["x", "w"], ["y"], name="add"), weights=(weights,))
    (folder / "weights.bin").write_bytes(weights.raw_data)
    external_data_helper.set_external_data(whole.graph.initializer[0], location, 0, 8)
    whole.graph.initializer[0].ClearField("raw_data")
    (folder / "model.onnx").write_bytes(whole.SerializeToString())
    return folder / "model.onnx"


def test_the_runtime_itself_opens_a_path_and_its_external_data(cpu: ModelSessions, tmp_path: Path) -> None:
    assert cpu.run(saved(tmp_path), {"x": X}).outputs["y"].tolist() == [[11, 18]]


def test_a_changed_copy_of_the_model_finds_the_external_data_by_its_folder(cpu: ModelSessions, tmp_path: Path) -> None:
    changed = onnx.load(str(saved(tmp_path)), load_external_data=False)
    changed.graph.node.append(helper.make_node("Neg", ["y"], ["z"]))
    changed.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 2]))
    assert cpu.run(changed, {"x": X}, outputs=["z"], folder=tmp_path).outputs["z"].tolist() == [[-11, -18]]


def test_a_callable_gets_the_external_data_in_the_bytes(tmp_path: Path) -> None:
    with ModelSessions(resolve("reference")) as reference:
        assert reference.run(saved(tmp_path), {"x": X}).outputs["y"].tolist() == [[11, 18]]


def test_a_callable_that_asks_for_the_folder_gets_it_in_place_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path)
    with backend("reads_its_weights") as sessions:
        for asked, folder in ((path, None), (onnx.load(str(path), load_external_data=False), tmp_path)):
            assert sessions.run(asked, {"x": X}, folder=folder).outputs["y"].tolist() == [[11, 18]]
        alone = model(helper.make_node("Neg", ["x"], ["y"]))
        assert sessions.run(alone, {"x": X}).message == "None"
    monkeypatch.setattr(model_file, "MAX_BYTES", path.stat().st_size + 7)
    words = r"larger than \d+ bytes, and target 'reference' takes it as bytes; give its function a parameter 'folder'"
    with ModelSessions(resolve("reference")) as reference, pytest.raises(ModelFileError, match=words):
        reference.run(path, {"x": X})


def test_external_data_that_leaves_the_folder_is_refused_before_anything_is_opened(
    cpu: ModelSessions, tmp_path: Path
) -> None:
    with pytest.raises(
        ModelFileError, match=r"tensor 'w' has its data at '\.\./weights\.bin', outside the model's folder"
    ):
        cpu.run(saved(tmp_path, "../weights.bin"), {"x": X})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stage", "during", "message"),
    [
        ("dies_in_its_first_run", CRASH, "the run", "the worker process ended"),
        ("dies_in_its_second_run", CRASH, "the second run", "the worker process ended"),
        ("hangs", TIMEOUT, "the run", "no response within the deadline of 1 s"),
        ("loses_the_device", CRASH, "the run", "the device was lost (removed: "),
    ],
)
def test_what_ends_a_worker_is_named_with_the_step_and_the_next_one_goes_on(
    name: str, stage: str, during: str, message: str
) -> None:
    with backend(name, 1.0 if name == "hangs" else 60.0) as sessions:
        answer = sessions.run(relu_neg(), {"x": X})
        assert (answer.stage, answer.during) == (stage, during)
        assert answer.message.startswith(message)
        assert sessions.run(relu_neg(), {"x": np.zeros((1, 2), np.float32)}).is_done


def test_a_second_run_that_differs_is_named() -> None:
    with backend("never_the_same") as sessions:
        assert sessions.run(relu_neg(), {"x": X}).repeat_differs == ("y",)
        assert sessions.run(relu_neg(), {"x": X}, once=True).repeat_differs == ()


@pytest.mark.slow
def test_a_worker_that_takes_too_much_memory_is_ended() -> None:
    with backend("takes_memory", memory_bytes=200 << 20) as sessions:
        answer = sessions.run(relu_neg(), {"x": X})
    assert (answer.stage, answer.during) == (CRASH, "the run")
    assert "MiB of memory; the limit is 200 MiB" in answer.message


@pytest.mark.slow
def test_a_worker_that_speaks_another_protocol_takes_its_target_down() -> None:
    worker = HERE.parent / "conformance" / "faulty_worker.py"
    target = Target("odd", (sys.executable,), ("of_the_future",), worker=str(worker))
    with (
        pytest.raises(TargetDown, match=f"its worker speaks protocol {PROTOCOL + 1}, this epcheck {PROTOCOL}"),
        ModelSessions(target) as sessions,
    ):
        sessions.run(relu_neg(), {"x": X})


def test_a_worker_that_ended_between_two_runs_is_replaced() -> None:
    with ModelSessions(resolve("cpu")) as sessions:
        assert sessions.run(relu_neg(), {"x": X}).is_done
        psutil.Process(sessions._client.pid).kill()
        deadline = time.monotonic() + 10
        while sessions._client._is_running and time.monotonic() < deadline:
            time.sleep(0.01)
        outcome = sessions.run(relu_neg(), {"x": X})
        assert (outcome.is_done, outcome.create_s is None) == (True, False)


def test_a_large_float16_model_keeps_no_float32_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = [np.full((2048, 2048), index, np.float16) for index in range(8)]  # 64 MiB together
    nodes = [helper.make_node("MatMul", [f"v{at}", f"w{at}"], [f"v{at + 1}"]) for at in range(8)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT16, [1, 2048])],
        [helper.make_tensor_value_info("v8", TensorProto.FLOAT16, [1, 2048])],
        [numpy_helper.from_array(weight, f"w{at}") for at, weight in enumerate(weights)],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "model.onnx"
    onnx.save_model(proto, path, save_as_external_data=True, location="weights.bin")

    def resident_mib() -> float:
        with ModelSessions(resolve("cpu")) as sessions:
            assert sessions.run(path, {"v0": np.zeros((1, 2048), np.float16)}).is_done
            return sessions.resident_bytes() / 2**20

    optimised = resident_mib()
    monkeypatch.setattr(model_source, "LARGE_BYTES", 1 << 20)
    assert resident_mib() < optimised - 40  # 88 on an idle machine, 56 on a busy one; 0 to 8 where the copies are kept
