"""Models of strangers: nothing outside their folder is read, nothing in them is interpreted, and they are judged."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.api import ReplayOptions, replay
from epcheck.conformance.records.terms import MISMATCH, PASS
from epcheck.conformance.test_data import model_file, repro
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.generators.array import Array
from epcheck.generators.citation import statement
from epcheck.generators.truth import Output, Ulp
from tests.command_line import Done, call, refused
from tests.conformance.small_cases import HERE

pytestmark = pytest.mark.slow  # commands in processes of their own

WEIGHTS = np.arange(4, dtype=np.float32)


def a_model(
    names: tuple[str, str] = ("x", "y"), weights: TensorProto | None = None, element: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    """y = x + w for four elements."""
    x, y = names
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Add", [x, "w"], [y], name="<script>alert(1)</script>\0")],
        "[red]graph[/red]",
        [info(x, element, [4])],
        [info(y, element, None)],
        [weights or numpy_helper.from_array(WEIGHTS, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def external(location: str, dims: Sequence[int] = (4,), **entries: object) -> TensorProto:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def a_folder(
    path: Path, model: onnx.ModelProto | None = None, inputs: Sequence[Array] = (), outputs: Sequence[Array] = ()
) -> Path:
    data = path / "test_data_set_0"
    data.mkdir(parents=True)
    (path / "model.onnx").write_bytes((model or a_model()).SerializeToString())
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for index, array in enumerate(arrays):
            (data / f"{kind}_{index}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    return path


ONES = np.ones(4, np.float32)
RIGHT = ONES + WEIGHTS


def test_a_target_that_gives_the_expected_outputs_passes(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "m", inputs=[ONES], outputs=[RIGHT])
    done = call("replay", str(folder), "-t", "cpu", "--baseline", "none")
    assert done == Done(0, "pass: test_data_set_0: cpu: gives the expected outputs\n", "")


def test_a_target_that_does_not_is_shown_where_and_by_how_much(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "m", inputs=[ONES], outputs=[RIGHT + np.float32([0, 0, 1, 0])])
    done = call("replay", str(folder), "-t", "cpu", "--baseline", "reference")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines() == [
        "mismatch: test_data_set_0: cpu: y: 1 of 4 elements are wrong; each must be within 8389 ULP "
        "(onnx.backend.test's rtol 1e-3 and atol 1e-7)",
        "  y[2]: expected 4.0, got 3.0, 2.09715e+06 ULP away",
        "  reference, the baseline: mismatch: y: 1 of 4 elements are wrong; each must be within 8389 ULP "
        "(onnx.backend.test's rtol 1e-3 and atol 1e-7)",
    ]


@pytest.mark.parametrize(
    ("dtype", "off", "exact", "status"),
    [
        ("float32", 0.0005, False, PASS),
        ("float32", 0.005, False, MISMATCH),
        ("float32", 0.0005, True, MISMATCH),
        ("float16", 2.0**-10, False, PASS),
        ("float16", 2.0**-8, False, MISMATCH),
        ("float64", 1e-4, False, PASS),
        ("int64", 1, False, MISMATCH),
        ("int64", 0, False, PASS),
    ],
)
def test_the_bound_is_onnx_s_own_and_integers_are_exact(
    tmp_path: Path, dtype: str, off: float, exact: bool, status: str
) -> None:
    weights = numpy_helper.from_array(np.zeros(4, dtype), "w")
    model = a_model(weights=weights, element=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    x = np.ones(4, dtype)
    folder = a_folder(tmp_path / "m", model, [x], [x + np.array([0, 0, 0, off], dtype)])
    (found,) = replay(ReplayOptions(folder, targets=("cpu",), baseline="none", exact=exact))
    assert (found.status, found.case_id) == (status, f"Add-14/{dtype}/test_data_set_0[m]")


def test_without_outputs_the_baseline_says_what_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    folder = a_folder(tmp_path / "m", inputs=[ONES])
    assert call("replay", str(folder), "-t", "cpu").out == "pass: test_data_set_0: cpu: gives the expected outputs\n"
    done = call("replay", str(folder), "-t", "python:faulty_backends:right", "--baseline", "cpu")
    assert done.code == 1
    assert done.out.startswith("mismatch: test_data_set_0: python:faulty_backends:right: y: ")
    assert "y[3]: expected 4.0, got 1.0" in done.out


def test_without_outputs_and_baseline_nobody_knows(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "m", inputs=[ONES])
    sentence = refused("replay", str(folder), "-t", "cpu", "--baseline", "none")
    assert sentence == "'test_data_set_0' has no output_0.pb: name a baseline with --baseline"


def test_every_data_set_is_replayed_on_every_target(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "m", inputs=[ONES], outputs=[RIGHT])
    a_folder(tmp_path / "n", inputs=[ONES + 1], outputs=[RIGHT])
    (tmp_path / "n/test_data_set_0").rename(folder / "test_data_set_1")
    done = call("replay", str(folder), "-t", "cpu", "-t", "reference", "--baseline", "none")
    assert [line.split(":")[:3] for line in done.out.splitlines() if not line.startswith("  ")] == [
        ["pass", " test_data_set_0", " cpu"],
        ["pass", " test_data_set_0", " reference"],
        ["mismatch", " test_data_set_1", " cpu"],
        ["mismatch", " test_data_set_1", " reference"],
    ]
    assert done.code == 1


def test_a_repro_folder_is_replayed(tmp_path: Path) -> None:
    ids = call("list", "--op", "TopK", "--dtype", "float32", "-k", "TopK-11").out.splitlines()
    assert call("repro", ids[0], "--out", str(tmp_path)).code == 0
    (folder,) = tmp_path.iterdir()
    assert call("replay", str(folder), "-t", "cpu", "--exact").code == 0
    assert call("replay", str(tmp_path), "-t", "cpu", "--exact").code == 0  # the folder in it is found


def test_a_worker_that_dies_of_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    folder = a_folder(tmp_path / "m", inputs=[ONES], outputs=[RIGHT])
    done = call("replay", str(folder), "-t", "python:faulty_backends:aborts_always", "--baseline", "none")
    assert done.code == 1
    assert done.out.startswith("crash: test_data_set_0: python:faulty_backends:aborts_always: the worker process ended")


@pytest.mark.parametrize("name", ["y\0", "<script>alert(1)</script>", "[red]y[/red]", "\x1b[31my", "y\u202ez", ":x:"])
def test_names_are_shown_and_never_interpreted(tmp_path: Path, name: str) -> None:
    model = a_model(("x" + name, name))
    folder = a_folder(tmp_path / "m", model, [ONES], [RIGHT + 1])
    done = call("replay", str(folder), "-t", "reference", "--baseline", "none")
    shown = name.replace("\0", r"\x00").replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")
    assert (done.code, done.err) == (1, "")
    assert done.out.startswith(f"mismatch: test_data_set_0: reference: {shown}: 4 of 4 elements are wrong")
    assert all(line.isprintable() for line in done.out.splitlines())


def test_external_data_inside_the_folder_is_embedded(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "m", a_model(weights=external("data/w.bin", offset=4, length=16)), [ONES], [RIGHT])
    (folder / "data").mkdir()
    (folder / "data/w.bin").write_bytes(b"head" + WEIGHTS.tobytes() + b"tail")
    (tensor,) = model_file.load(folder / "model.onnx").graph.initializer
    assert (tensor.raw_data, tensor.data_location, list(tensor.external_data)) == (WEIGHTS.tobytes(), 0, [])
    assert call("replay", str(folder), "-t", "cpu", "--baseline", "none").code == 0


def escape_by_link(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent / "secret")


def escape_by_linked_folder(folder: Path) -> None:
    (folder / "up").symlink_to(folder.parent)


def make_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def make_circle(folder: Path) -> None:
    (folder / "circle").symlink_to("circle")


def nothing(_folder: Path) -> None:
    pass


@pytest.mark.skipif(sys.platform == "win32", reason="symbolic links and pipes")
@pytest.mark.parametrize(
    ("tensor", "prepare", "words"),
    [
        (external("../secret"), nothing, "has its data at '../secret', outside the model's folder"),
        (external("a/../../secret"), nothing, "has its data at 'a/../../secret', outside the model's folder"),
        (
            external("/etc/passwd"),
            nothing,
            "has its data at '/etc/passwd', which is not a path inside the model's folder",
        ),
        (external("C:\\secret"), nothing, "which is not a path inside the model's folder"),
        (external("\\\\host\\share"), nothing, "which is not a path inside the model's folder"),
        (external("..\\secret"), nothing, "which is not a path inside the model's folder"),
        (external("a\0b"), nothing, "which is not a path inside the model's folder"),
        (external(""), nothing, "has its data at '', which is not a path inside the model's folder"),
        (external("a" * 5000), nothing, "where no file can be"),
        (external("circle"), make_circle, "has its data at 'circle', where "),
        (external("link"), escape_by_link, "has its data at 'link', outside the model's folder"),
        (external("up/secret"), escape_by_linked_folder, "has its data at 'up/secret', outside the model's folder"),
        (external("pipe"), make_pipe, "has its data at 'pipe', but there is no such file"),
        (external("."), nothing, "has its data at '.', but there is no such file"),
        (external("none"), nothing, "has its data at 'none', but there is no such file"),
        (external("w.bin", length=64), nothing, "has its data at bytes 0 to 64 of 'w.bin', which has 16"),
        (external("w.bin", offset=8, length=16), nothing, "has its data at bytes 8 to 24 of 'w.bin', which has 16"),
        (external("w.bin", offset=-16), nothing, "has its data at bytes -16 to 16 of 'w.bin', which has 16"),
        (external("w.bin", offset=10**30), nothing, "has its data at bytes 1000000000000000000000000000000 to 16 of"),
        (external("w.bin", offset="x"), nothing, "does not say where its data is, or of what type"),
        (external("w.bin", (5,)), nothing, "has 16 bytes of data, but its dimensions [5] need 20"),
        (external("huge", (1 << 30,)), nothing, "makes the model larger than 2147483647 bytes"),
    ],
    ids=lambda value: value.external_data[0].value if isinstance(value, TensorProto) else "",
)
def test_external_data_anywhere_else_is_refused(
    tmp_path: Path, tensor: TensorProto, prepare: Callable[[Path], None], words: str
) -> None:
    (tmp_path / "secret").write_bytes(bytes(16))
    folder = a_folder(tmp_path / "m", a_model(weights=tensor), [ONES], [RIGHT])
    (folder / "w.bin").write_bytes(WEIGHTS.tobytes())
    with (folder / "huge").open("wb") as sparse:
        sparse.truncate(1 << 32)
    prepare(folder)
    sentence = refused("replay", str(folder), "-t", "cpu", "--baseline", "none")
    assert sentence.startswith(f"'{folder}/model.onnx': tensor 'w' ")
    assert words in sentence


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        ((1 << 40, 1 << 40), "has the dimensions [1099511627776, 1099511627776], which is too large"),
        ((-2, -2), "has the dimensions [-2, -2]"),
    ],
)
def test_external_data_of_sizes_that_nothing_has_is_refused(tmp_path: Path, dims: Sequence[int], words: str) -> None:
    folder = a_folder(tmp_path / "m", a_model(weights=external("w.bin", dims)), [ONES], [RIGHT])
    (folder / "w.bin").write_bytes(WEIGHTS.tobytes())
    sentence = refused("replay", str(folder), "-t", "cpu", "--baseline", "none")
    assert sentence.startswith(f"'{folder}/model.onnx' is not a valid ONNX model: tensor 'w' {words}")


def hidden(tensor: TensorProto, where: str) -> onnx.ModelProto:
    """A model with the tensor in a place that is easy to forget."""
    model = a_model()
    node = model.graph.node.add(op_type="Constant", output=["c"])
    attribute = node.attribute.add(name="value", t=numpy_helper.from_array(WEIGHTS, "c"))
    body = helper.make_graph([], "body", [], [], [tensor])
    match where:
        case "attribute":
            attribute.t.CopyFrom(tensor)
        case "list attribute":
            attribute.tensors.add().CopyFrom(tensor)
        case "sparse attribute":
            attribute.sparse_tensor.values.CopyFrom(tensor)
        case "sparse initializer":
            model.graph.sparse_initializer.add().indices.CopyFrom(tensor)
        case "subgraph":
            attribute.g.CopyFrom(body)
        case "subgraph of a list":
            attribute.graphs.add().CopyFrom(body)
        case "function":
            inner = model.functions.add(name="f").node.add(op_type="Constant", output=["c"])
            inner.attribute.add(name="value").t.CopyFrom(tensor)
        case "function default":
            model.functions.add(name="f").attribute_proto.add(name="a").t.CopyFrom(tensor)
        case "training":
            model.training_info.add().algorithm.CopyFrom(body)
    return model


@pytest.mark.parametrize(
    "where",
    ["attribute", "list attribute", "sparse attribute", "sparse initializer", "subgraph", "subgraph of a list",
     "function", "function default", "training"],
)  # fmt: skip
def test_external_data_is_found_wherever_it_hides(tmp_path: Path, where: str) -> None:
    (tmp_path / "model.onnx").write_bytes(hidden(external("../secret"), where).SerializeToString())
    with pytest.raises(ModelFileError, match="outside the model's folder"):
        model_file.load(tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not an ONNX model: its graph has no node"),
        (b"\xff" * 100, "is not an ONNX model: its bytes cannot be parsed"),
        (b"\x3a" + b"\x3a\x7f" * 1000, "is not an ONNX model: its bytes cannot be parsed"),
    ],
    ids=["empty", "no_protobuf", "cut_short"],
)
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    assert refused("replay", str(tmp_path), "-t", "cpu") == f"'{tmp_path}/model.onnx' {words}"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "model.onnx").open("wb") as sparse:
        sparse.truncate(1 << 40)
    sentence = refused("replay", str(tmp_path), "-t", "cpu")
    assert sentence == f"'{tmp_path}/model.onnx' has 1099511627776 bytes; the limit is 2147483647"


def test_folders_without_a_model_or_data_are_named(tmp_path: Path) -> None:
    sentence = refused("replay", str(tmp_path / "no"), "-t", "cpu")
    assert sentence == f"no such file: {tmp_path}/no/model.onnx; check the path"
    folder = a_folder(tmp_path / "m", inputs=[ONES])
    (folder / "test_data_set_0/input_0.pb").unlink()
    sentence = refused("replay", str(folder), "-t", "cpu")
    assert sentence == f"'{folder}/test_data_set_0' has no value for the input 'x'"
    (folder / "test_data_set_0").rmdir()
    sentence = refused("replay", str(folder), "-t", "cpu")
    assert sentence == f"'{folder}' has no test_data_set_0 with a value for the input 'x'"


def tensor_file(**fields: Any) -> bytes:
    return bytes(TensorProto(**fields).SerializeToString())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff" * 20, "is not a valid tensor"),
        (tensor_file(data_type=1, dims=[1 << 40], raw_data=bytes(4)), "is not a valid tensor"),
        (tensor_file(data_type=1, dims=[-4], raw_data=bytes(4)), "is not a valid tensor"),
        (tensor_file(data_type=99, dims=[1], raw_data=bytes(4)), "is not a valid tensor"),
        (tensor_file(data_type=8, dims=[1], string_data=[b"a"]), "holds STRING, which is not supported"),
        (tensor_file(data_type=16, dims=[1], raw_data=bytes(2)), "holds BFLOAT16, which is not supported"),
        (external("../secret").SerializeToString(), "has external data, which test data must not have"),
    ],
    ids=["no_protobuf", "too_few_bytes", "negative", "unknown_type", "text", "bfloat16", "external"],
)
def test_test_data_that_is_no_tensor_of_numbers_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    folder = a_folder(tmp_path / "m", inputs=[ONES], outputs=[RIGHT])
    file = folder / "test_data_set_0/input_0.pb"
    file.write_bytes(content)
    assert refused("replay", str(folder), "-t", "cpu").startswith(f"'{file}' {words}")


@pytest.mark.parametrize(("factor", "status"), [(0.5, PASS), (2.0, MISMATCH)])
def test_a_folder_of_ours_is_judged_by_its_own_bound(tmp_path: Path, factor: float, status: str) -> None:
    output = Output("y", RIGHT, Ulp(8.0, (statement("made up"),)), RIGHT.astype(np.float64))
    folder = tmp_path / "m"
    repro.write_folder(folder, a_model().SerializeToString(), {"x": ONES}, repro.Judged("a model", (output,)))
    unit = np.spacing(RIGHT[-1])
    moved = RIGHT - np.float32([0, 0, 0, factor * 8 * unit])
    data = folder / "test_data_set_0"
    (data / "output_0.pb").write_bytes(numpy_helper.from_array(moved, "y").SerializeToString())
    (data / "exact_0.pb").write_bytes(numpy_helper.from_array(moved.astype(np.float64), "y").SerializeToString())
    assert [item.status for item in replay(ReplayOptions(folder, ("cpu",), "none"))] == [status]


def test_a_bound_of_another_shape_is_refused(tmp_path: Path) -> None:
    folder = a_folder(tmp_path / "m", inputs=[ONES], outputs=[RIGHT])
    (folder / "case.json").write_text("{}")
    wrong = numpy_helper.from_array(np.zeros(3), "y").SerializeToString()
    (folder / "test_data_set_0" / "allowed_0.pb").write_bytes(wrong)
    with pytest.raises(ModelFileError, match=r"allowed_0\.pb, .* must have the shape of output_0\.pb"):
        list(replay(ReplayOptions(folder, ("cpu",), "none")))
