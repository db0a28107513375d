"""Metrics, thresholds and verdicts on outputs."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.models.accuracy import thresholds
from epcheck.models.accuracy.metrics import measure
from epcheck.models.accuracy.thresholds import BENNETT, HIGHAM_MARY, Override, Threshold
from epcheck.models.accuracy.verdict import judge
from epcheck.models.inspection import checking

ROW = np.array([[1.0, -2.0, 4.0]], np.float32)


def test_metrics_of_a_known_error() -> None:
    found = measure(ROW + np.float32([0, 0, 0.5]), ROW)
    rms = math.sqrt(7)
    assert (found.elements, found.differing, found.nonfinite) == (3, 1, 0)
    assert (found.max_abs, found.max_rel, found.relative) == (0.5, 0.125, 0.125)
    assert found.max_ulp == 0.5 / 2.0**-21
    assert found.snr_db == pytest.approx(10 * math.log10(21 / 0.25))
    assert found.cosine == pytest.approx(23 / math.sqrt(21 * 25.25))
    assert found.top1 == 1.0
    assert measure(ROW + np.float32([0.5, 0, 0]), ROW).relative == pytest.approx(0.5 / rms)


@pytest.mark.parametrize(
    ("dtype", "spacing"), [(np.float16, 2.0**-10), (ml_dtypes.bfloat16, 2.0**-7), (np.float64, 2.0**-52)]
)
def test_ulp_are_those_of_the_dtype(dtype: type[np.generic], spacing: float) -> None:
    reference = np.array([1.0, 3.0])
    found = measure(np.array([1 + 2 * spacing, 3.0], dtype), reference)
    assert (found.max_ulp, found.max_abs) == (2.0, 2 * spacing)


def test_integers_have_no_ulp() -> None:
    assert measure(np.int32([1]), np.int32([2])).max_ulp is None


def test_nan_and_infinity_count_as_nonfinite_and_not_in_ulp() -> None:
    found = measure(np.float32([np.nan, np.inf, 1]), np.float32([1, 2, 1]))
    assert (found.nonfinite, found.max_ulp) == (2, 0.0)


def test_nan_equals_nan_and_nothing_else() -> None:
    half_nan, all_nan = np.float32([np.nan, 1]), np.float32([np.nan, np.nan])
    assert (measure(half_nan, half_nan).differing, measure(half_nan, all_nan).nonfinite) == (0, 1)


def test_a_mask_does_not_hide_an_error_in_its_scale() -> None:
    masked = np.float32([-3.4e38, 1, 1])
    assert measure(masked + np.float32([0, 0, 0.1]), masked).relative == pytest.approx(0.1, rel=1e-6)


def test_integers_beyond_float64_are_compared_exactly() -> None:
    assert measure(np.array([2**60 + 1]), np.array([2**60])).differing == 1


def test_top_1_counts_rows_whose_largest_element_moves() -> None:
    reference = np.float32([[1, 2], [3, 0]])
    assert measure(reference[:, ::-1], np.float32([[2, 1], [3, 0]])).top1 == 0.5


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
    assert (deep.depth, deep.source) == (24, HIGHAM_MARY)
    assert deep.relative == pytest.approx(thresholds.HEADROOM * 2.0**-24 * 5)
    assert half.relative == pytest.approx(thresholds.HEADROOM * 2.0**-11 * 5)


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
    assert found.source == BENNETT
    assert found.snr_db == pytest.approx(6.02 * 8 + 1.76 - 12)


def verdicts(got: object, said: object, truth: object = None, threshold: Threshold | None = None) -> list[bool]:
    bound = threshold or Threshold(1e-3)
    oracle = None if truth is None else {"y": np.asarray(truth)}
    found = judge("t", {"y": np.asarray(got)}, {"y": np.asarray(said)}, oracle, {"y": bound})
    return [one.right for one in found]


def test_an_output_within_its_threshold_is_right_and_beyond_it_wrong() -> None:
    assert verdicts(ROW * np.float32(1.0005), ROW) == [True]
    assert verdicts(ROW * np.float32(1.01), ROW) == [False]


def test_the_truth_decides_between_candidate_and_baseline() -> None:
    truth = ROW.astype(np.float64)
    assert verdicts(ROW, ROW * np.float32(1.1), truth) == [True, True]
    assert verdicts(ROW * np.float32(1.1), ROW, truth) == [False, False]


def test_a_candidate_may_be_as_far_from_the_truth_as_the_baseline() -> None:
    truth = ROW.astype(np.float64)
    assert verdicts(ROW * np.float32(1.02), ROW * np.float32(0.99), truth) == [True, True]


def test_another_shape_or_dtype_or_a_missing_output_is_wrong() -> None:
    assert verdicts(ROW[0], ROW) == [False]
    assert verdicts(ROW.astype(np.float16), ROW) == [False]
    assert [one.why for one in judge("t", {}, {"y": ROW}, None, {})] == ["the candidate does not give it"]


@pytest.mark.parametrize(("tensor", "output"), [("present.0.key", "present.0.key"), ("s[1]", "s"), ("m.keys", "m")])
def test_a_tensor_has_the_threshold_of_the_output_that_it_is_in(tensor: str, output: str) -> None:
    (one,) = judge("t", {tensor: ROW * np.float32(1.0005)}, {tensor: ROW}, None, {output: Threshold(1e-3)})
    assert one.right


def test_an_infinite_element_on_one_side_is_wrong() -> None:
    assert verdicts(np.float32([np.inf, 1]), np.float32([1, 1])) == [False]


def test_a_share_of_integers_may_differ_where_numbers_decide_them() -> None:
    reference = np.arange(200)
    got = reference.copy()
    got[0] = 7
    assert verdicts(got, reference, threshold=Threshold(agreement=0.99)) == [True]
    assert verdicts(got, reference, threshold=Threshold(agreement=1.0)) == [False]


def test_an_override_never_loosens_what_is_exact_but_by_agreement() -> None:
    exact = Threshold(agreement=1.0)
    assert Override(relative=1.0).apply(exact) == exact
    assert Override(agreement=0.5).apply(exact).agreement == 0.5


@pytest.mark.parametrize(
    ("said", "readable"),
    [
        ("No Op registered for Foo with domain_version of 21\n\n==> Context: Bad node spec for node. Name: n OpType: "
         "Foo", "node 'n' (Foo): opset 21 has no operator Foo"),
        ("Unrecognized attribute: foo for operator Relu\n\n==> Context: Bad node spec for node. Name: n OpType: Relu",
         "node 'n' (Relu): Relu has no attribute 'foo'"),
        ("Nodes in a graph must be topologically sorted, however input 'q' of node: \nname: n OpType: Relu\n is not "
         "output of any previous nodes.", "node 'n' (Relu) reads 'q', which no node before it makes"),
        ("[ShapeInferenceError] Inference error(s): (op_type:Add, node name: n): [ShapeInferenceError] Incompatible "
         "dimensions\n", "node 'n' (Add): the shapes of its inputs do not fit each other"),
        ("Something that nobody has seen", "Something that nobody has seen"),
    ],
)  # fmt: skip
def test_messages_of_onnx_become_sentences_that_begin_with_the_node(said: str, readable: str) -> None:
    assert checking.readable(said) == readable


def test_the_checker_and_inference_are_both_heard() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"], name="n", foo=1), helper.make_node("MatMul", ["x", "x"], ["y"])]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    found = checking.messages(helper.make_model(helper.make_graph(nodes, "g", value[:1], value[1:])))
    assert [who for who, _ in found] == ["checker", "inference"]
