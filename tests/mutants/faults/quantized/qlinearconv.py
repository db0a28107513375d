"""QLinearConv-10 as one matrix product of all windows, and implementations that are wrong in one way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from tests.mutants.mutant import implemented
from tests.mutants.one_node import RefusedError, parse

Attributes = Mapping[str, Any]
Sizes = tuple[int, ...]
Pads = tuple[Sizes, Sizes]


def same_upper(total: int) -> tuple[int, int]:
    return total // 2, total - total // 2


def same_lower(total: int) -> tuple[int, int]:
    return total - total // 2, total // 2


def same_total(size: int, extent: int, stride: int) -> int:
    """The padding of an axis that makes ceil(size / stride) windows of that extent."""
    return max(0, (-(-size // stride) - 1) * stride + extent - size)


def explicit_pads(pads: Sizes) -> Pads:
    half = len(pads) // 2
    return pads[:half], pads[half:]


def convolution(windows: Array, filters: Array) -> Array:
    """[N, P, K] windows and [M, K] filters of integers -> [N, P, M]; exact, since sums stay below 2^53."""
    return (windows.astype(np.float64) @ filters.astype(np.float64).T).astype(np.int64)


def saturated(levels: Array, zero_point: int, dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    return np.clip(levels + zero_point, info.min, info.max).astype(dtype)


def half_to_even(real: Array) -> Array:
    return np.rint(real)


@dataclass(frozen=True)
class Conv:
    """Every field is one step of the computation. M output channels, G groups, K = channels of a group x kernel."""

    check_scales: bool = True
    check_kernel: bool = True
    check_lengths: bool = True
    strides: Callable[[Sizes], Sizes] = lambda strides: strides
    dilations: Callable[[Sizes], Sizes] = lambda dilations: dilations
    explicit_pads: Callable[[Sizes], Pads] = explicit_pads
    same_total: Callable[[int, int, int], int] = same_total
    same_extent: Callable[[int, int], int] = lambda kernel, dilation: dilation * (kernel - 1) + 1
    same_upper: Callable[[int], tuple[int, int]] = same_upper
    same_lower: Callable[[int], tuple[int, int]] = same_lower
    x_values: Callable[[Array], Array] = lambda x: x
    w_values: Callable[[Array], Array] = lambda w: w
    x_zero_point: Callable[[int], int] = int
    w_zero_point: Callable[[Array], Array] = lambda zero_points: zero_points
    y_zero_point: Callable[[int], int] = int
    padding: Callable[[int], int] = int
    w_scale: Callable[[Array], Array] = lambda scales: scales
    kernel: Callable[[Array], Array] = lambda w: w
    channels_of_group: Callable[[Array, int, int], Array] = lambda x, group, groups: np.split(x, groups, 1)[group]
    batch: Callable[[Array], Array] = lambda x: x
    convolution: Callable[[Array, Array], Array] = convolution
    bias: Callable[[Array], Array] = lambda bias: bias
    accumulator: Callable[[Array], Array] = lambda sums: sums
    real: Callable[[Array, float, Array, float], Array] = lambda sums, x, w, y: sums * (x * w) / y
    rounded: Callable[[Array], Array] = half_to_even
    saturated: Callable[[Array, int, Any], Array] = saturated

    def __call__(self, model: bytes, feeds: Mapping[str, Array]) -> tuple[Array]:
        node = parse(model)
        x, x_scale, x_zp, w, w_scale, w_zp, y_scale, y_zp, bias = node.values(feeds, 9)
        assert x is not None
        assert x_scale is not None
        assert x_zp is not None
        assert w is not None
        assert w_scale is not None
        assert w_zp is not None
        assert y_scale is not None
        assert y_zp is not None
        groups, spatial = int(node.attributes.get("group", 1)), x.ndim - 2
        if self.check_scales and not (x_scale.all() and w_scale.all() and y_scale.all()):
            raise RefusedError("a scale is 0")
        if self.check_lengths and not {w_scale.size, w_zp.size} <= {1, len(w)}:
            raise RefusedError("w_scale or w_zero_point is neither of one element nor of one per output channel")
        if x.shape[1] != w.shape[1] * groups or len(w) % groups:
            raise RefusedError("the channels do not fit")
        if self.check_kernel and tuple(node.attributes.get("kernel_shape", w.shape[2:])) != w.shape[2:]:
            raise RefusedError("kernel_shape is not the kernel's")
        strides = self.strides(tuple(node.attributes.get("strides", (1,) * spatial)))
        dilations = self.dilations(tuple(node.attributes.get("dilations", (1,) * spatial)))
        begin, end = self.pads(node.attributes, x.shape[2:], w.shape[2:], strides, dilations)
        zero = int(x_zp.reshape(()))
        padded = np.pad(
            self.batch(self.x_values(x)).astype(np.int64),
            ((0, 0), (0, 0), *zip(begin, end, strict=True)),
            constant_values=self.padding(zero),
        )
        padded -= self.x_zero_point(zero)
        zero_points = np.broadcast_to(self.w_zero_point(w_zp.reshape(-1)), len(w)).astype(np.int64)
        filters = self.kernel(self.w_values(w).astype(np.int64)) - zero_points.reshape(-1, *(1,) * (w.ndim - 1))
        sums = np.concatenate(
            [
                self.group(self.channels_of_group(padded, group, groups), part, strides, dilations)
                for group, part in enumerate(np.split(filters, groups))
            ],
            1,
        )
        along_channels = (1, -1) + (1,) * spatial
        if bias is not None:
            sums = sums + self.bias(bias.astype(np.int64)).reshape(along_channels)
        sums = self.accumulator(sums)
        scales = np.broadcast_to(self.w_scale(w_scale.reshape(-1)), len(w)).astype(np.float64).reshape(along_channels)
        with np.errstate(all="ignore"):
            real = self.real(sums, float(x_scale.reshape(())), scales, float(y_scale.reshape(())))
            rounded = np.nan_to_num(np.clip(self.rounded(real), -(2.0**40), 2.0**40)).astype(np.int64)
        return (self.saturated(rounded, self.y_zero_point(int(y_zp.reshape(()))), y_zp.dtype),)

    def pads(self, attributes: Attributes, image: Sizes, kernel: Sizes, strides: Sizes, dilations: Sizes) -> Pads:
        mode = attributes.get("auto_pad", b"NOTSET").decode()
        if not mode.startswith("SAME"):
            pads = tuple(attributes.get("pads", (0,) * 2 * len(image)))
            if len(pads) != 2 * len(image):
                raise RefusedError("pads has the wrong length")
            return self.explicit_pads(pads)
        split = self.same_upper if mode == "SAME_UPPER" else self.same_lower
        pairs = [
            split(self.same_total(size, self.same_extent(k, dilation), stride))
            for size, k, stride, dilation in zip(image, kernel, strides, dilations, strict=True)
        ]
        return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)

    def group(self, x: Array, filters: Array, strides: Sizes, dilations: Sizes) -> Array:
        """The sums of one group, [N, M / G, *output]."""
        spatial = len(strides)
        extents = tuple(d * (k - 1) + 1 for k, d in zip(filters.shape[2:], dilations, strict=True))
        if any(extent > size for extent, size in zip(extents, x.shape[2:], strict=True)):
            raise RefusedError("the kernel is larger than the padded image")
        windows = np.lib.stride_tricks.sliding_window_view(x, extents, tuple(range(2, 2 + spatial)))
        windows = windows[:, :, *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilations)]
        output = windows.shape[2 : 2 + spatial]
        windows = np.moveaxis(windows, 1, 1 + spatial)
        windows = windows.reshape(len(x), int(np.prod(output)), int(np.prod(filters.shape[1:])))
        sums = self.convolution(windows, filters.reshape(len(filters), -1))
        return np.moveaxis(sums, 2, 1).reshape(len(x), len(filters), *output)


CORRECT = Conv()


def as_float16(value: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(np.float16).astype(np.float64)


def pairs_saturated_to_int16(windows: Array, filters: Array) -> Array:
    """pmaddubsw: two products are added in int16 with saturation before the wide sum."""
    products = windows[:, :, None, :] * filters[None, None]
    if products.shape[-1] % 2:
        products = np.concatenate([products, np.zeros_like(products[..., :1])], -1)
    pairs = products[..., ::2] + products[..., 1::2]
    return np.clip(pairs, -(2**15), 2**15 - 1).sum(-1)


def wrapped_to_int32(sums: Array) -> Array:
    return (sums + 2**31) % 2**32 - 2**31


def saturated_to_int32(sums: Array) -> Array:
    return np.clip(sums, -(2**31), 2**31 - 1)


def saturated_to_24_bits(sums: Array) -> Array:
    return np.clip(sums, -(2**23), 2**23 - 1)


def wrapping(levels: Array, zero_point: int, dtype: np.dtype[Any]) -> Array:
    return (levels + zero_point).astype(dtype)


def saturated_then_shifted(levels: Array, zero_point: int, dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    return (np.clip(levels, info.min, info.max) + zero_point).astype(dtype)


def saturated_symmetrically(levels: Array, zero_point: int, dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    return np.clip(levels + zero_point, info.min + 1, info.max).astype(dtype)


def saturated_one_early(levels: Array, zero_point: int, dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    return np.clip(levels + zero_point, info.min, info.max - 1).astype(dtype)


def clamped_at_the_zero_point(levels: Array, zero_point: int, dtype: np.dtype[Any]) -> Array:
    return saturated(np.maximum(levels, 0), zero_point, dtype)


def interleaved(pads: Sizes) -> Pads:
    return pads[::2], pads[1::2]


def first_channels(x: Array, _group: int, groups: int) -> Array:
    return np.split(x, groups, 1)[0]


def strided_channels(x: Array, group: int, groups: int) -> Array:
    return x[:, group::groups]


def flipped(w: Array) -> Array:
    return np.flip(w, tuple(range(2, w.ndim)))


def height_and_width_swapped(w: Array) -> Array:
    return np.swapaxes(w, -1, -2) if w.ndim > 3 and w.shape[-1] == w.shape[-2] else w


def sums_of_the_first_64(windows: Array, filters: Array) -> Array:
    return convolution(windows[..., :64], filters[..., :64])


def in_float32(sums: Array) -> Array:
    return sums.astype(np.float32).astype(np.int64)


def first_of(values: Array) -> Array:
    return values[:1]


def first_of_two(values: Array) -> Array:
    return values[:1] if len(values) == 2 else values


U8S8 = "QLinearConv-10/uint8-int8-uint8"

FIRST_SCALE_FOR_ALL = Conv(w_scale=first_of)
"""A mutant that is run as a target, by its name."""

MUTANTS = [
    implemented(
        "QLinearConv",
        "a tie is rounded up instead of to even",
        Conv(rounded=lambda real: np.floor(real + 0.5)),
        f"{U8S8}/ties_of_half[initializer]",
    ),
    implemented(
        "QLinearConv",
        "a tie is rounded away from zero instead of to even",
        Conv(rounded=lambda real: np.trunc(real + np.copysign(0.5, real))),
        f"{U8S8}/ties_of_three_halves[initializer]",
    ),
    implemented(
        "QLinearConv",
        "a tie is rounded toward zero instead of to even",
        Conv(rounded=lambda real: np.sign(real) * np.ceil(np.abs(real) - 0.5)),
        f"{U8S8}/ties_by_output_scale[initializer]",
    ),
    implemented(
        "QLinearConv",
        "a tie is rounded to odd",
        Conv(rounded=lambda real: np.rint(real + 1.0) - 1.0),
        f"{U8S8}/ties_of_an_eighth[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the fraction is cut off",
        Conv(rounded=np.trunc),
        f"{U8S8}/per_tensor[initializer]",
    ),
    implemented(
        "QLinearConv",
        "every value is rounded down",
        Conv(rounded=np.floor),
        f"{U8S8}/ties_of_five_halves[initializer]",
    ),
    implemented(
        "QLinearConv",
        "ties are decided after an odd zero point is added",
        Conv(
            rounded=lambda real: real,
            real=lambda sums, x, w, y: np.rint(sums * (x * w) / y + 3) - 3,
        ),
        f"{U8S8}/ties_with_odd_zero_point[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the first scale of w serves all channels",
        FIRST_SCALE_FOR_ALL,
        f"{U8S8}/per_channel[initializer]",
    ),
    implemented(
        "QLinearConv",
        "channel m takes the scale of channel m + 1",
        Conv(w_scale=lambda scales: np.roll(scales, -1)),
        f"{U8S8}/per_channel_powers_of_two[initializer]",
    ),
    implemented(
        "QLinearConv",
        "one scale, the mean of all, serves all channels",
        Conv(w_scale=lambda scales: scales.mean(keepdims=True)),
        f"{U8S8}/per_channel_far_apart[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the first zero point of w serves all channels",
        Conv(w_zero_point=first_of),
        f"{U8S8}/per_channel_zero_points_one_scale_value[initializer]",
    ),
    implemented(
        "QLinearConv",
        "int8 activations take the path of uint8",
        Conv(x_values=lambda x: x.view(np.uint8)),
        "QLinearConv-10/int8-int8-int8/per_tensor[initializer]",
    ),
    implemented(
        "QLinearConv",
        "int8 weights take the path of uint8",
        Conv(w_values=lambda w: w.view(np.uint8)),
        f"{U8S8}/per_tensor[initializer]",
    ),
    implemented(
        "QLinearConv",
        "uint8 weights take the path of int8",
        Conv(w_values=lambda w: w.view(np.int8)),
        "QLinearConv-10/uint8-uint8-uint8/per_channel[initializer]",
    ),
    implemented(
        "QLinearConv",
        "x is taken as it is",
        Conv(x_zero_point=lambda _: 0),
        f"{U8S8}/x_zero_point_high[initializer]",
    ),
    implemented(
        "QLinearConv",
        "w is taken as it is",
        Conv(w_zero_point=np.zeros_like),
        f"{U8S8}/w_zero_point_low[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the zero point -128 stays -128 when it is negated in int8",
        Conv(
            w_zero_point=lambda zero_points: -(-zero_points.astype(np.int64)).astype(zero_points.dtype).astype(np.int64)
        ),
        f"{U8S8}/w_zero_point_low[initializer]",
    ),
    implemented(
        "QLinearConv",
        "y is centred at 0",
        Conv(y_zero_point=lambda _: 0),
        f"{U8S8}/y_zero_point_high[initializer]",
    ),
    implemented(
        "QLinearConv",
        "padding is the number 0 instead of the zero point",
        Conv(padding=lambda _: 0),
        f"{U8S8}/padding_is_the_zero_point_high[initializer]",
    ),
    implemented(
        "QLinearConv",
        "a value beyond the range keeps its low 8 bits",
        Conv(saturated=wrapping),
        f"{U8S8}/saturates_high[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the range is applied first, then the zero point is added and wraps",
        Conv(saturated=saturated_then_shifted),
        f"{U8S8}/saturates_high_zero_point_high[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the lowest level is not used (-127 instead of -128)",
        Conv(saturated=saturated_symmetrically),
        f"{U8S8}/saturates_low[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the highest level is not used",
        Conv(saturated=saturated_one_early),
        f"{U8S8}/saturates_both_ways[initializer]",
    ),
    implemented(
        "QLinearConv",
        "nothing falls below the zero point",
        Conv(saturated=clamped_at_the_zero_point),
        f"{U8S8}/per_tensor[initializer]",
    ),
    implemented(
        "QLinearConv",
        "B is not added",
        Conv(bias=np.zeros_like),
        f"{U8S8}/bias_only[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the first bias serves all channels",
        Conv(bias=first_of),
        f"{U8S8}/bias[initializer]",
    ),
    implemented(
        "QLinearConv",
        "a bias beyond 2^24 loses its last bit",
        Conv(bias=in_float32),
        f"{U8S8}/bias_cancels_a_sum_past_float32_integers[initializer]",
    ),
    implemented(
        "QLinearConv",
        "a bias keeps its low 16 bits",
        Conv(bias=lambda bias: bias.astype(np.int16).astype(np.int64)),
        f"{U8S8}/bias_past_float32_integers[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the sum of products and bias wraps at 2^31",
        Conv(accumulator=wrapped_to_int32),
        f"{U8S8}/bias_int32_max[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the sum of products and bias stops at the ends of int32",
        Conv(accumulator=saturated_to_int32),
        f"{U8S8}/bias_int32_max_with_a_large_sum[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the sum saturates at 2^23",
        Conv(accumulator=saturated_to_24_bits),
        f"{U8S8}/bias_int32_min[initializer]",
    ),
    implemented(
        "QLinearConv",
        "two products are added in int16 with saturation",
        Conv(convolution=pairs_saturated_to_int16),
        "QLinearConv-10/int8-int8-int8/x_zero_point_high[initializer]",
    ),
    implemented(
        "QLinearConv",
        "only the first 64 elements of a window are summed",
        Conv(convolution=sums_of_the_first_64),
        f"{U8S8}/many_channels[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the product of the scales is a float16",
        Conv(real=lambda sums, x, w, y: sums * as_float16(x * w / y)),
        "QLinearConv-10/int8-int8-int8/pads_asymmetric[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the multiplier is a fixed-point number of 8 fractional bits",
        Conv(real=lambda sums, x, w, y: sums * (np.rint(x * w / y * 256) / 256)),
        f"{U8S8}/per_tensor[initializer]",
    ),
    implemented(
        "QLinearConv",
        "scales beyond float16 become 0 or infinite",
        Conv(real=lambda sums, x, w, y: sums * (as_float16(x) * as_float16(w) / as_float16(y))),
        f"{U8S8}/tiny_scales[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the output scale multiplies instead of dividing",
        Conv(real=lambda sums, x, w, y: sums * (x * w) * y),
        f"{U8S8}/ties_by_output_scale[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the sum is rounded in steps of x_scale before w_scale is applied",
        Conv(real=lambda sums, x, w, y: np.rint(sums * x) * w / y),
        "QLinearConv-10/int8-int8-int8/x_zero_point_high[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the stride of the height serves the width",
        Conv(strides=lambda strides: strides[::-1]),
        f"{U8S8}/strides_differ[initializer]",
    ),
    implemented(
        "QLinearConv",
        "every stride is 1",
        Conv(strides=lambda strides: (1,) * len(strides)),
        f"{U8S8}/stride_2[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the dilation of the height serves the width",
        Conv(dilations=lambda dilations: dilations[::-1]),
        f"{U8S8}/dilations_differ[initializer]",
    ),
    implemented(
        "QLinearConv",
        "every dilation is 1",
        Conv(dilations=lambda dilations: (1,) * len(dilations)),
        f"{U8S8}/dilation_2[initializer]",
    ),
    implemented(
        "QLinearConv",
        "what is to be padded at the begin is padded at the end",
        Conv(explicit_pads=lambda pads: explicit_pads(pads)[::-1]),
        f"{U8S8}/pads_asymmetric[initializer]",
    ),
    implemented(
        "QLinearConv",
        "pads are read as begin and end of each axis in turn",
        Conv(explicit_pads=interleaved),
        f"{U8S8}/pads_begin_only[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the pads of the begin serve the end too",
        Conv(explicit_pads=lambda pads: (explicit_pads(pads)[0],) * 2),
        f"{U8S8}/pads_end_only[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the odd row of SAME_LOWER stands at the end",
        Conv(same_lower=same_upper),
        f"{U8S8}/auto_pad_same_lower_kernel_2x2[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the odd row of SAME_UPPER stands at the begin",
        Conv(same_upper=same_lower),
        f"{U8S8}/auto_pad_same_upper_kernel_4x4[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the padding of SAME is that of stride 1",
        Conv(same_total=lambda size, extent, _stride: same_total(size, extent, 1)),
        f"{U8S8}/auto_pad_same_upper_stride_2[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the padding of SAME is that of a dense kernel",
        Conv(same_extent=lambda kernel, _dilation: kernel),
        f"{U8S8}/auto_pad_same_upper_dilated[initializer]",
    ),
    implemented(
        "QLinearConv",
        "every group reads the channels of the first",
        Conv(channels_of_group=first_channels),
        f"{U8S8}/groups_2[initializer]",
    ),
    implemented(
        "QLinearConv",
        "group g reads every G-th channel from g on",
        Conv(channels_of_group=strided_channels),
        f"{U8S8}/groups_2_per_channel_bias[initializer]",
    ),
    implemented(
        "QLinearConv",
        "convolution in the mathematical sense: the kernel is reversed",
        Conv(kernel=flipped),
        f"{U8S8}/1d[initializer]",
    ),
    implemented(
        "QLinearConv",
        "the kernel is transposed",
        Conv(kernel=height_and_width_swapped),
        f"{U8S8}/per_tensor[initializer]",
    ),
    implemented(
        "QLinearConv",
        "every image of the batch is the first one",
        Conv(batch=lambda x: np.broadcast_to(x[:1], x.shape) if len(x) else x),
        f"{U8S8}/batch_4[initializer]",
    ),
    implemented(
        "QLinearConv",
        "a scale of 0 is not refused",
        Conv(check_scales=False),
        f"{U8S8}/refused_w_scale_0_in_one_channel[initializer]",
    ),
    implemented(
        "QLinearConv",
        "a kernel_shape that is not the kernel's is ignored",
        Conv(check_kernel=False),
        f"{U8S8}/refused_kernel_shape_differs[initializer]",
    ),
    implemented(
        "QLinearConv",
        "two scales for three channels: the first counts",
        Conv(check_lengths=False, w_scale=first_of_two, w_zero_point=first_of_two),
        f"{U8S8}/refused_w_scale_of_wrong_length[initializer]",
    ),
]
