"""`fix` on the real DirectML provider: each model is placed or mended, and has the values of the original."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from epcheck import api
from epcheck.conformance.targets.target import Target
from epcheck.models.fix.fixed import Fixed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lab is for Linux")

X = np.random.default_rng(5).normal(size=(2, 3, 4)).astype(np.float32)


def node(operator: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [output], name=output, **attributes)


def save(
    path: Path,
    nodes: list[onnx.NodeProto],
    constants: Mapping[str, Any],
    shape: list[int | str],
    opset: int = 17,
    dtype: int = TensorProto.FLOAT,
) -> Path:
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info(nodes[-1].output[0], dtype, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model, data_prop=True), path)
    return path


def fix(model: Path, dml: Target, **options: Any) -> tuple[Fixed, onnx.ModelProto]:
    out = model.with_name("fixed.onnx")
    found = api.fix(api.FixOptions(model, target=dml, out=out, seeds=(0,), own_process=False, **options))
    assert found.written == out, found.statement
    fixed = onnx.load(out)
    onnx.checker.check_model(fixed, full_check=True)
    assert found.after.status == "right"
    return found, fixed


def compute(model: Path, x: Any) -> Any:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def count_elsewhere(found: Fixed) -> tuple[int, int]:
    assert found.before.placement is not None
    assert found.after.placement is not None
    return len(found.before.placement.elsewhere), len(found.after.placement.elsewhere)


def test_a_reshape_that_is_refused_loses_allowzero(dml: Target, tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "r"), node("Reshape", "r s", "y", allowzero=1)]
    model = save(tmp_path / "model.onnx", nodes, {"s": np.array([2, -1])}, [2, 3, 4])
    found, fixed = fix(model, dml)
    assert (found.status, found.before.status, found.after.status) == ("fixed", "refused", "right")
    assert [each.part for each in found.differences] == ["y"]
    assert found.differences[0].before == "Reshape(r, s) -> y, allowzero=1"
    assert found.differences[0].after == "Reshape(r, s) -> y"
    assert fixed.graph.initializer[0].name == "s"
    options = api.ValidateOptions((tmp_path / "fixed.onnx",), (dml,), seeds=(0,), own_process=False)
    assert api.validate(options).validation.status == "right"  # the file, as `fix` says of every model
    np.testing.assert_array_equal(compute(tmp_path / "fixed.onnx", X), compute(model, X))


def test_opset_22_becomes_21_where_each_node_can_be_written_so(dml: Target, tmp_path: Path) -> None:
    nodes = [node("Elu", "x", "elu"), node("Gelu", "elu", "gelu"), node("Mish", "gelu", "y")]
    model = save(tmp_path / "model.onnx", nodes, {}, [2, 3, 4], opset=22)
    found, fixed = fix(model, dml)
    assert found.status == "fixed"
    assert count_elsewhere(found) == (2, 0)
    assert fixed.opset_import[0].version == 21
    assert {n.op_type for n in fixed.graph.node} >= {"Elu", "Erf", "Mish"}
    assert found.differences[0].part == "opset of ai.onnx"
    np.testing.assert_allclose(compute(tmp_path / "fixed.onnx", X), compute(model, X), rtol=1e-5, atol=1e-6)


def test_grid_sample_is_renamed_for_an_older_opset(dml: Target, tmp_path: Path) -> None:
    grid = np.random.default_rng(0).uniform(-1, 1, (1, 5, 5, 2)).astype(np.float32)
    nodes = [node("GridSample", "x grid", "s", mode="linear"), node("Relu", "s", "y")]
    model = save(tmp_path / "model.onnx", nodes, {"grid": grid}, [1, 2, 6, 6], opset=20)
    found, fixed = fix(model, dml)
    assert count_elsewhere(found) == (1, 0)
    assert fixed.opset_import[0].version == 19
    assert helper.get_attribute_value(fixed.graph.node[0].attribute[0]) == b"bilinear"
    x = np.random.default_rng(1).normal(size=(1, 2, 6, 6)).astype(np.float32)
    np.testing.assert_allclose(compute(tmp_path / "fixed.onnx", x), compute(model, x), rtol=1e-5, atol=1e-6)


def test_a_float64_node_computes_in_float32_between_casts(dml: Target, tmp_path: Path) -> None:
    nodes = [
        node("Cast", "x", "wide", to=TensorProto.DOUBLE),
        node("Elu", "wide", "l", alpha=0.5),
        node("Cast", "l", "y", to=TensorProto.FLOAT),
    ]
    model = save(tmp_path / "model.onnx", nodes, {}, [2, 3, 4])
    found, fixed = fix(model, dml)
    assert (found.before.status, found.after.status) == ("refused", "right")
    assert [n.op_type for n in fixed.graph.node] == ["Cast", "Cast", "Elu", "Cast", "Cast"]
    np.testing.assert_allclose(compute(tmp_path / "fixed.onnx", X), np.where(X < 0, np.expm1(X) / 2, X), rtol=1e-5)


def test_negative_pads_become_a_slice(dml: Target, tmp_path: Path) -> None:
    nodes = [node("Pad", "x", "p", pads=[0, -1, 0, 0, 0, 1]), node("Relu", "p", "y")]
    model = save(tmp_path / "model.onnx", nodes, {}, [2, 3, 4], opset=10)
    found, fixed = fix(model, dml)
    assert count_elsewhere(found) == (1, 0)
    assert [n.op_type for n in fixed.graph.node] == ["Slice", "Pad", "Relu"]
    np.testing.assert_array_equal(compute(tmp_path / "fixed.onnx", X), compute(model, X))


def test_sizes_are_fixed_unless_they_are_to_stay_dynamic(dml: Target, tmp_path: Path) -> None:
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "batch"),
        node("Concat", "batch minus", "sizes", axis=0),
        node("Reshape", "x sizes", "y"),
    ]
    model = save(tmp_path / "model.onnx", nodes, {"zero": np.array([0]), "minus": np.array([-1])}, ["batch", 3, 4])
    found, fixed = fix(model, dml, dims={"batch": (2,)})
    assert count_elsewhere(found) == (2, 0)
    assert [d.dim_value for d in fixed.graph.input[0].type.tensor_type.shape.dim] == [2, 3, 4]
    assert found.differences[0].part == "input 'x'"
    np.testing.assert_array_equal(compute(tmp_path / "fixed.onnx", X), X.reshape(2, 12))
    kept = api.fix(api.FixOptions(model, target=dml, out=tmp_path / "none.onnx", sizes=False, own_process=False))
    assert (kept.status, kept.written, kept.kept) == ("remains", None, ())
    assert not (tmp_path / "none.onnx").exists()


def test_layout_1_becomes_transposes_in_another_opset(dml: Target, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    weights = {"w": rng.normal(size=(1, 12, 4)).astype(np.float32), "r": rng.normal(size=(1, 12, 4)).astype(np.float32)}
    nodes = [helper.make_node("GRU", ["x", "w", "r"], ["y"], name="gru", layout=1, hidden_size=4)]
    model = save(tmp_path / "model.onnx", nodes, weights, [2, 3, 4], opset=22)
    out = tmp_path / "fixed.onnx"
    found = api.fix(api.FixOptions(model, target=dml, out=out, seeds=(0,), rtol=1e-5, own_process=False))
    assert (found.status, found.before.status, count_elsewhere(found)) == ("fixed", "refused", (1, 0))
    fixed = onnx.load(out)
    assert [n.op_type for n in fixed.graph.node] == ["Transpose", "GRU", "Transpose"]
    expected = ReferenceEvaluator(onnx.load(model)).run(None, {"x": X})[0]
    np.testing.assert_allclose(compute(out, X).ravel(), np.asarray(expected).ravel(), rtol=1e-4, atol=1e-5)


def test_a_node_in_a_body_is_written_in_another_opset(dml: Target, tmp_path: Path) -> None:
    def body(alpha: float) -> onnx.GraphProto:
        inner = helper.make_node("Elu", ["x"], [f"e{alpha}"], name=f"elu{alpha}", alpha=alpha)
        return helper.make_graph(
            [inner], f"b{alpha}", [], [helper.make_tensor_value_info(f"e{alpha}", TensorProto.FLOAT, [2, 3, 4])]
        )

    nodes = [
        node("ReduceSum", "x", "s", keepdims=0),
        node("Greater", "s zero", "c"),
        node("If", "c", "y", then_branch=body(1.0), else_branch=body(2.0)),
    ]
    model = save(tmp_path / "model.onnx", nodes, {"zero": np.array(0, np.float32)}, [2, 3, 4], opset=22)
    found, fixed = fix(model, dml)
    assert fixed.opset_import[0].version == 21
    assert count_elsewhere(found) == (3, 1)
    assert "no kernel for control flow" in next(iter(found.remaining))
    for x in (X, -X):
        np.testing.assert_allclose(compute(tmp_path / "fixed.onnx", x), compute(model, x), rtol=1e-5, atol=1e-6)


def test_a_float16_overflow_is_computed_in_float32(dml: Target, tmp_path: Path) -> None:
    nodes = [
        node("Mul", "x big", "m"),
        node("Mul", "m m", "square"),
        node("Mul", "square small", "s"),
        node("Add", "s x", "y"),
    ]
    constants = {"big": np.array(300, np.float16), "small": np.array(1e-5, np.float16)}
    model = save(tmp_path / "model.onnx", nodes, constants, [2, 3, 4], dtype=TensorProto.FLOAT16)
    found, fixed = fix(model, dml)
    assert (found.before.status, found.after.status) == ("wrong", "right")
    assert {n.name for n in fixed.graph.node if n.op_type == "Cast"} == {"Cast_m_float32", "Cast_s"}
    x = X.astype(np.float16)
    expected = (x.astype(np.float64) * 300) ** 2 * float(np.float16(1e-5)) + x
    np.testing.assert_allclose(compute(tmp_path / "fixed.onnx", x), expected, rtol=4e-3)
