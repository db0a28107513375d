"""The oracle of models that are larger than the memory: weights a block at a time, values on disk, the same bits."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from threadpoolctl import threadpool_limits

from epcheck.conformance.test_data import model_file
from epcheck.generators.array import Array
from epcheck.models import zoo
from epcheck.models.feeds import feeds
from epcheck.models.oracle import large_weights, oracle, value_store
from epcheck.models.oracle.node import OracleError
from epcheck.models.validation import truth
from tests.models import written_models

RNG = np.random.default_rng(3)
SIDE, LAYERS = 256, 8


def whole(*shape: int, dtype: Any = np.float32) -> Array:
    """Whole numbers: sums of their products are exact in any order."""
    return RNG.integers(-9, 10, shape).astype(dtype)


def one_node(op_type: str, weights: dict[str, Array], x: Array, **attributes: Any) -> onnx.ModelProto:
    """A node that reads x where it is not in the weights, whose order is that of the inputs."""
    domain = "com.microsoft" if op_type == "MatMulNBits" else ""
    node = helper.make_node(op_type, ["x" if name == "x" else name for name in weights], ["y"], domain=domain,
                            **attributes)  # fmt: skip
    ends = [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]  # fmt: skip
    tensors = [numpy_helper.from_array(value, name) for name, value in weights.items() if name != "x"]
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


BITS = {"B": RNG.integers(0, 256, (24, 2, 16), np.uint8), "scales": whole(48), "zero": np.full((24, 1), 0x78, np.uint8)}
X = np.empty(0)
NODES: dict[str, tuple[str, dict[str, Array], Array, dict[str, Any]]] = {
    "vector": ("MatMul", {"x": X, "w": whole(16, 24)}, whole(16), {}),
    "matrix": ("MatMul", {"x": X, "w": whole(16, 24, dtype=np.float16)}, whole(3, 16, dtype=np.float16), {}),
    "batch": ("MatMul", {"x": X, "w": whole(2, 16, 24)}, whole(2, 3, 16), {}),
    "weight first": ("MatMul", {"w": whole(16, 24), "x": X}, whole(24, 3), {}),
    "gemm": ("Gemm", {"x": X, "w": whole(16, 24), "c": whole(24)}, whole(3, 16), {"alpha": 2.0}),
    "gemm, transposed": ("Gemm", {"x": X, "w": whole(24, 16), "c": whole(3, 1)}, whole(3, 16), {"transB": 1}),
    "gemm without bias": ("Gemm", {"x": X, "w": whole(16, 24)}, whole(16, 3), {"transA": 1}),
    "rows": ("Gather", {"w": whole(16, 24), "x": X}, np.array([[3, -1], [3, 0]]), {}),
    "columns": ("Gather", {"w": whole(16, 24), "x": X}, np.array([23, 5, -24]), {"axis": -1}),
    "four bits": ("MatMulNBits", {"x": X, "B": BITS["B"], "scales": BITS["scales"], "zero": BITS["zero"].reshape(-1)},
                  whole(3, 64), {"K": 64, "N": 24, "bits": 4, "block_size": 32}),
    "other": ("Transpose", {"w": whole(16, 24)}, whole(1), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_a_large_weight_gives_what_a_small_one_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op_type, weights, x, attributes = NODES[name]
    built = one_node(op_type, weights, x, **attributes)
    expected = oracle.evaluate(built, {"x": x}).values["y"]
    widened: list[int] = []

    def widen(value: Any) -> Any:
        widened.append(np.size(value))
        return np.asarray(value, np.float64) if np.asarray(value).dtype.kind == "f" else value

    monkeypatch.setattr(large_weights, "WHOLE_BYTES", 0)
    monkeypatch.setattr(large_weights, "GROUP", 5)
    monkeypatch.setattr(large_weights, "BLOCK_BYTES", 0)
    monkeypatch.setattr(large_weights, "widen_value", widen)
    found = oracle.evaluate(built, {"x": x}).values["y"]
    assert isinstance(found, np.ndarray)
    assert isinstance(expected, np.ndarray)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    largest = max(value.size for each, value in weights.items() if each != "x")
    assert (max(widened) < largest) == (name not in ("other", "weight first"))


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 96, 1900), (8, 400, 1537), (37, 300, 801)])
def test_blocks_give_the_bits_of_the_whole_product(
    rows: int, inner: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, w = (RNG.standard_normal(shape).astype(np.float32) for shape in ((rows, inner), (inner, columns)))
    built = one_node("MatMul", {"x": X, "w": w}, x)
    with threadpool_limits(1):
        expected = np.asarray(oracle.evaluate(built, {"x": x}).values["y"])
        monkeypatch.setattr(large_weights, "WHOLE_BYTES", 0)
        monkeypatch.setattr(large_weights, "BLOCK_BYTES", 0)
        assert np.asarray(oracle.evaluate(built, {"x": x}).values["y"]).tobytes() == expected.tobytes()


def test_an_index_beyond_a_large_table_is_refused_as_that_of_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    built = one_node("Gather", {"w": whole(16, 24), "x": X}, np.array([16]))
    refused = []
    for size in (large_weights.WHOLE_BYTES, 0):
        monkeypatch.setattr(large_weights, "WHOLE_BYTES", size)
        with pytest.raises(OracleError) as error:
            oracle.evaluate(built, {"x": np.array([16])})
        refused.append(str(error.value))
    assert refused[0] == refused[1]


def test_a_body_sees_a_large_weight_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """Captured by a Loop, carried through it, and given back as it is."""
    body = helper.make_graph(
        [helper.make_node("MatMul", ["state", "w"], ["next"]), helper.make_node("Identity", ["going"], ["still"]),
         helper.make_node("Identity", ["w"], ["seen"])],
        "body",
        [helper.make_tensor_value_info(name, kind, None) for name, kind in (
            ("at", TensorProto.INT64), ("going", TensorProto.BOOL), ("state", TensorProto.FLOAT))],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in (
            ("still", TensorProto.BOOL), ("next", TensorProto.FLOAT), ("seen", TensorProto.FLOAT))],
    )  # fmt: skip
    node = helper.make_node("Loop", ["count", "", "first"], ["last", "all"], body=body)
    tensors = [numpy_helper.from_array(whole(3, 3) / np.float32(7), name) for name in ("w", "first")]
    tensors.append(numpy_helper.from_array(np.array(2), "count"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("last", "all", "first")]
    built = helper.make_model(helper.make_graph([node], "g", [], ends, tensors),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=9)  # fmt: skip
    expected = oracle.evaluate(built, {}).values
    monkeypatch.setattr(large_weights, "WHOLE_BYTES", 0)
    found = oracle.evaluate(built, {}).values
    for name in ("last", "all", "first"):
        assert np.asarray(found[name]).dtype == np.float64
        np.testing.assert_array_equal(np.asarray(found[name]), np.asarray(expected[name]))


@pytest.mark.parametrize("name", ["decoder", "ssd", "unet", "control_flow"])
def test_values_on_disk_are_the_same_bit_by_bit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    built = zoo.named(name).build()
    values = {each: value for each, value in feeds.generate(built).items() if value is not None}
    names = [each for node in built.graph.node for each in node.output if each]
    expected = oracle.evaluate(built, values, names).values
    monkeypatch.setattr(value_store, "ROOM_BYTES", 0)
    monkeypatch.setattr(value_store, "LEAST_BYTES", 1)
    found = oracle.evaluate(built, values, names).values
    assert isinstance(found, value_store.ValueStore)
    assert len(found._spilled) > len(names) / 3
    for each in names:
        mine, its = found[each], expected[each]
        if isinstance(its, np.ndarray):
            assert isinstance(mine, np.ndarray)
            assert (mine.dtype, mine.strides) == (its.dtype, its.strides)
            assert mine.tobytes() == its.tobytes()


def chain(folder: Path) -> onnx.ModelProto:
    """LAYERS of MatMul and Relu; the weights are in another file."""
    nodes = []
    for at in range(LAYERS):
        nodes += [helper.make_node("MatMul", [f"r{at}", f"w{at}"], [f"m{at}"]),
                  helper.make_node("Relu", [f"m{at}"], [f"r{at + 1}"])]  # fmt: skip
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, SIDE]) for name in ("r0", f"r{LAYERS}")]
    tensors = [numpy_helper.from_array(RNG.standard_normal((SIDE, SIDE)).astype(np.float32) / 16, f"w{at}")
               for at in range(LAYERS)]  # fmt: skip
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    built = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save_model(built, folder / "model.onnx", save_as_external_data=True, location="weights.bin")
    return model_file.parse(folder / "model.onnx")


def test_weights_are_opened_one_after_the_other_and_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = chain(tmp_path)
    x = {"r0": np.ones((2, SIDE), np.float32)}
    embedded = model_file.load(tmp_path / "model.onnx")
    read, opened, together = model_file.array_of, list[Any](), list[int]()

    def open_weight(tensor: onnx.TensorProto, folder: Path) -> Array:
        value = read(tensor, folder)
        opened.append(weakref.ref(value))
        together.append(sum(each() is not None for each in opened))
        return value

    expected = oracle.evaluate(embedded, x).values[f"r{LAYERS}"]
    monkeypatch.setattr(model_file, "array_of", open_weight)
    gc.collect()
    tracemalloc.start()
    found = oracle.evaluate(built, x, folder=tmp_path).values[f"r{LAYERS}"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(np.asarray(found), np.asarray(expected))
    assert (len(opened), max(together)) == (LAYERS, 1)
    assert peak < 1.3 * SIDE * SIDE * 8 + (1 << 20)  # and all LAYERS take 4 MiB


def test_a_truth_of_a_model_of_any_size_is_that_of_its_embedded_weights(tmp_path: Path) -> None:
    built, trial = chain(tmp_path), truth.Trial("seed 0", {"r0": np.ones((2, SIDE), np.float32)}, ())
    found = truth.of_trials(built, {0: trial}, 1, folder=tmp_path)
    expected = truth.of_trials(model_file.load(tmp_path / "model.onnx"), {0: trial}, 1)
    assert found.values[0] is not None
    assert expected.values[0] is not None
    assert np.array_equal(np.asarray(found.values[0][f"r{LAYERS}"]), np.asarray(expected.values[0][f"r{LAYERS}"]))
    assert {*found.inner} == {*expected.inner} == {name for node in built.graph.node for name in node.output}


def test_weights_outside_the_folder_are_refused_and_without_one_nothing_is_opened(tmp_path: Path) -> None:
    built = chain(tmp_path)
    x = {"r0": np.ones((2, SIDE), np.float32)}
    with pytest.raises(OracleError, match=r"the data of 'w0' is in another file; name its folder"):
        oracle.evaluate(built, x)
    for entry in built.graph.initializer[3].external_data:
        if entry.key == "location":
            entry.value = f"../{tmp_path.name}/../weights.bin"
    (tmp_path.parent / "weights.bin").write_bytes((tmp_path / "weights.bin").read_bytes())
    with pytest.raises(OracleError, match=r"tensor 'w3' has its data at '.*weights\.bin', outside the model's folder"):
        oracle.evaluate(built, x, folder=tmp_path)


PROGRAM = """
import sys, time
import numpy as np, onnx
from epcheck.models.oracle import oracle, value_store
value_store.ROOM_BYTES = value_store.LEAST_BYTES = 1

class Wait:
    def operands(self, node, inputs):
        return inputs
    def results(self, node, values):
        if node.op_type == "Neg":
            print("at Neg", flush=True)
            time.sleep(600)
        return values

model = onnx.load(sys.argv[1])
oracle.evaluate(model, {"x": np.ones((64, 64), np.float32)}, ["a", "b", "y"], disturbance=Wait())
"""


def test_an_evaluation_that_is_killed_leaves_no_temporary_file(tmp_path: Path) -> None:
    path, temporary = tmp_path / "model.onnx", tmp_path / "temporary"
    temporary.mkdir()
    onnx.save(written_models.model("g (float[64, 64] x) => (float[64, 64] y) { a = Exp(x) b = Mul(a, x) y = Neg(b) }"),
              path)  # fmt: skip
    environment = {**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary), "TMP": str(temporary)}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(path)], stdout=subprocess.PIPE, env=environment,
                          encoding="utf-8") as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "at Neg\n"
        if sys.platform == "linux":  # the values are there, in a file without a name
            links = (str(link.readlink()) for link in Path(f"/proc/{process.pid}/fd").iterdir())
            assert any(link.startswith(str(temporary)) for link in links)
        process.kill()
    assert list(temporary.iterdir()) == []


def test_values_that_do_not_fit_on_the_disk_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_options: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(value_store, "ROOM_BYTES", 0)
    monkeypatch.setattr(value_store.tempfile, "TemporaryFile", full)
    built = written_models.model("g (float[64, 64] x) => (float[64, 64] y) { a = Exp(x) y = Mul(a, x) }")
    with pytest.raises(OracleError, match=r"its values do not fit into the folder '.*' for temporary files: No space"):
        oracle.evaluate(built, {"x": np.ones((64, 64), np.float32)})
