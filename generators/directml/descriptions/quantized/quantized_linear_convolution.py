"""DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC (ns-directml-dml_quantized_linear_convolution_operator_desc)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.feature_level import FeatureLevel, tensor_support
from epcheck.generators.directml.operator_desc import OperatorDesc, c_name
from epcheck.generators.directml.tensor import TensorDesc


@dataclass(frozen=True)
class QuantizedLinearConvolution(OperatorDesc):
    """Dequantises input and filter, convolves them, adds the bias, and quantises the result.

    `dimension_count` is the number of spatial dimensions, which is the length of `strides`.
    """

    NAME: ClassVar[str] = "DML_QUANTIZED_LINEAR_CONVOLUTION_OPERATOR_DESC"
    INPUTS: ClassVar[tuple[str, ...]] = (
        "input_tensor",
        "input_scale_tensor",
        "input_zero_point_tensor",
        "filter_tensor",
        "filter_scale_tensor",
        "filter_zero_point_tensor",
        "bias_tensor",
        "output_scale_tensor",
        "output_zero_point_tensor",
    )

    input_tensor: TensorDesc
    input_scale_tensor: TensorDesc
    input_zero_point_tensor: TensorDesc | None
    filter_tensor: TensorDesc
    filter_scale_tensor: TensorDesc
    filter_zero_point_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_scale_tensor: TensorDesc
    output_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc
    dimension_count: int = field(init=False)
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    group_count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.strides))

    def validate(self, level: FeatureLevel) -> tuple[Violation, ...]:
        """As OperatorDesc.validate, and the number of spatial dimensions that `level` supports.

        The page supports 'only a value of 2' and has not been edited since 2020; the newer tables admit tensors of
        three dimensions from 4_0 on, which leaves one spatial dimension. The tables decide.
        """
        return (*super().validate(level), *self._spatial_support(level))

    def _spatial_support(self, level: FeatureLevel) -> Iterator[Violation]:
        support = tensor_support(self.NAME, level).get("InputTensor")
        if support is None:
            return
        supported = [count - 2 for count in support.dimension_counts]
        if self.dimension_count not in supported:
            yield self.violation(
                "spatial_dimension_count_supported",
                f"DimensionCount is {self.dimension_count}; {level.name} supports {supported}",
            )

    def constraints(self) -> Iterator[Violation]:
        """The page's constraints, and the arithmetic of a convolution that the page takes as known.

        The page gives no formula for the output's size; it is that of every convolution,
        (input + padding - dilation * (filter - 1) - 1) // stride + 1.
        """
        yield from self._data_types()
        lengths = [len(values) for values in (self.strides, self.dilations, self.start_padding, self.end_padding)]
        if len(set(lengths)) > 1:
            yield self.violation(
                "arrays_have_dimension_count",
                "Strides, Dilations, StartPadding and EndPadding have {}, {}, {} and {} values".format(*lengths),
            )
            return
        described = [self.input_tensor, self.filter_tensor, self.output_tensor]
        described += [self.bias_tensor] if self.bias_tensor else []
        if len({tensor.dimension_count for tensor in described}) > 1:
            yield self.violation(
                "same_dimension_count",
                "input, filter, output and bias have sizes " + ", ".join(str(tensor.sizes) for tensor in described),
            )
            return
        if self.dimension_count != self.input_tensor.dimension_count - 2:
            yield self.violation(
                "spatial_dimension_count_matches_tensors",
                f"DimensionCount is {self.dimension_count}; "
                f"InputTensor has {self.input_tensor.dimension_count} dimensions, batch and channel among them",
            )
            return
        yield from self._parameters()
        yield from self._channels()
        yield from self._spatial_sizes()

    def _data_types(self) -> Iterator[Violation]:
        for tensor, zero_point, name in (
            (self.input_tensor, self.input_zero_point_tensor, "input"),
            (self.filter_tensor, self.filter_zero_point_tensor, "filter"),
            (self.output_tensor, self.output_zero_point_tensor, "output"),
        ):
            if zero_point is not None and zero_point.data_type is not tensor.data_type:
                yield self.violation(
                    f"{name}_zero_point_same_data_type",
                    f"{name.capitalize()}Tensor is {tensor.data_type.name} "
                    f"and its zero point {zero_point.data_type.name}",
                )

    def _parameters(self) -> Iterator[Violation]:
        """Scales, zero points and bias have the dimensions that the page expects.

        A single value may have any number of dimensions. One value for each channel lies in the second of as many
        dimensions as the input has, {1, OutputChannelCount, 1, 1}; of fewer dimensions the page says nothing.
        """
        spatial = (1,) * self.dimension_count
        per_channel = (1, self.output_tensor.sizes[1], *spatial)
        for name, one_value, each_channel in (
            ("input_scale_tensor", True, False),
            ("input_zero_point_tensor", True, False),
            ("filter_scale_tensor", True, True),
            ("filter_zero_point_tensor", True, True),
            ("bias_tensor", False, True),
            ("output_scale_tensor", True, False),
            ("output_zero_point_tensor", True, False),
        ):
            tensor: TensorDesc | None = getattr(self, name)
            if tensor is None:
                continue
            if one_value and all(size == 1 for size in tensor.sizes):
                continue
            if each_channel and tensor.sizes == per_channel:
                continue
            expected = [str((1, 1, *spatial))] * one_value + [str(per_channel)] * each_channel
            yield self.violation(
                f"{name}_expected_dimensions",
                f"{c_name(name)} has sizes {tensor.sizes}; expected {' or '.join(expected)}",
            )

    def _channels(self) -> Iterator[Violation]:
        batch_count, channel_count = self.input_tensor.sizes[:2]
        output_batch_count, output_channel_count = self.output_tensor.sizes[:2]
        filter_count, filter_channel_count = self.filter_tensor.sizes[:2]
        if output_batch_count != batch_count:
            yield self.violation(
                "output_batch_count",
                f"OutputTensor has a batch of {output_batch_count}; InputTensor one of {batch_count}",
            )
        if output_channel_count != filter_count:
            yield self.violation(
                "output_channel_count",
                f"OutputTensor has {output_channel_count} channels; there are {filter_count} filters",
            )
        if self.group_count < 1:
            yield self.violation("group_count_positive", f"GroupCount is {self.group_count}")
            return
        if channel_count != filter_channel_count * self.group_count:
            yield self.violation(
                "input_channels_in_groups",
                f"InputTensor has {channel_count} channels; {self.group_count} groups "
                f"of filters with {filter_channel_count} channels take {filter_channel_count * self.group_count}",
            )
        if filter_count % self.group_count:
            yield self.violation(
                "filters_in_groups", f"{filter_count} filters do not divide into {self.group_count} groups"
            )

    def _spatial_sizes(self) -> Iterator[Violation]:
        for axis, (stride, dilation) in enumerate(zip(self.strides, self.dilations, strict=True)):
            if stride < 1:
                yield self.violation("strides_positive", f"in spatial dimension {axis} the stride is {stride}")
            if dilation < 1:
                yield self.violation("dilations_positive", f"in spatial dimension {axis} the dilation is {dilation}")
            if stride < 1 or dilation < 1:
                continue
            padded = self.input_tensor.sizes[2 + axis] + self.start_padding[axis] + self.end_padding[axis]
            extent = dilation * (self.filter_tensor.sizes[2 + axis] - 1) + 1
            if extent > padded:
                yield self.violation(
                    "filter_within_padded_input",
                    f"in spatial dimension {axis} the filter covers {extent} elements; the padded input has {padded}",
                )
                continue
            expected = (padded - extent) // stride + 1
            if self.output_tensor.sizes[2 + axis] != expected:
                yield self.violation(
                    "output_spatial_size",
                    f"in spatial dimension {axis} the output has size {self.output_tensor.sizes[2 + axis]}; "
                    f"a convolution gives {expected}",
                )

    def evaluate(self, *input_tensors: Array | None) -> tuple[Array]:
        """clamp(round(y / OutputScale) + OutputZeroPoint, Min, Max) of y = convolution + bias.

        y convolves (Input - InputZeroPoint) * InputScale with (Filter - FilterZeroPoint) * FilterScale. Both
        scales stand outside the sum, so the sum is one of integers and exact in float64, and scaling it is all that
        rounds; a value that lies exactly between two outputs stays there. What the page leaves open:

        - `round` is to nearest, ties to even, as in ONNX's QuantizeLinear.
        - The bias counts in steps of InputScale * FilterScale with zero point 0, as in ONNX's QLinearConv.
        - Padding is the real value 0, which is the zero point.
        - A zero point that is left out is 0.

        input_tensors: an array for each of INPUTS; None for one that the description leaves out.

        Raises ValueError also if a scale is not finite or OutputScale is 0.
        """
        self.require_defined()
        arrays = dict(zip(self.INPUTS, input_tensors, strict=True))
        self.require_arrays(**arrays)
        image, filters, bias = (_values(arrays[f"{name}_tensor"]) for name in ("input", "filter", "bias"))
        input_zero, filter_zero, output_zero = (
            _values(arrays[f"{name}_zero_point_tensor"]).ravel() for name in ("input", "filter", "output")
        )
        input_scale, filter_scale, output_scale = (
            _values(arrays[f"{name}_scale_tensor"]).ravel() for name in ("input", "filter", "output")
        )
        if not (np.isfinite(input_scale).all() and np.isfinite(filter_scale).all() and np.isfinite(output_scale).all()):
            raise ValueError(f"{self.NAME}: a scale is not finite")
        if not output_scale.all():
            raise ValueError(f"{self.NAME}: OutputScaleTensor is 0")

        rank = self.input_tensor.dimension_count
        total = _convolve(self, image - input_zero, filters - _along(0, rank, filter_zero))
        total += _along(1, rank, bias.ravel())
        real = total * _along(1, rank, input_scale * filter_scale)
        quantised = np.rint(real / output_scale) + output_zero
        dtype = self.output_tensor.data_type.dtype
        limits = np.iinfo(dtype)
        return (np.clip(quantised, limits.min, limits.max).astype(dtype),)


def _values(array: Array | None) -> Array:
    """The values of an array as float64; a single 0 if it is left out."""
    return np.zeros(1) if array is None else array.astype(np.float64)


def _along(axis: int, rank: int, values: Array) -> Array:
    """One value or one for each channel, shaped to broadcast along `axis` of `rank` dimensions."""
    return values.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))


def _pad(inputs: Array, start: tuple[int, ...], end: tuple[int, ...]) -> Array:
    """`inputs` with zeros before and after each spatial dimension; much faster than np.pad on small arrays."""
    if not any(start) and not any(end):
        return inputs
    spatial = inputs.shape[2:]
    padded_sizes = (before + size + after for before, size, after in zip(start, spatial, end, strict=True))
    padded = np.zeros((*inputs.shape[:2], *padded_sizes))
    inside = tuple(slice(before, before + size) for before, size in zip(start, spatial, strict=True))
    padded[:, :, *inside] = inputs
    return padded


def _convolve(desc: QuantizedLinearConvolution, inputs: Array, filters: Array) -> Array:
    """The convolution of float64 arrays that hold integers; exact while sums stay below 2**53."""
    batch_count, channel_count, *_ = inputs.shape
    filter_count, filter_channel_count, *filter_sizes = filters.shape
    groups = desc.group_count
    padded = _pad(inputs, desc.start_padding, desc.end_padding)
    output_sizes = desc.output_tensor.sizes[2:]
    # Every filter position of every output position: (batch, channel, *output, *filter), without a copy.
    spatial_strides = padded.strides[2:]
    patches = np.lib.stride_tricks.as_strided(
        padded,
        (batch_count, channel_count, *output_sizes, *filter_sizes),
        (
            *padded.strides[:2],
            *(step * stride for step, stride in zip(spatial_strides, desc.strides, strict=True)),
            *(step * dilation for step, dilation in zip(spatial_strides, desc.dilations, strict=True)),
        ),
        writeable=False,
    )
    spatial = desc.dimension_count
    output_axes = tuple(range(3, 3 + spatial))
    filter_axes = tuple(range(3 + spatial, 3 + 2 * spatial))
    grouped = patches.reshape(batch_count, groups, filter_channel_count, *output_sizes, *filter_sizes)
    columns = grouped.transpose(0, 1, 2, *filter_axes, *output_axes).reshape(
        batch_count, groups, filter_channel_count * math.prod(filter_sizes), math.prod(output_sizes)
    )
    rows = filters.reshape(groups, filter_count // groups, filter_channel_count * math.prod(filter_sizes))
    product: Array = rows @ columns
    return product.reshape(batch_count, filter_count, *output_sizes)
