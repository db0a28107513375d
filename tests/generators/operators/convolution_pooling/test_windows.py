"""Operators over windows that onnx has no node tests for, and the geometry that all of them share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.convolution_pooling import pooling
from epcheck.generators.oracle_math.window import Windows, maximum, scatter, slide, taps
from epcheck.generators.truth import Outputs

RNG = np.random.default_rng(1)
CONTRIB, DML = "com.microsoft", "com.microsoft.dml"


def node(
    name: str, version: int, inputs: Sequence[tuple[str, Array] | None], domain: str = "", **attributes: Attribute
) -> Node:
    operands = tuple(None if pair is None else Operand(*pair) for pair in inputs)
    return Node(name, domain, version, operands, ("Y",), attributes)


def output(tested: Node) -> Array:
    key = f"{tested.domain}::{tested.op_type}" if tested.domain else tested.op_type
    truth = registry.all_operators()[key].truth(tested)
    assert isinstance(truth, Outputs), truth
    return truth.outputs[0].value


def probe(**attributes: Attribute) -> Node:
    return node("AveragePool", 22, (), **attributes)


def windows(
    image: tuple[int, ...], kernel: tuple[int, ...], *, ceil_mode: bool = False, **attributes: Attribute
) -> Windows:
    found = slide(probe(**attributes), image, kernel, ceil_mode=ceil_mode)
    assert isinstance(found, Windows), found
    return found


@pytest.mark.parametrize(
    ("mode", "begin", "end"),
    [("SAME_UPPER", (1, 0), (1, 1)), ("SAME_LOWER", (1, 1), (1, 0)), ("VALID", (0, 0), (0, 0))],
)
def test_an_odd_padding_goes_to_the_end_or_to_the_begin(
    mode: str, begin: tuple[int, ...], end: tuple[int, ...]
) -> None:
    found = windows((5, 6), (3, 2), auto_pad=mode)
    assert (found.begin, found.end) == (begin, end)
    assert found.output == ((3, 5) if mode == "VALID" else (5, 6))


def test_same_divides_the_size_by_the_stride_and_rounds_up() -> None:
    assert windows((5, 6), (3, 3), auto_pad="SAME_UPPER", strides=(2, 4)).output == (3, 2)


def test_a_stride_beyond_the_kernel_needs_no_padding_of_same() -> None:
    found = windows((8,), (2,), auto_pad="SAME_UPPER", strides=(4,))
    assert (found.begin, found.end, found.output) == ((0,), (0,), (2,))


def test_rounding_up_adds_a_window_unless_it_starts_behind_the_image() -> None:
    assert windows((4,), (3,), strides=(2,)).output == (1,)
    assert windows((4,), (3,), strides=(2,), ceil_mode=True).output == (2,)
    assert windows((2,), (1,), strides=(2,), ceil_mode=True).output == (1,)


def test_attributes_that_make_no_windows_are_named() -> None:
    assert "larger than the padded image" in str(slide(probe(), (2,), (3,)))
    assert "must not be negative" in str(slide(probe(pads=(-1, 1)), (4,), (3,)))
    assert "must be positive" in str(slide(probe(strides=(0,)), (4,), (3,)))
    assert "for each of 2 spatial axes" in str(slide(probe(pads=(1, 1)), (4, 4), (3, 3)))


def test_taps_are_the_elements_under_each_window() -> None:
    found = taps(np.arange(1, 5), windows((4,), (2,), pads=(1, 0), dilations=(2,), strides=(2,)), 0)
    assert found.tolist() == [[0, 2], [2, 4]]


def test_scatter_is_the_transpose_of_taps() -> None:
    geometry = windows((5, 6), (3, 2), pads=(1, 0, 2, 1), strides=(2, 3), dilations=(1, 2))
    image = RNG.standard_normal((5, 6))
    under = taps(image, geometry, 0)
    other = RNG.standard_normal(under.shape)
    assert np.isclose((under * other).sum(), (image * scatter(other, geometry)).sum())


def test_the_maximum_is_the_first_of_equal_elements_and_never_the_padding() -> None:
    values, places = maximum(np.array([-np.inf, -np.inf, 3, 3]), windows((4,), (2,), pads=(1, 0)))
    assert values.tolist() == [-np.inf, -np.inf, 3, 3]
    assert places.tolist() == [0, 0, 2, 2]


def test_column_major_indices_count_down_the_columns() -> None:
    x = np.zeros((1, 1, 2, 3), np.float32)
    x[0, 0, 1, 2] = 1
    tested = Node("MaxPool", "", 12, (Operand("X", x),), ("Y", "Indices"), {"kernel_shape": (2, 3), "storage_order": 1})
    truth = pooling.max_truth(tested)
    assert isinstance(truth, Outputs)
    assert truth.outputs[1].value.tolist() == [[[[5]]]]


def test_nhwc_conv_is_conv_with_the_channels_last() -> None:
    x, w = RNG.standard_normal((2, 4, 5, 6)), RNG.standard_normal((6, 2, 3, 2))
    bias = ("B", RNG.standard_normal(6))
    attributes: dict[str, Attribute] = {"group": 2, "pads": (1, 0, 0, 1), "strides": (2, 1)}
    first = output(node("Conv", 11, (("X", x), ("W", w), bias), **attributes))
    moved = (("X", np.moveaxis(x, 1, -1)), ("W", np.moveaxis(w, 1, -1)), bias)
    last = output(node("NhwcConv", 1, moved, CONTRIB, **attributes))
    np.testing.assert_array_equal(last, np.moveaxis(first, 1, -1))


def test_conv_transpose_is_the_transpose_of_conv() -> None:
    attributes: dict[str, Attribute] = {"strides": (2, 3), "pads": (1, 0, 0, 1), "group": 2}
    x, w = RNG.standard_normal((1, 4, 7, 8)), RNG.standard_normal((6, 2, 3, 3))
    y = output(node("Conv", 11, (("X", x), ("W", w)), **attributes))
    other = RNG.standard_normal(y.shape)
    back = output(node("ConvTranspose", 11, (("X", other), ("W", w)), **attributes))
    assert np.isclose((y * other).sum(), (x[..., : back.shape[2], : back.shape[3]] * back).sum())


def test_dynamic_pads_are_pads() -> None:
    x, w = ("X", RNG.standard_normal((1, 3, 4, 4))), ("W", RNG.standard_normal((3, 2, 3, 3)))
    fixed = output(node("ConvTranspose", 11, (x, w), pads=(1, 0, 2, 1), strides=(2, 2)))
    pads = ("Pads", np.array([1, 0, 2, 1]))
    dynamic = output(node("ConvTransposeWithDynamicPads", 1, (x, w, pads), CONTRIB, strides=(2, 2)))
    np.testing.assert_array_equal(dynamic, fixed)


@pytest.mark.parametrize(
    ("name", "parameters", "x", "expected"),
    [
        ("Relu", {}, -2.0, 0.0),
        ("LeakyRelu", {}, -2.0, -0.02),
        ("LeakyRelu", {"alpha": 0.25}, -2.0, -0.5),
        ("ThresholdedRelu", {}, 1.0, 0.0),
        ("ThresholdedRelu", {}, 1.5, 1.5),
        ("Elu", {"alpha": 2.0}, -1.0, 2 * (np.exp(-1) - 1)),
        ("Selu", {}, 1.0, 1.05070102214813232421875),
        ("HardSigmoid", {}, 1.0, 0.7),
        ("Sigmoid", {}, 0.0, 0.5),
        ("Tanh", {}, 0.5, np.tanh(0.5)),
        ("Softplus", {}, 0.0, np.log(2)),
        ("Softsign", {}, -3.0, -0.75),
    ],
)
def test_the_fused_activation_follows_the_sum(
    name: str, parameters: dict[str, float], x: float, expected: float
) -> None:
    attributes: dict[str, Attribute] = {f"fused_{key}": value for key, value in parameters.items()}
    inputs = (("X", np.full((1, 1, 1, 1), x)), ("W", np.ones((1, 1, 1, 1))))
    for operator in ("DmlFusedConv", "DmlFusedConvTranspose"):
        assert output(node(operator, 1, inputs, DML, fused_activation=name, **attributes)).item() == pytest.approx(
            expected, rel=1e-6
        )


def test_a_quantised_average_counts_the_padding_as_the_zero_point() -> None:
    x = np.array([[[10, 20]]], np.uint8)
    inputs = (
        ("X", x), ("x_scale", np.float32(0.5)), ("x_zero_point", np.uint8(4)),
        ("y_scale", np.float32(1.0)), ("y_zero_point", np.uint8(1)),
    )  # fmt: skip
    attributes: dict[str, Attribute] = {"kernel_shape": (2,), "pads": (1, 0)}
    arrays = tuple((name, np.asarray(value)) for name, value in inputs)
    assert output(node("QLinearAveragePool", 1, arrays, CONTRIB, **attributes)).tolist() == [
        [[4, 7]]
    ]  # 3 + 1, 5.5 to even + 1
    assert (
        output(node("QLinearAveragePool", 1, arrays, CONTRIB, **attributes, count_include_pad=1))[0, 0, 0] == 3
    )  # 1.5 to 2
    assert output(node("QLinearGlobalAveragePool", 1, arrays, CONTRIB)).tolist() == [[[7]]]


def test_a_region_takes_in_its_last_row_and_column() -> None:
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    rois = np.array([[0, 1, 1, 2, 3]], np.float32)
    inputs = (("X", x), ("rois", rois))
    assert output(node("MaxRoiPool", 1, inputs, pooled_shape=(1, 1))).item() == 14
    assert output(node("MaxRoiPool", 1, inputs, pooled_shape=(1, 2))).ravel().tolist() == [13, 14]


def test_the_maximum_of_a_region_is_that_of_interpolated_samples() -> None:
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    inputs = (("X", x), ("rois", np.array([[0, 0, 2, 2]], np.float32)), ("batch_indices", np.array([0])))
    attributes: dict[str, Attribute] = {"sampling_ratio": 2, "output_height": 1, "output_width": 1}
    # The samples lie at 0.5 and 1.5: 2, 3, 5 and 6.
    assert output(node("RoiAlign", 10, inputs, mode="max", **attributes)).item() == 6
    assert output(node("RoiAlign", 10, inputs, mode="avg", **attributes)).item() == 4
    assert output(node("RoiAlign", 16, inputs, mode="avg", **attributes)).item() == 2  # everything half a pixel before


def test_samples_farther_than_a_pixel_outside_are_0() -> None:
    inputs = (
        ("X", np.ones((1, 1, 4, 4), np.float32)),
        ("rois", np.array([[-8, -8, -4, -4]], np.float32)),
        ("batch_indices", np.array([0])),
    )
    assert output(node("RoiAlign", 16, inputs)).item() == 0
