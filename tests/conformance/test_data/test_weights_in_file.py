"""A large .onnx file is parsed without its weights, which stay where they are, and means the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.conformance.test_data import model_file, weights_in_file
from epcheck.conformance.test_data.model_file import ModelFileError

SIDE = 192
"""Rows and columns of a weight: more bytes than LARGE_TENSOR."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """y = (x + bias) @ weight0 @ weight1, with weights inside."""
    rng = np.random.default_rng(0)
    weights = {f"weight{at}": rng.standard_normal((SIDE, SIDE)).astype(np.float32) for at in range(2)}
    tensors = [numpy_helper.from_array(np.arange(SIDE, dtype=np.float32), "bias"),
               *(numpy_helper.from_array(value, name) for name, value in weights.items())]  # fmt: skip
    nodes = [helper.make_node("Add", ["x", "bias"], ["a"]), helper.make_node("MatMul", ["a", "weight0"], ["b"]),
             helper.make_node("MatMul", ["b", "weight1"], ["y"])]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, SIDE])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, SIDE])], tensors)  # fmt: skip
    path = tmp_path / "ümlaut model.onnx"
    path.write_bytes(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)],
                                       producer_name="somebody").SerializeToString())  # fmt: skip
    return path


def test_the_weights_stay_in_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = onnx.load(file)
    monkeypatch.setattr(weights_in_file, "LARGE_FILE", 1000)
    read = model_file.parse(file)
    assert [tensor.data_location for tensor in read.graph.initializer] == [0, 1, 1]  # the bias is small
    assert read.ByteSize() < 3000 < file.stat().st_size
    assert {place.file for place in model_file.external_data(read, file)} == {file.resolve()}
    assert model_file.bytes_of(read, file) == file.stat().st_size
    assert model_file.load(file) == whole
    first = read.graph.initializer[1]
    assert np.array_equal(model_file.array_of(first, file.parent), numpy_helper.to_array(whole.graph.initializer[1]))


def test_a_runtime_reads_the_weights_from_there(file: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(file.parent))
    feeds = {"x": np.ones((1, SIDE), np.float32)}
    content = weights_in_file.parse(file).SerializeToString()
    found = [onnxruntime.InferenceSession(model, options).run(None, feeds)[0] for model in (str(file), content)]
    assert np.array_equal(*found)


def test_small_files_are_read_whole(file: Path) -> None:
    assert not any(model_file.external_tensors(model_file.parse(file)))


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_ends_too_early_is_refused_as_any_other(
    file: Path, monkeypatch: pytest.MonkeyPatch, keep: float
) -> None:
    monkeypatch.setattr(weights_in_file, "LARGE_FILE", 1000)
    content = file.read_bytes()
    file.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(ModelFileError, match="is not an ONNX model: its bytes cannot be parsed"):
        model_file.parse(file)


@pytest.mark.parametrize(
    "content", [b"\x3b", b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x07\x00", b"\x80"]
)
def test_what_is_no_message_is_left_to_the_plain_way(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(weights_in_file.NotPlainError):
        weights_in_file.parse(path)


def test_data_of_another_size_than_the_dimensions_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights_in_file, "LARGE_FILE", 1000)
    model = onnx.load(file)
    model.graph.initializer[1].raw_data += b"\0" * 4
    file.write_bytes(model.SerializeToString())
    with pytest.raises(ModelFileError, match=r"tensor 'weight0' has 147460 bytes of data, .* need 147456"):
        model_file.load(file)
