"""QLinearConv-10: what its cases cover, and its oracle against values that it did not produce."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry, suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node
from epcheck.generators.truth import OneStep, Output, Outputs, Refusal
from tests.generators.built_suite import Array, built, node_of, true_outputs

INT32 = np.iinfo(np.int32)
FIRST = "uint8-int8-uint8"
PAIRS = [f"{x}-{w}-{y}" for x, w, y in product(("int8", "uint8"), repeat=3)]


def conv_node(
    x: Any,
    w: Any,
    *,
    x_scale: Any = 1.0,
    w_scale: Any = 1.0,
    y_scale: Any = 1.0,
    zero_points: tuple[Any, Any, Any] = (0, 0, 0),
    bias: list[int] | None = None,
    dtypes: str = "uint8-int8-int8",
    **attributes: Any,
) -> Node:
    """A node over [N, C, ...] nested lists; zero_points of x, w, y."""
    t1, t2, t3 = dtypes.split("-")
    x_zp, w_zp, y_zp = (np.array(zp, t) for zp, t in zip(zero_points, (t1, t2, t3), strict=True))
    scales = [np.array(scale, np.float32) for scale in (x_scale, w_scale, y_scale)]
    inputs = [np.array(x, t1), scales[0], x_zp, np.array(w, t2), scales[1], w_zp, scales[2], y_zp]
    return node_of("QLinearConv", 10, [*inputs, *([np.array(bias, np.int32)] if bias else [])], **attributes)


def conv(x: Any, w: Any, **keywords: Any) -> list[Any]:
    (y,) = true_outputs(conv_node(x, w, **keywords))
    result: list[Any] = y.tolist()
    return result


def output_of(node: Node) -> Output:
    truth = registry.all_operators()["QLinearConv"].truth(node)
    assert isinstance(truth, Outputs)
    return truth.outputs[0]


def allowed(output: Output) -> Array:
    assert isinstance(output.bound, OneStep)
    return output.bound.allowed


def case(sample: str, dtypes: str = FIRST, binding: str = "initializer") -> BuiltCase:
    return suite.case_by_id(f"QLinearConv-10/{dtypes}/{sample}[{binding}]").build()


def value(tested: BuiltCase, name: str) -> Array:
    found = tested.node.value(name)
    assert found is not None
    return found


def valid(dtypes: str = FIRST) -> list[tuple[BuiltCase, Output]]:
    return [
        (b, b.truth.outputs[0])
        for b in built("QLinearConv")
        if b.case.dtype == dtypes and b.case.binding == "initializer" and isinstance(b.truth, Outputs)
    ]


# By hand.


def test_a_1x1_kernel_multiplies() -> None:
    assert conv([[[[1, 2], [3, 4]]]], [[[[3]]]]) == [[[[3, 6], [9, 12]]]]


def test_a_kernel_is_not_flipped() -> None:
    assert conv([[[1, 2, 3]]], [[[10, 1]]]) == [[[12, 23]]]


def test_a_bias_counts_in_steps_of_both_scales() -> None:
    assert conv([[[4]]], [[[5]]], x_scale=0.5, w_scale=0.5, y_scale=0.25, bias=[3]) == [[[23]]]


def test_zero_points_stand_for_the_real_0() -> None:
    assert conv([[[130, 126]]], [[[3]]], zero_points=(128, 1, -7)) == [[[2 * 2 - 7, -2 * 2 - 7]]]


def test_padding_stands_for_the_real_0() -> None:
    assert conv([[[10, 10]]], [[[1, 1]]], zero_points=(7, 0, 0), pads=(1, 1)) == [[[3, 6, 3]]]


def test_every_channel_has_its_own_scale_and_zero_point() -> None:
    y = conv([[[10]]], [[[2]], [[2]]], w_scale=[1.0, 0.5], zero_points=(0, [0, -2], 0))
    assert y == [[[20], [20]]]


def test_groups_read_their_own_channels() -> None:
    assert conv([[[1], [2], [3], [4]]], [[[1], [10]], [[1], [10]]], group=2) == [[[21], [43]]]


def test_strides_and_dilations() -> None:
    x = [[[1, 2, 3, 4, 5, 6]]]
    assert conv(x, [[[1, 10]]], strides=(2,)) == [[[21, 43, 65]]]
    assert conv(x, [[[1, 10]]], dilations=(3,)) == [[[41, 52, 63]]]


@pytest.mark.parametrize(
    ("mode", "length", "kernel", "stride", "expected"),
    [
        ("VALID", 4, 2, 1, [3, 5, 7]),
        ("SAME_UPPER", 4, 2, 1, [3, 5, 7, 4]),
        ("SAME_LOWER", 4, 2, 1, [1, 3, 5, 7]),
        ("SAME_UPPER", 4, 3, 2, [6, 7]),
        ("SAME_LOWER", 4, 3, 2, [3, 9]),
        ("SAME_UPPER", 5, 3, 2, [3, 9, 9]),
        ("SAME_LOWER", 5, 3, 2, [3, 9, 9]),
        ("SAME_UPPER", 5, 4, 2, [6, 14, 9]),
        ("SAME_LOWER", 5, 4, 2, [3, 10, 12]),
    ],
)
def test_auto_pad(mode: str, length: int, kernel: int, stride: int, expected: list[int]) -> None:
    """Sums over 1, 2, 3, ...; what SAME adds in odd number stands at the end (UPPER) or the begin (LOWER)."""
    x = [[list(range(1, length + 1))]]
    assert conv(x, [[[1] * kernel]], auto_pad=mode, strides=(stride,)) == [[expected]]


@pytest.mark.parametrize(
    ("halves", "rounded"), [(1, 0), (2, 1), (3, 2), (5, 2), (7, 4), (-1, 0), (-3, -2), (-5, -2), (-7, -4)]
)
def test_a_tie_is_rounded_to_even(halves: int, rounded: int) -> None:
    assert conv([[[halves + 100]]], [[[1]]], x_scale=0.5, zero_points=(100, 0, 0)) == [[[rounded]]]


def test_a_tie_is_rounded_before_an_odd_zero_point_is_added() -> None:
    assert conv([[[1, 3]]], [[[1]]], x_scale=0.5, zero_points=(0, 0, 3)) == [[[3, 5]]]


@pytest.mark.parametrize(("dtypes", "low", "high"), [("int8-int8-int8", -128, 127), ("int8-int8-uint8", 0, 255)])
def test_both_ends_saturate(dtypes: str, low: int, high: int) -> None:
    assert conv([[[-128, 127]]], [[[127]]], dtypes=dtypes) == [[[low, high]]]


def test_saturation_comes_after_the_zero_point() -> None:
    assert conv([[[200]]], [[[1]]], zero_points=(0, 0, -100)) == [[[100]]]


def test_sums_beyond_int32_are_exact() -> None:
    assert conv([[[255]]], [[[127]]], bias=[INT32.max], y_scale=2.0**25) == [[[64]]]
    assert conv([[[255]]], [[[-128]]], bias=[INT32.min], y_scale=2.0**25) == [[[-64]]]


def test_an_output_beyond_int64_saturates() -> None:
    assert conv([[[255, 0]]], [[[-127]]], x_scale=1e30, y_scale=1e-8, zero_points=(1, 0, 0)) == [[[-128, 127]]]


def test_one_step_is_allowed_only_beside_a_rounding_boundary() -> None:
    third = output_of(conv_node([[[1, 2, 4, 5]]], [[[1]]], x_scale=1.0, y_scale=3.0))
    assert third.value.tolist() == [[[0, 1, 1, 2]]]
    assert not allowed(third).any()
    tenths = output_of(conv_node([[[5, 15, 25, 24]]], [[[1]]], x_scale=0.1))
    assert allowed(tenths).tolist() == [[[True, True, True, False]]]


@pytest.mark.parametrize("scale", [0.5, 1.5, 2.5, 0.125])
def test_no_step_is_allowed_where_float32_is_exact(scale: float) -> None:
    assert not allowed(output_of(conv_node([[list(range(20))]], [[[1]]], x_scale=scale))).any()


def test_a_tie_is_open_where_the_sum_exceeds_float32() -> None:
    beyond = output_of(conv_node([[[1]]], [[[0]]], bias=[2**24 + 1], x_scale=0.5, y_scale=2.0**24))
    assert allowed(beyond).tolist() == [[[True]]]
    within = output_of(conv_node([[[1]]], [[[0]]], bias=[2**24], x_scale=0.5, y_scale=2.0**24))
    assert allowed(within).tolist() == [[[False]]]


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"x_scale": 0.0}, "x_scale is 0: a scale of 0 is invalid"),
        ({"w_scale": [0.5, 0.0]}, "w_scale is 0: a scale of 0 is invalid"),
        ({"y_scale": 0.0}, "y_scale is 0: a scale of 0 is invalid"),
        ({"w_scale": [1.0] * 3}, "w_scale must have one element or one per output channel (2)"),
        ({"zero_points": (0, [0, 0, 0], 0)}, "w_zero_point must have one element or one per output channel (2)"),
        ({"x_scale": [1.0, 1.0]}, "x_scale must be a scalar"),
        ({"zero_points": (0, 0, [0, 0])}, "y_zero_point must be a scalar"),
        ({"kernel_shape": (2,)}, "kernel_shape (2,) differs from the kernel of w, (1,)"),
        ({"pads": (1,)}, "pads must have a begin and an end for each of 1 spatial axes"),
        ({"group": 2}, "x has 1 channels, w 1 for each of 2 groups of 2 outputs"),
        ({"dilations": (1,), "w": [[[1, 1, 1]], [[1, 1, 1]]]}, "the kernel (3,) is larger than the padded image (2,)"),
    ],
)
def test_what_must_be_refused(keywords: dict[str, Any], reason: str) -> None:
    node = conv_node([[[1, 2]]], keywords.pop("w", [[[1]], [[1]]]), **keywords)
    truth = registry.all_operators()["QLinearConv"].truth(node)
    assert truth == Refusal(reason)


# Element by element in exact rationals.


def pads_of(tested: BuiltCase, image: tuple[int, ...], kernel: tuple[int, ...]) -> list[int]:
    """Where the window of output 0 begins on each axis; auto_pad by the formula of the Conv page."""
    attributes: dict[str, Any] = dict(tested.node.attributes)
    mode = attributes.get("auto_pad", "NOTSET")
    if not mode.startswith("SAME"):
        return list(attributes.get("pads", (0,) * 2 * len(image))[: len(image)])
    begins = []
    for axis, (size, k) in enumerate(zip(image, kernel, strict=True)):
        stride = attributes.get("strides", (1,) * len(image))[axis]
        dilation = attributes.get("dilations", (1,) * len(image))[axis]
        output = (size + stride - 1) // stride
        total = max(0, (output - 1) * stride + ((k - 1) * dilation + 1) - size)
        begins.append(total // 2 if mode == "SAME_UPPER" else (total + 1) // 2)
    return begins


def exact_elements(tested: BuiltCase, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """(position, exact value before rounding) of every output element, by the sums of the page."""
    x, w = value(tested, "x"), value(tested, "w")
    spatial = x.ndim - 2
    strides: Any = tested.node.attributes.get("strides", (1,) * spatial)
    dilations: Any = tested.node.attributes.get("dilations", (1,) * spatial)
    group: Any = tested.node.attributes.get("group", 1)
    begins = pads_of(tested, x.shape[2:], w.shape[2:])
    bias = tested.node.value("B")
    x_zp = int(value(tested, "x_zero_point").reshape(()))
    w_zps = np.broadcast_to(value(tested, "w_zero_point").ravel(), len(w)).tolist()
    w_scales = np.broadcast_to(value(tested, "w_scale").ravel(), len(w)).tolist()
    x_scale, y_scale = (Fraction(float(value(tested, n).reshape(()))) for n in ("x_scale", "y_scale"))
    xs, ws = x.tolist(), w.tolist()
    for at in np.ndindex(*shape):
        n, m = at[:2]
        first = (m // (len(w) // group)) * w.shape[1]
        total = 0 if bias is None else int(bias[m])
        for c, *offset in np.ndindex(*w.shape[1:]):
            place = [
                o * s - b + d * f for o, s, b, d, f in zip(at[2:], strides, begins, dilations, offset, strict=True)
            ]
            if all(0 <= p < size for p, size in zip(place, x.shape[2:], strict=True)):
                element, weight = xs[n][first + c], ws[m][c]
                for p, f in zip(place, offset, strict=True):
                    element, weight = element[p], weight[f]
                total += (element - x_zp) * (weight - w_zps[m])
        yield at, total * x_scale * Fraction(w_scales[m]) / y_scale


@pytest.mark.slow
@pytest.mark.parametrize("dtypes", [FIRST, "int8-uint8-int8"])
def test_every_element_is_the_exact_rational_rounded_half_to_even_and_saturated(dtypes: str) -> None:
    checked = 0
    for tested, output in valid(dtypes):
        if value(tested, "x").size > 1000:
            continue
        info = np.iinfo(output.value.dtype)
        y_zp = int(value(tested, "y_zero_point").reshape(()))
        for at, real in exact_elements(tested, output.value.shape):
            expected = min(max(round(real) + y_zp, info.min), info.max)
            assert output.value[at] == expected, f"{tested.case.id} at {at}: {real}"
            distance = abs(real - (real.__floor__() + Fraction(1, 2)))
            if distance > abs(real) * Fraction(REQUANTISATION_ULP) + Fraction(1, 2**60):
                assert not allowed(output)[at], f"{tested.case.id} at {at}: {real}"
            checked += 1
    assert checked > 2000


REQUANTISATION_ULP = 4 * 2.0**-24
"""Four roundings of float32: the sum, the product of the scales, the quotient, the product of both."""


def test_hardly_any_element_is_allowed_a_step() -> None:
    total = sum(output.value.size for _, output in valid())
    open_ones = sum(int(allowed(output).sum()) for tested, output in valid() if tested.case.sample != "beside_the_tie")
    assert 0 < open_ones < total / 100


# What the cases cover.


def test_all_pairs_of_dtypes_are_covered_per_tensor_and_per_channel() -> None:
    for dtypes in PAIRS:
        samples = {tested.case.sample for tested, _ in valid(dtypes)}
        assert {"per_tensor", "per_channel", "per_channel_bias", "per_channel_zero_points", "depthwise"} <= samples


def test_zero_points_stand_at_both_ends_of_every_dtype() -> None:
    for dtypes in PAIRS:
        for name, dtype in zip(("x", "w", "y"), dtypes.split("-"), strict=True):
            info = np.iinfo(dtype)
            used = {int(v) for tested, _ in valid(dtypes) for v in value(tested, f"{name}_zero_point").ravel()}
            assert {info.min, info.max} <= used, (dtypes, name)


def test_zero_points_differ_by_channel_with_equal_and_with_different_scales() -> None:
    differing = {
        len(set(value(tested, "w_scale").ravel().tolist())) > 1
        for tested, _ in valid()
        if len(set(value(tested, "w_zero_point").ravel().tolist())) > 1
    }
    assert differing == {True, False}


def test_bias_is_absent_random_0_and_at_the_ends_of_int32() -> None:
    biases = [tested.node.value("B") for tested, _ in valid()]
    assert any(bias is None for bias in biases)
    used = {int(v) for bias in biases if bias is not None for v in bias}
    assert {0, INT32.max, INT32.min, 2**24 + 1} <= used
    assert len(used) > 50


@pytest.mark.parametrize(("end", "steps"), [("max", 64), ("min", -64)])
def test_a_bias_at_the_ends_of_int32_stays_in_range_or_saturates(end: str, steps: int) -> None:
    inside, saturated = case(f"bias_int32_{end}").truth, case(f"bias_int32_{end}_saturates").truth
    assert isinstance(inside, Outputs)
    assert isinstance(saturated, Outputs)
    assert set(inside.outputs[0].value.ravel().tolist()) == {128 + steps}
    assert set(saturated.outputs[0].value.ravel().tolist()) == {255 if end == "max" else 0}


@pytest.mark.parametrize(
    ("end", "steps"),
    [
        ("max", (2**31 - 1 + 67 * 9 * 255 * 127) / 2**24),
        ("min", (-(2**31) - 67 * 9 * 255 * 128) / 2**24),
    ],
)
def test_a_sum_beyond_int32_shows_in_the_output(end: str, steps: float) -> None:
    """An accumulator that stops at the end of int32 is one step short: 128, not 129 steps."""
    truth = case(f"bias_int32_{end}_with_a_large_sum").truth
    assert isinstance(truth, Outputs)
    assert round(abs(steps)) == 129
    assert set(truth.outputs[0].value.ravel().tolist()) == {129 if end == "max" else 255 - 129}
    assert not allowed(truth.outputs[0]).any()


def test_groups_and_depthwise_are_covered() -> None:
    shapes = {
        (tested.node.attributes.get("group", 1), value(tested, "x").shape[1], value(tested, "w").shape[0])
        for tested, _ in valid()
    }
    assert {(2, 4, 6), (4, 4, 4), (4, 4, 8), (3, 3, 3)} <= shapes


def test_attributes_are_covered() -> None:
    def used(name: str) -> set[Any]:
        return {tested.node.attributes[name] for tested, _ in valid() if name in tested.node.attributes}

    assert {(2, 2), (3, 1), (4, 5), (2,)} <= used("strides")
    assert {(2, 2), (3, 1), (2,)} <= used("dilations")
    assert {(1, 1, 1, 1), (2, 1, 0, 0), (0, 0, 1, 2), (0, 2, 1, 0), (3, 1), (1, 0, 1, 0, 1, 0)} <= used("pads")
    assert used("auto_pad") == {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}
    assert used("kernel_shape") == {(3, 3)}
    assert any(not tested.node.attributes for tested, _ in valid())


def test_same_padding_is_covered_where_upper_and_lower_differ() -> None:
    for upper in [tested for tested, _ in valid() if tested.node.attributes.get("auto_pad") == "SAME_UPPER"]:
        lower = upper.case.sample.replace("upper", "lower")
        if "dilated" not in upper.case.sample:
            assert lower in {tested.case.sample for tested, _ in valid()}
    assert {"auto_pad_same_lower_kernel_2x2", "auto_pad_same_lower_kernel_4x4", "auto_pad_same_lower_stride_2"} <= {
        tested.case.sample for tested, _ in valid()
    }


def test_one_two_and_three_spatial_dimensions_are_covered() -> None:
    assert {value(tested, "x").ndim - 2 for tested, _ in valid()} == {1, 2, 3}


@pytest.mark.parametrize("dtypes", PAIRS)
def test_ties_of_both_signs_are_decided_in_range(dtypes: str) -> None:
    for sample in ("ties_of_half", "ties_of_three_halves", "ties_of_five_halves", "ties_by_output_scale"):
        tested = case(sample, dtypes)
        assert isinstance(tested.truth, Outputs)
        (output,) = tested.truth.outputs
        info = np.iinfo(output.value.dtype)
        inside = (output.value > info.min) & (output.value < info.max)
        assert output.exact is not None
        ties = inside & (output.exact % 1 == 0.5)
        zero_point = int(value(tested, "y_zero_point").reshape(()))
        whole = np.floor(output.exact[ties] - zero_point)
        assert {(bool(v < 0), bool(v % 2)) for v in whole} == {(s, odd) for s in (False, True) for odd in (False, True)}
        assert not allowed(output)[ties].any()


@pytest.mark.parametrize("dtypes", PAIRS)
def test_both_ends_are_reached_alone_and_together(dtypes: str) -> None:
    info = np.iinfo(dtypes.split("-")[2])

    def reached(sample: str) -> set[int]:
        truth = case(sample, dtypes).truth
        assert isinstance(truth, Outputs)
        return set(truth.outputs[0].value.ravel().tolist())

    assert {info.min, info.max} <= reached("saturates_both_ways")
    assert reached("saturates_high") | reached("saturates_low") <= {info.min, info.max}


def test_a_size_0_batch_gives_an_empty_output() -> None:
    truth = case("size_0_batch").truth
    assert isinstance(truth, Outputs)
    assert truth.outputs[0].value.shape == (0, 3, 3, 3)


def test_zero_scales_are_refused_in_every_place() -> None:
    refused = {b.case.sample for b in built("QLinearConv", 10) if isinstance(b.truth, Refusal)}
    assert {"x_scale_0", "w_scale_0", "w_scale_0_in_one_channel", "y_scale_0"} <= {
        sample.removeprefix("refused_") for sample in refused
    }
