"""`validate` on what exporters write and ONNX does not like: the runtime takes it, and so does the verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from epcheck.api import ValidateOptions, validate
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.models.validation.validation import RIGHT, Validation
from tests.models import written_models


def checked(folder: Path, model: onnx.ModelProto) -> Validation:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return validate(ValidateOptions((path,), ("cpu",), seeds=(0,))).validation


def test_a_wrong_declared_shape_is_a_remark(tmp_path: Path) -> None:
    found = checked(tmp_path, written_models.model("g (float[n, 3] x) => (float[7, 3] y) { y = Relu(x) }"))
    assert found.status == RIGHT
    (remark,) = [finding for finding in found.inspection.findings if "the runtime only warns" in finding.text]
    assert remark.severity == "warning"
    assert remark.text.startswith("output 'y' is declared as [7, 3] and has the shape [1, 3]")


@pytest.mark.parametrize("graph", [
    "g (string[n] x) => (string[n] y) { y = Identity(x) }",
    "g (string[n] x, string[n] z) => (string[n] y) { y = StringConcat(x, z) }",
])  # fmt: skip
def test_text_is_compared_with_that_of_the_oracle(graph: str, tmp_path: Path) -> None:
    found = checked(tmp_path, written_models.model(graph, 20))
    assert (found.status, {verdict.against for verdict in found.verdicts}) == (RIGHT, {"baseline", "oracle"})
    assert [finding.text for finding in found.inspection.findings if "only warns" in finding.text] == []


def test_an_optional_input_runs_twice(tmp_path: Path) -> None:
    model = written_models.model("g (float[3] x) => (float[3] y) { v = Identity(x) y = Relu(v) }", 18)
    element = model.graph.input[0].type.tensor_type
    kind = onnx.helper.make_optional_type_proto(onnx.helper.make_tensor_type_proto(element.elem_type, [3]))
    model.graph.input[0].type.CopyFrom(kind)
    model.graph.node[0].op_type = "OptionalGetElement"
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    np.savez(tmp_path / "x.npz", x=np.array([1, -2, 3], np.float32))
    found = validate(ValidateOptions((path,), ("cpu",), feeds=tmp_path / "x.npz")).validation
    assert found.status == RIGHT, found.headline


def test_two_nodes_of_one_name_are_refused_as_the_runtime_does(tmp_path: Path) -> None:
    model = written_models.model("g (float[3] x) => (float[3] y) { v = Relu(x) y = Neg(v) }")
    for node in model.graph.node:
        node.name = "twice"
    with pytest.raises(ModelFileError, match="2 nodes of its graph are called 'twice'"):
        checked(tmp_path, model)


def test_constants_may_have_one_name_as_the_runtime_makes_weights_of_them(tmp_path: Path) -> None:
    """As in silero_vad_openvino_16k.onnx of silero-vad."""
    two = "a = Constant <value_float = 2.0> () b = Constant <value_float = 3.0> ()"
    model = written_models.model(f"g (float[3] x) => (float[3] y) {{ {two} v = Mul(x, a) y = Add(v, b) }}")
    for node in model.graph.node[:3]:
        node.name = "anon"
    checked(tmp_path, model)


def test_a_dimension_of_minus_one_is_dynamic(tmp_path: Path) -> None:
    model = written_models.model("g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = -1
    found = checked(tmp_path, model)
    assert (found.status, dict(found.inspection.dimensions)) == (RIGHT, {"x[0]": 1})
    assert {verdict.shape for verdict in found.verdicts} == {(1, 3)}


@pytest.mark.parametrize(
    ("graph", "opset", "names"),
    [
        ("g (bfloat16[4] x) => (bfloat16[4] y) { y = Identity(x) }", 17, ("x_float", "y_float")),
        ("g (float8e4m3fn[4] x) => (float[4] y) { y = Cast <to=1> (x) }", 21, ("x_float", "y")),
        ("g (float[4] x) => (int4[4] y) { y = Cast <to=22> (x) }", 21, ("x", "y_int8")),
    ],
)
def test_types_that_numpy_lacks_pass_a_cast(graph: str, opset: int, names: tuple[str, str], tmp_path: Path) -> None:
    model = written_models.model(graph, opset)
    model.ir_version = 10
    found = checked(tmp_path, model)
    assert found.status == RIGHT, found.headline
    assert {verdict.output for verdict in found.verdicts} == {names[1]}
    (remark,) = [finding for finding in found.inspection.findings if "a Cast that the model lacks" in finding.text]
    assert any(f"as '{name}'" in remark.text for name in names)


def test_a_value_in_bfloat16_inside_is_no_output_of_a_bisection() -> None:
    from epcheck.models.graph.wiring import wire

    model = written_models.model("g (float[4] x) => (float[4] y) { b = Cast <to=16> (x) y = Cast <to=1> (b) }")
    wiring = wire(model)
    assert [wiring.can_be_output(name) for name in ("b", "y")] == [False, True]
    assert TensorProto.BFLOAT16 == 16


def test_an_input_that_is_an_output_as_well_is_right(tmp_path: Path) -> None:
    found = checked(tmp_path, written_models.model("g (float[4] x) => (float[4] y, float[4] x) { y = Relu(x) }"))
    assert (found.status, {verdict.output for verdict in found.verdicts}) == (RIGHT, {"x", "y"})
