"""Feeds of the user: read from files, and refused in one sentence where they do not fit."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.models.feeds import feed_files, feeds
from epcheck.models.feeds.feed_files import FeedError
from tests.models.written_models import model

MODEL = model("g (float[N,3] a, int64[N] b) => (float[N,3] y) { y = Relu(a) }")
GOOD = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([4, 5], np.int64)}


def with_data_set(folder: Path, **inputs: np.ndarray) -> Path:
    folder.mkdir(parents=True)
    for index, (name, value) in enumerate(inputs.items()):
        (folder / f"input_{index}.pb").write_bytes(numpy_helper.from_array(value, name).SerializeToString())
    return folder


def test_an_npz_is_read_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", b=GOOD["b"], a=GOOD["a"])
    (found,) = feeds.read(tmp_path / "mine.npz", MODEL)
    assert found.name == "mine.npz"
    np.testing.assert_array_equal(found.inputs["a"], GOOD["a"])
    np.testing.assert_array_equal(found.inputs["b"], GOOD["b"])


def test_a_folder_gives_all_its_data_sets_in_order(tmp_path: Path) -> None:
    for index in (10, 9, 0):
        with_data_set(tmp_path / f"test_data_set_{index}", a=GOOD["a"] + np.float32(index), b=GOOD["b"])
    sets = feeds.read(tmp_path, MODEL)
    assert [feed_set.name for feed_set in sets] == ["test_data_set_0", "test_data_set_9", "test_data_set_10"]
    assert [float(np.asarray(feed_set.inputs["a"])[0, 0]) for feed_set in sets] == [0.0, 9.0, 10.0]


def test_a_data_set_itself_is_read_as_one(tmp_path: Path) -> None:
    (found,) = feeds.read(with_data_set(tmp_path / "test_data_set_3", **GOOD), MODEL)
    np.testing.assert_array_equal(found.inputs["a"], GOOD["a"])


def test_sequences_and_optionals_are_saved_and_read_back(tmp_path: Path) -> None:
    tensor = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, (None,))
    inputs = [helper.make_value_info("s", helper.make_sequence_type_proto(tensor)),
              helper.make_value_info("o", helper.make_optional_type_proto(tensor))]  # fmt: skip
    nodes = [helper.make_node("SequenceLength", ["s"], ["y"])]
    built = helper.make_model(helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", 7, ())]))
    values = {"s": [np.ones(2, np.float32), np.zeros(3, np.float32)], "o": np.full(4, 2, np.float32)}
    feed_files.save(tmp_path, built, values)
    (found,) = feeds.read(tmp_path, built)
    assert [tensor.tolist() for tensor in found.inputs["s"]] == [[1, 1], [0, 0, 0]]
    assert found.inputs["o"].tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"b": None}, "no value for the input 'b'"),
        ({"c": GOOD["b"]}, "the model has no input 'c'; it has 'a', 'b'"),
        ({"a": GOOD["a"].astype(np.float64)}, "input 'a' is float64, but the model needs float32"),
        ({"a": np.array([["x"] * 3] * 2)}, "input 'a' is str, but the model needs float32"),
        ({"a": GOOD["a"][0]}, "input 'a' has the shape [3], but the model needs rank 2"),
        ({"a": GOOD["a"][:, :2]}, "input 'a' has the size 2 in dimension 1, but the model needs 3"),
        ({"b": np.arange(5, dtype=np.int64)}, "dimension 'N' is 2 in the input 'a' and 5 in 'b'"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(
    change: dict[str, np.ndarray | None], sentence: str, tmp_path: Path
) -> None:
    arrays = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    np.savez(tmp_path / "mine.npz", **arrays)
    with pytest.raises(FeedError) as refusal:
        feeds.read(tmp_path / "mine.npz", MODEL)
    assert str(refusal.value) == f"{tmp_path / 'mine.npz'}: {sentence}"


def test_a_tensor_where_a_sequence_is_wanted_is_refused() -> None:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, (2,)))
    node = helper.make_node("SequenceLength", ["s"], ["y"])
    graph = helper.make_graph([node], "g", [helper.make_value_info("s", kind)], [])
    with pytest.raises(FeedError, match="input 's' is a tensor, but the model needs a sequence"):
        feed_files.check({"s": np.zeros(2, np.float32)}, helper.make_model(graph), "here")


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", a=np.array([print], object))
    with pytest.raises(FeedError, match="Object arrays cannot be loaded"):
        feeds.read(tmp_path / "mine.npz", MODEL)


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.npz").write_bytes(b"no archive")
    with pytest.raises(FeedError, match=r"is not a readable \.npz file"):
        feeds.read(tmp_path / "mine.npz", MODEL)


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_files, "MAX_BYTES", 100_000)
    with zipfile.ZipFile(tmp_path / "mine.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(200_000))
    with pytest.raises(FeedError, match="has 200000 bytes unpacked; the limit is 100000"):
        feeds.read(tmp_path / "mine.npz", MODEL)


def test_a_path_where_nothing_is_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match="no such file or folder"):
        feeds.read(tmp_path / "mine.npz", MODEL)
    with pytest.raises(FeedError, match=r"has no input_0\.pb, and no test_data_set_\* with one"):
        feeds.read(tmp_path, MODEL)


def test_more_inputs_than_the_model_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FeedError, match="has more inputs than the model, which has 2"):
        feeds.read(with_data_set(tmp_path / "test_data_set_0", **GOOD, c=GOOD["a"]), MODEL)


def test_a_broken_tensor_is_refused_by_its_file(tmp_path: Path) -> None:
    folder = with_data_set(tmp_path / "test_data_set_0", **GOOD)
    (folder / "input_1.pb").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ModelFileError, match=r"input_1\.pb' is not a valid tensor"):
        feeds.read(folder, MODEL)
