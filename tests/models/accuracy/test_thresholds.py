"""Thresholds of the outputs of a whole model."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.models.accuracy import thresholds
from epcheck.models.accuracy.thresholds import Override, Threshold, ThresholdSource
from tests.models import written_models


def chain(operators: list[str], dtype: int) -> onnx.ModelProto:
    nodes = [helper.make_node(op, [f"v{i}"], [f"v{i + 1}"]) for i, op in enumerate(operators)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("v0", dtype, [2])],
        [helper.make_tensor_value_info(f"v{len(nodes)}", dtype, [2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_the_threshold_grows_with_the_square_root_of_the_depth_and_with_the_dtype() -> None:
    deep = thresholds.of_outputs(chain(["Relu"] * 24, TensorProto.FLOAT))["v24"]
    half = thresholds.of_outputs(chain(["Relu"] * 24, TensorProto.FLOAT16))["v24"]
    assert (deep.depth, deep.source) == (24, ThresholdSource.HIGHAM_MARY)
    assert deep.relative == pytest.approx(thresholds.HEADROOM * 2.0**-24 * 5)
    assert half.relative == pytest.approx(thresholds.HEADROOM * 2.0**-11 * 5)


def test_the_terms_of_a_product_are_those_of_its_weight_behind_an_operator_that_onnx_does_not_know() -> None:
    nodes = [
        helper.make_node("SkipSimplifiedLayerNormalization", ["x", "x", "g"], ["h"], domain="com.microsoft"),
        helper.make_node("MatMul", ["h", "w"], ["y"]),
    ]
    shapes = {"x": [2, 63], "g": [63], "w": [63, 8], "y": [2, 8]}
    x, g, w, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items())
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    found = thresholds.of_outputs(
        helper.make_model(helper.make_graph(nodes, "g", [x, g, w], [y]), opset_imports=opsets)
    )
    assert found["y"].relative == pytest.approx(thresholds.HEADROOM * 2.0**-24 * (1 + 63 + 1) ** 0.5)


def test_a_product_with_weights_of_few_bits_sums_as_many_terms() -> None:
    node = helper.make_node("MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=64, N=8, block_size=32)
    sizes = {"x": [2, 64], "y": [2, 8]}
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in sizes.items())
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    found = thresholds.of_outputs(helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=imports))
    assert found["y"].relative == pytest.approx(thresholds.HEADROOM * 2.0**-24 * (64 + 1) ** 0.5)


def test_integers_that_only_integers_enter_are_exact() -> None:
    assert thresholds.of_outputs(chain(["Abs"], TensorProto.INT64))["v1"].agreement == 1.0


def test_a_quantised_model_is_judged_by_its_noise() -> None:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, t, s) for n, t, s in (("x", 1, [2]), ("s", 1, []), ("z", 3, []))]
    graph = helper.make_graph(nodes, "g", values, [helper.make_tensor_value_info("y", 1, [2])])
    found = thresholds.of_outputs(onnx.shape_inference.infer_shapes(helper.make_model(graph)))["y"]
    assert found.source == ThresholdSource.BENNETT
    assert found.snr_db == pytest.approx(6.02 * 8 + 1.76 - 12)


def test_an_override_never_loosens_what_is_exact_but_by_agreement() -> None:
    exact = Threshold(agreement=1.0)
    assert Override(relative=1.0).apply(exact) == exact
    assert Override(agreement=0.5).apply(exact).agreement == 0.5


def roundings(graph: str, opset: int = 17) -> float:
    """The roundings on the way to `y`, from its threshold in float32."""
    built = onnx.shape_inference.infer_shapes(written_models.model(graph, opset), data_prop=True)
    relative = thresholds.of_outputs(built)["y"].relative
    return round((relative / thresholds.HEADROOM / thresholds.UNITS["float32"]) ** 2 - 1)


def test_the_bodies_of_a_loop_round_in_every_turn() -> None:
    body = "b (int64 i, bool c, float[4, 4] a) => (bool d, float[4, 4] e, float[4, 4] s) " \
        "{ d = Identity(c) e = MatMul(a, a) s = Identity(e) }"  # fmt: skip
    graph = "g (float[4, 4] x) => (float[4, 4] y) { n = Constant <value_int=10> () t = Constant <value_int=1> () " \
        "u = Cast <to=9> (t) y, z = Loop <body = " + body + "> (n, u, x) }"  # fmt: skip
    inferred = onnx.shape_inference.infer_shapes(written_models.model(graph))
    inferred.graph.value_info.append(onnx.helper.make_tensor_value_info("z", 1, [10, 4, 4]))
    found = thresholds.of_outputs(inferred)["y"].relative
    before, turn = 2, 4 + 1
    assert round((found / thresholds.HEADROOM / thresholds.UNITS["float32"]) ** 2 - 1) == before + 10 * turn


def test_the_longer_branch_of_an_if_counts() -> None:
    graph = "g (bool c, float[4, 8] x, float[8, 4] w) => (float[4, 4] y) { y = If (c) " \
        "<then_branch = t () => (float[4, 4] a) { a = MatMul(x, w) }, " \
        "else_branch = e () => (float[4, 4] b) { m = MatMul(x, w) b = Relu(m) }> }"  # fmt: skip
    assert roundings(graph) == 9


def test_a_fourier_transform_sums_its_frame() -> None:
    stft = "g (float[1, 400, 1] x, float[64] w) => (float[1, n, 33, 2] y) " \
        "{ s = Constant <value_int=16> () y = STFT(x, s, w) }"  # fmt: skip
    assert roundings(stft) == 1 + 64
    assert roundings("g (float[1, 50, 1] x) => (float[1, 50, 2] y) { y = DFT <axis=1> (x) }") == 50


def test_a_threshold_takes_over_what_is_chosen_for_its_kind() -> None:
    real, whole = thresholds.Threshold(1e-5), thresholds.Threshold(agreement=0.99)
    assert thresholds.Override(absolute=0.5).apply(real) == thresholds.Threshold(
        0.0, absolute=0.5, source=ThresholdSource.YOURS
    )
    assert thresholds.Override(relative=0.0, absolute=0.5).apply(whole) == whole
    assert thresholds.Override(agreement=0.5).apply(real) == real


def test_a_share_is_as_exact_as_1_and_not_as_itself() -> None:
    moved = written_models.model("g (float[4] x) => (float[2, 2] y) { s = Sigmoid(x) n = Constant <value_ints=[2, 2]> () y = Reshape(s, n) }")  # noqa: E501  # fmt: skip
    scaled = written_models.model("g (float[4] x) => (float[4] y) { s = Sigmoid(x) y = Mul(s, x) }")
    found = [thresholds.of_outputs(onnx.shape_inference.infer_shapes(built))["y"] for built in (moved, scaled)]
    assert [threshold.absolute for threshold in found] == [8 * 2.0**-24, None]
    assert thresholds.Override(relative=1e-3).apply(found[0]).absolute is None


def test_floats_in_sequences_and_maps_are_judged_as_floats() -> None:
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    kinds = {
        "s": helper.make_sequence_type_proto(tensor),
        "m": helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, tensor)),
        "i": helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.INT64, None)),
    }
    nodes = [helper.make_node("Make", ["x"], [name], domain="test") for name in kinds]
    inputs = [helper.make_tensor_value_info("x", TensorProto.INT64, [2])]
    outputs = [helper.make_value_info(name, kind) for name, kind in kinds.items()]
    found = thresholds.of_outputs(helper.make_model(helper.make_graph(nodes, "g", inputs, outputs)))
    assert found["s"].relative == found["m"].relative == pytest.approx(thresholds.HEADROOM * 2.0**-24 * 2**0.5)
    assert (found["s"].agreement, found["m"].agreement, found["i"].agreement) == (None, None, 1.0)
