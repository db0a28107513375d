"""Changes of a node: each keeps its values, on real sessions of the CPU provider, and says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper, version_converter

from epcheck.generators.claims import DML, claims_of
from epcheck.models.graph.wiring import wire
from epcheck.models.placement.advise import lone_node
from epcheck.models.placement.change import Change, LoneNode
from epcheck.models.placement.changes import changes, is_claimed

RANDOM = np.random.default_rng(0)
CLAIMS = claims_of(DML)


def lone(
    operator: str,
    *,
    shape: tuple[int | str, ...] = (2, 3),
    dtype: int = TensorProto.FLOAT,
    opset: int = 17,
    inputs: str = "x",
    outputs: str = "y",
    read: str = "",
    constants: dict[str, Any] | None = None,
    **attributes: Any,
) -> LoneNode:
    """A node that received random values. shape: a name stands for a dynamic size of 2. read: the outputs that are
    read; all by default."""
    node = helper.make_node(operator, inputs.split(" "), outputs.split(" "), name="n", **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", dtype, shape)],
        [onnx.ValueInfoProto(name=name) for name in (read or outputs).split(" ")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    sizes = [size if isinstance(size, int) else 2 for size in shape]
    values = RANDOM.standard_normal(sizes).astype(helper.tensor_dtype_to_np_dtype(dtype))
    return lone_node(wire(model), 0, {"x": values})


def outputs_of(model: onnx.ModelProto, feeds: Any) -> dict[str, Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def claimed(alone: LoneNode) -> list[Change]:
    assert CLAIMS is not None
    return [change for change in changes(alone, CLAIMS) if is_claimed(change, CLAIMS)]


CASES: dict[str, tuple[LoneNode, str]] = {
    "a version without a kernel": (
        lone("Elu", opset=22),
        "export the model with opset 21, in which this is Elu-6",
    ),
    "its definition": (
        lone("Gelu", opset=20),
        "export it as the operators that ONNX defines it by (CastLike, Div, Erf, Mul, Sqrt, Sum)",
    ),
    "a definition with attributes": (
        lone("HardSwish", opset=14),
        "export it as the operators that ONNX defines it by (HardSigmoid, Mul)",
    ),
    "an output that nothing reads": (
        lone("LayerNormalization", inputs="x s", outputs="y mean", read="y", constants={"s": np.ones(3, np.float32)}),
        "leave out the output 'mean', which nothing reads",
    ),
    "an attribute without effect": (
        lone("MaxPool", shape=(1, 1, 4, 4), kernel_shape=[2, 2], storage_order=1),
        "set storage_order to 0: it orders the output Indices alone, which nothing reads",
    ),
    "a value that an older version calls otherwise": (
        lone(
            "GridSample",
            shape=(1, 2, 4, 4),
            opset=20,
            inputs="x grid",
            mode="cubic",
            padding_mode="border",
            constants={"grid": np.linspace(-1.1, 0.9, 18, dtype=np.float32).reshape(1, 3, 3, 2)},
        ),
        "export the model with opset 19, in which this is GridSample-16 and its mode is 'bicubic'",
    ),
    "a default that an older version calls otherwise": (
        lone(
            "GridSample",
            shape=(1, 2, 4, 4),
            opset=20,
            inputs="x grid",
            constants={"grid": np.linspace(-1.1, 0.9, 18, dtype=np.float32).reshape(1, 3, 3, 2)},
        ),
        "export the model with opset 19, in which this is GridSample-16",
    ),
    "negative pads": (
        lone("Pad", opset=10, pads=[-1, 2, 0, -1]),
        "write the negative pads as a Slice before it",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_change_that_the_claims_have_keeps_the_values(case: str) -> None:
    alone, words = CASES[case]
    change = claimed(alone)[0]
    assert change.words == words
    expected, got = outputs_of(alone.model, alone.feeds), outputs_of(change.model, alone.feeds)
    assert expected.keys() == got.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-5, atol=1e-6)
        assert got[name].dtype == value.dtype


@pytest.mark.parametrize("case", CASES)
def test_no_change_has_other_inputs_or_outputs(case: str) -> None:
    alone, _ = CASES[case]
    for change in changes(alone, CLAIMS):
        assert [v.name for v in change.model.graph.input] == [v.name for v in alone.model.graph.input]
        assert [v.name for v in change.model.graph.output] == [v.name for v in alone.model.graph.output]


def test_casts_stand_around_a_node_whose_dtype_no_kernel_takes() -> None:
    alone = lone("Neg", dtype=TensorProto.DOUBLE, opset=13)
    (change,) = [each for each in changes(alone, None) if "float32" in each.words and each.narrow == "float32"][:1]
    assert change.words == "cast float64 to float32 before it and back behind it"
    assert [node.op_type for node in change.model.graph.node] == ["Cast", "Neg", "Cast"]
    got = outputs_of(change.model, alone.feeds)["y"]
    np.testing.assert_allclose(got, -np.asarray(alone.feeds["x"]), rtol=1e-6)
    assert got.dtype == np.float64
    assert change.exempt == {"x_float32_cast", "y_cast"}


def test_no_cast_is_to_a_dtype_that_the_operator_does_not_have() -> None:
    alone = lone("Compress", inputs="x c", constants={"c": np.array([True, False])}, axis=0)
    assert not [change for change in changes(alone, None) if "bool" in change.words]


def test_two_changes_go_together() -> None:
    words = [change.words for change in claimed(lone("Elu", opset=22, dtype=TensorProto.DOUBLE))]
    assert words[0] == (
        "export the model with opset 21, in which this is Elu-6, "
        "and cast float64 to float32 before it and back behind it"
    )


def test_a_recurrent_node_gets_layout_0() -> None:
    sizes = {"w": (1, 16, 3), "r": (1, 16, 4)}
    weights = {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in sizes.items()}
    whole = lone("LSTM", shape=(2, 5, 3), inputs="x w r", outputs="y h c", constants=weights, layout=1, hidden_size=4)
    change = claimed(whole)[0]
    got = outputs_of(change.model, whole.feeds)
    other = lone("LSTM", shape=(5, 2, 3), inputs="x w r", outputs="y h c", constants=weights, hidden_size=4)
    x = np.asarray(whole.feeds["x"])
    expected = outputs_of(other.model, {"x": x.transpose(1, 0, 2)})  # the CPU provider has no layout 1
    np.testing.assert_allclose(got["y"], expected["y"].transpose(2, 0, 1, 3), rtol=1e-5)
    np.testing.assert_allclose(got["h"], expected["h"].transpose(1, 0, 2), rtol=1e-5)
    assert not [a for node in change.model.graph.node for a in node.attribute if a.name == "layout"]


def test_dynamic_sizes_are_fixed() -> None:
    alone = lone("Neg", opset=13, shape=("batch", 3))
    (change,) = [each for each in changes(alone, None) if each.words == "give its inputs fixed sizes"]
    (value,) = change.model.graph.input
    assert [dim.dim_value for dim in value.type.tensor_type.shape.dim] == [2, 3]
    assert not [each for each in changes(lone("Neg", opset=13), None) if "fixed" in each.words]


@pytest.mark.parametrize(
    ("operator", "attributes", "constants"),
    [
        ("Reshape", {"allowzero": 1}, {"k": np.array([0, 6])}),
        ("Resize", {"mode": "cubic", "exclude_outside": 1}, {}),
        ("Resize", {"extrapolation_value": 1.0, "coordinate_transformation_mode": "tf_crop_and_resize"}, {}),
        ("MaxPool", {"kernel_shape": [1, 1]}, {}),
    ],
)
def test_an_attribute_that_counts_stays(operator: str, attributes: dict[str, Any], constants: dict[str, Any]) -> None:
    alone = lone(operator, inputs="x k" if constants else "x", constants=constants, **attributes)
    assert not [each for each in changes(alone, None) if "leave out" in each.words or "storage_order" in each.words]


@pytest.mark.parametrize("entries", [(), (("own", 1),)])
def test_a_model_without_an_opset_of_onnx_has_changes_or_none(entries: tuple[tuple[str, int], ...]) -> None:
    """A runtime may run it; onnx's converter says that it cannot infer a type."""
    alone = lone("Add", inputs="x x")
    model = alone.copy()
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*entry) for entry in entries)
    for change in changes(LoneNode(model, alone.feeds, alone.at), CLAIMS):
        assert change.model.graph.node


def test_a_node_that_the_version_converter_refuses_is_left_as_it_is() -> None:
    """onnx raises an error of its own there, which is no RuntimeError (found by benchmarks/attacks/models.py)."""
    alone = lone("ConstantOfShape", value=onnx.TensorProto(data_type=99, dims=[1]))
    with pytest.raises(version_converter.ConvertError):
        version_converter.convert_version(alone.model, 11)
    assert all("opset" not in change.words for change in changes(alone, None))
