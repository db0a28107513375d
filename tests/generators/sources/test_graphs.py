"""The fixed graphs of the suite, against values that their oracles did not make: formulas in numpy, and by hand."""

from __future__ import annotations

import pickle
from collections import Counter
from functools import cache

import numpy as np
import onnx
import pytest

from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.graphs.graph_sample import KINDS, GraphSample
from epcheck.generators.graphs.sketch import Sketch
from epcheck.generators.sources import graphs
from epcheck.generators.truth import Outputs, Ulp
from tests.generators.built_suite import cases_by_operator

ALL = {case.id: case for own in cases_by_operator(graphs).values() for case in own}


@cache
def built(name: str, dtype: str = "float32") -> BuiltCase:
    (found,) = (case for case in ALL.values() if case.sample == f"graph_{name}" and case.dtype == dtype)
    return found.build()


def values(name: str) -> tuple[list[Array], list[Array]]:
    """What enters a graph, initializers too, in the order of its sources, and its true outputs."""
    case = built(name)
    assert isinstance(case.truth, Outputs)
    return [o.value for o in case.node.inputs if o is not None], [o.value for o in case.truth.outputs]


def close(left: Array, right: Array) -> bool:
    return bool(np.allclose(left, right, rtol=1e-5, atol=1e-5))


def test_every_kind_has_graphs_and_there_are_some_hundred() -> None:
    kinds = Counter(case.kind for case in ALL.values())
    assert set(kinds) == set(KINDS)
    assert 2500 <= len(ALL) <= 3000
    assert {name: kinds[name] for name in ("between", "chain", "diamond")} == {"between": 4, "chain": 25, "diamond": 15}


def test_they_belong_to_the_operator_that_they_end_with() -> None:
    ids = [case.id for case in suite.cases(["Relu"], patterns=["graph_"])]
    assert "Relu-14/float32/graph_fusion_conv_relu[runtime]" in ids
    assert all(case_id.startswith("Relu-14/") for case_id in ids)
    assert suite.case_by_id(ids[0]).id == ids[0]


def test_the_thin_selection_keeps_every_kind() -> None:
    thin = [case for case in suite.cases(thin=True) if case.kind in KINDS]
    assert {case.kind for case in thin} == set(KINDS)
    assert len(thin) < len(ALL) / 2


def test_a_convolution_and_relu() -> None:
    (x, weight, bias), (y,) = values("fusion_conv_relu")
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), (3, 3), axis=(1, 2))
    sums = np.einsum("chwij,ocij->ohw", windows, weight) + bias[:, None, None]
    assert close(y[0], np.maximum(sums, 0))


def test_gelu_written_out() -> None:
    from math import erf

    (x, *_), (y,) = values("fusion_gelu_half_first")
    assert close(y, np.vectorize(lambda v: 0.5 * v * (1 + erf(v / 2**0.5)))(x.astype(np.float64)))


def test_layer_normalization_written_out() -> None:
    (x, *_, scale, bias), (y,) = values("fusion_layer_normalization")
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    assert close(y, centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + bias)


def test_a_masked_attention() -> None:
    (query, key, value, *_), (y,) = values("fusion_attention_div_masked")
    scores = query @ key.swapaxes(-1, -2) / 2 + np.array([0, 0, -8])
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    assert close(y, weights @ value)


def test_a_quantised_sum() -> None:
    (left, scale, zero, right, *_), (y,) = values("quantized_add_uint8")
    assert (scale, zero) == (0.0625, 128)
    total = (left.astype(np.int64) - 128 + right.astype(np.int64) - 128) / 1.5
    assert y.tolist() == np.clip(np.rint(total) + 128, 0, 255).astype(np.uint8).tolist()


def test_two_casts_keep_what_the_first_loses() -> None:
    (x,), (y,) = values("moved_cast_bool_float")
    assert y.tolist() == (x != 0).astype(np.float32).tolist()


def test_a_transposed_matrix_times_a_vector() -> None:
    (left, right), (y,) = values("apart_transposed_left_matmul_vector")
    assert close(y, left.T @ right)


def test_a_product_of_integers_that_is_scaled_by_rows() -> None:
    (_, _, left, right, unit, scales, bias), (y,) = values("apart_integer_product_row_scales_bias")
    product = (left.astype(np.int64) - 7) @ (right.astype(np.int64) - 3)
    assert scales.shape == (2, 1)
    assert close(y, product * (unit * scales) + bias)


def test_graphs_of_other_opsets() -> None:
    """Axes of Resize and Pad are opset 18's, limits of Clip that are attributes opset 10's."""
    (x, _), (resized,) = values("moved_transpose_resize_two_axes_transpose")
    assert np.array_equal(resized, x.repeat(2, axis=2).repeat(3, axis=3))
    (x, _, _), (padded,) = values("moved_transpose_pad_all_axes_backwards_transpose")
    assert np.array_equal(padded, np.pad(x, ((0, 0), (1, 0), (0, 0), (2, 0))))
    _, (clipped,) = values("apart_relu_clip_of_version_6_below")
    assert (clipped == -1).all()
    assert [built(f"moved_transpose_{name}_two_axes_transpose").opset for name in ("resize", "pad")] == [18, 18]
    assert built("apart_relu_clip_of_version_6_below").opset == 10


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_integers_between_two_limits(dtype: str) -> None:
    (x, *_), (y,) = values(f"fusion_relu_clip_of_{dtype}")
    assert (x.dtype, y.tolist()) == (dtype, [2] * 10 + [3, 4, 5, 5, 5])


@pytest.mark.parametrize(("dtype", "smallest"), [("int8", -128), ("uint8", 0)])
def test_numbers_that_are_dequantised_by_other_scales(dtype: str, smallest: int) -> None:
    (x, scale, _, scales), (y,) = values(f"quantized_one_scale_then_scales_of_rows_{dtype}")
    whole = np.rint(x / scale).clip(smallest, smallest + 255)
    assert np.array_equal(y, whole * scales[:, None])


def test_slices_and_a_concat_that_are_a_space_to_depth() -> None:
    (x, *_), (y,) = values("fusion_slices_concat_rows_first")
    corners = [x[:, :, row::2, column::2] for row in (0, 1) for column in (0, 1)]
    assert np.array_equal(y, np.concatenate(corners, 1))


def test_every_value_of_a_chain_leaves() -> None:
    (x,), outputs = values("ends_every_value_leaves_3")
    assert len(outputs) == 3
    assert close(outputs[0], np.tanh(x))
    assert np.array_equal(outputs[1], -outputs[0])
    assert np.array_equal(outputs[2], np.maximum(outputs[1], 0))


def test_the_model_has_what_the_graph_says() -> None:
    model = onnx.load_from_string(built("ends_unread_input").model)
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["Tanh", "Neg"]
    assert len(model.graph.input) == 2
    shared = onnx.load_from_string(built("shared_weight_of_two_conv").model)
    first, _, second, *_ = shared.graph.node
    assert first.input[1] == second.input[1]


@pytest.mark.parametrize("name", ["fusion_conv_add_channels", "quantized_conv_uint8", "neutral_sliced_twice_by_steps"])
def test_models_are_valid(name: str) -> None:
    onnx.checker.check_model(onnx.load_from_string(built(name).model), full_check=True)


def test_bounds_grow_with_errors_of_earlier_nodes_and_stay_small() -> None:
    truth = built("fusion_attention_div").truth
    assert isinstance(truth, Outputs)
    (output,) = truth.outputs
    assert isinstance(output.bound, Ulp)
    floor = np.asarray(output.bound.floor)
    assert (floor > np.spacing(np.abs(output.value))).all()
    assert floor.max() < 1e-3 * np.abs(output.value).max()


def test_a_case_can_be_sent_to_another_process_and_builds_the_same() -> None:
    case = next(case for case in ALL.values() if case.sample == "graph_chain_exact_3")
    again = pickle.loads(pickle.dumps(case))
    assert again == case
    assert again.build().model == case.build().model
    assert suite.is_own(again)


def test_a_graph_that_cannot_be_judged_is_refused() -> None:
    def huge(sketch: Sketch) -> None:
        x = sketch.feed([5e3, 2e3])
        sketch.leave(sketch.node("Neg", sketch.node("Mul", x, x)))

    with pytest.raises(graphs.GraphError, match="the graph graph_chain_huge cannot be judged: a value is no ordinary"):
        graphs.judge_sample(GraphSample("chain", "huge", huge), "float32", "an id")


def test_one_tensor_is_data_and_parameter() -> None:
    made = built("shared_data_and_parameter_of_slice_starts_axes")
    assert list(made.feeds) == ["x0"]
    (proto,) = onnx.load_from_string(made.model).graph.node
    assert [proto.input[0], proto.input[1], proto.input[3]] == ["x0"] * 3
    sources, results = values("shared_data_and_parameter_of_split")
    assert [array.tolist() for array in (*sources, *results)] == [[1, 1], [1], [1]]
