"""DML_CONVOLUTION_OPERATOR_DESC and DML_CONVOLUTION_INTEGER_OPERATOR_DESC.

Pages: ns-directml-dml_convolution_operator_desc, ns-directml-dml_convolution_integer_operator_desc. A fused activation
is a description whose tensors are null.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.convolution_pooling.sliding import Sliding
from epcheck.generators.directml.descriptions.elementwise.unary import OneTensor
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import DataType, TensorDesc


class ConvolutionMode(Enum):
    """DML_CONVOLUTION_MODE."""

    CONVOLUTION = 0
    CROSS_CORRELATION = 1


class ConvolutionDirection(Enum):
    """DML_CONVOLUTION_DIRECTION; backward is what ONNX calls ConvTranspose."""

    FORWARD = 0
    BACKWARD = 1


@dataclass(frozen=True)
class Convolution(OperatorDesc):
    """Convolves an input [N, C, *spatial] with a filter; backward it is the transposed convolution.

    `dimension_count` is the number of spatial dimensions, which is the length of `strides`.
    """

    NAME: ClassVar[str] = "DML_CONVOLUTION_OPERATOR_DESC"

    input_tensor: TensorDesc
    filter_tensor: TensorDesc
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc
    mode: ConvolutionMode
    direction: ConvolutionDirection
    dimension_count: int = field(init=False)
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    group_count: int
    fused_activation: OneTensor | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.strides))

    def constraints(self) -> Iterator[Violation]:
        """Same types, one value per spatial dimension, channels that divide into the groups."""
        tensors = [self.input_tensor, self.filter_tensor, self.output_tensor]
        tensors += [self.bias_tensor] if self.bias_tensor else []
        if len({tensor.data_type for tensor in tensors}) > 1:
            yield self.violation("same_data_type", "input, filter, bias and output differ in their data type")
        if len({tensor.dimension_count for tensor in tensors}) > 1:
            yield self.violation("same_dimension_count", "input, filter, bias and output differ in dimension count")
            return
        arrays = (self.strides, self.dilations, self.start_padding, self.end_padding, self.output_padding)
        yield from spatial_violations(self, self.input_tensor, arrays)
        forward = self.direction is ConvolutionDirection.FORWARD
        wide, narrow = (self.input_tensor, self.output_tensor) if forward else (self.output_tensor, self.input_tensor)
        yield from filter_violations(self, wide.sizes, self.filter_tensor.sizes, narrow.sizes, self.group_count)
        bias, expected = self.bias_tensor, (1, self.output_tensor.sizes[1], *(1 for _ in self.strides))
        if bias is not None and bias.sizes != expected:
            yield self.violation("bias_sizes", f"BiasTensor has sizes {bias.sizes} instead of {expected}")

    def evaluate(self, input_tensor: Array, filter_tensor: Array, bias_tensor: Array | None) -> tuple[Array]:
        """The direct sum in float64, the activation of it, cast to the output's type."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, filter_tensor=filter_tensor, bias_tensor=bias_tensor)
        if self.mode is not ConvolutionMode.CROSS_CORRELATION:
            raise ValueError(f"{self.NAME}: only a cross-correlation is evaluated")
        if self.output_tensor.strides is not None:
            raise ValueError(f"{self.NAME}: an output that is not packed has its elements in another order")
        forward = self.direction is ConvolutionDirection.FORWARD
        wide, narrow = self.input_tensor.sizes[2:], self.output_tensor.sizes[2:]
        image, output = (wide, narrow) if forward else (narrow, wide)
        sliding = Sliding(image, output, self.filter_tensor.sizes[2:], self.strides, self.dilations, self.start_padding)
        compute = sliding.convolve if forward else sliding.spread
        total = compute(input_tensor.astype(np.float64), filter_tensor.astype(np.float64), self.group_count)
        total = total if bias_tensor is None else total + bias_tensor.astype(np.float64)
        with np.errstate(all="ignore"):
            result = total if self.fused_activation is None else self.fused_activation.formula(total)
            return (result.astype(self.output_tensor.data_type.dtype),)


@dataclass(frozen=True)
class ConvolutionInteger(OperatorDesc):
    """Convolves (input - its zero point) with (filter - its zero point), in INT32."""

    NAME: ClassVar[str] = "DML_CONVOLUTION_INTEGER_OPERATOR_DESC"

    input_tensor: TensorDesc
    input_zero_point_tensor: TensorDesc | None
    filter_tensor: TensorDesc
    filter_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc
    dimension_count: int = field(init=False)
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    group_count: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.strides))

    def constraints(self) -> Iterator[Violation]:
        """Zero points of the type of their tensors, one value per spatial dimension."""
        pairs = (
            (self.input_tensor, self.input_zero_point_tensor),
            (self.filter_tensor, self.filter_zero_point_tensor),
        )
        for tensor, zero_point in pairs:
            if zero_point is not None and zero_point.data_type is not tensor.data_type:
                yield self.violation("zero_point_same_data_type", "a zero point differs from its tensor in data type")
        tensors = (self.input_tensor, self.filter_tensor, self.output_tensor)
        if len({tensor.dimension_count for tensor in tensors}) > 1:
            yield self.violation("same_dimension_count", "input, filter and output differ in dimension count")
            return
        rank, wide, filters, narrow = tensors[0].dimension_count, *(tensor.sizes for tensor in tensors)
        for (_, zero_point), counts in zip(pairs, ((1,), (1, filters[0])), strict=True):
            if zero_point is not None and not (
                zero_point.dimension_count == rank and zero_point.element_count in counts
            ):
                yield self.violation("zero_point_sizes", f"a zero point has sizes {zero_point.sizes}")
        arrays = (self.strides, self.dilations, self.start_padding, self.end_padding)
        yield from spatial_violations(self, self.input_tensor, arrays)
        yield from filter_violations(self, wide, filters, narrow, self.group_count)
        if self.output_tensor.data_type is not DataType.INT32:
            yield self.violation("output_data_type", f"OutputTensor is {self.output_tensor.data_type.name}, not INT32")

    def evaluate(
        self,
        input_tensor: Array,
        input_zero_point_tensor: Array | None,
        filter_tensor: Array,
        filter_zero_point_tensor: Array | None,
    ) -> tuple[Array]:
        """The exact sums of integers; the padding is the real value 0, which is the zero point."""
        self.require_defined()
        self.require_arrays(
            input_tensor=input_tensor,
            input_zero_point_tensor=input_zero_point_tensor,
            filter_tensor=filter_tensor,
            filter_zero_point_tensor=filter_zero_point_tensor,
        )
        x, w = input_tensor.astype(np.int64), filter_tensor.astype(np.int64)
        if input_zero_point_tensor is not None:
            x = x - int(input_zero_point_tensor.ravel()[0])
        if filter_zero_point_tensor is not None:
            w = w - filter_zero_point_tensor.astype(np.int64).reshape(-1, *(1,) * (w.ndim - 1))
        image, output = self.input_tensor.sizes[2:], self.output_tensor.sizes[2:]
        sliding = Sliding(image, output, self.filter_tensor.sizes[2:], self.strides, self.dilations, self.start_padding)
        return (sliding.convolve(x, w, self.group_count).astype(np.int32),)


def filter_violations(
    desc: OperatorDesc, wide: tuple[int, ...], filters: tuple[int, ...], narrow: tuple[int, ...], groups: int
) -> Iterator[Violation]:
    """The filter [M, C / groups, *window] makes `narrow` [N, M, *spatial] of `wide` [N, C, *spatial]; backward the
    output is the wide one."""
    if wide[0] != narrow[0]:
        yield desc.violation("same_batches", f"InputTensor and OutputTensor are of batches {wide[0]} and {narrow[0]}")
    if narrow[1] != filters[0]:
        yield desc.violation("a_filter_for_each_channel", f"{filters[0]} filters for {narrow[1]} channels")
    if groups < 1 or filters[0] % groups or wide[1] != filters[1] * groups:
        yield desc.violation("channels_in_groups", f"{groups} groups of {wide[1]} channels with filters {filters}")


def spatial_violations(
    desc: OperatorDesc, tensor: TensorDesc, arrays: tuple[tuple[int, ...], ...]
) -> Iterator[Violation]:
    """Every array has one value per spatial dimension of the tensor; the first two, where given, are positive."""
    expected = tensor.dimension_count - 2
    if any(len(values) != expected for values in arrays):
        yield desc.violation(
            "arrays_have_dimension_count",
            f"{[len(values) for values in arrays]} values for {expected} spatial dimensions",
        )
    if min((1, *arrays[0])) < 1:
        yield desc.violation("strides_positive", f"the strides are {arrays[0]}")
