"""The pooling operators: what slides a window over [N, C, *spatial], and DML_MAX_UNPOOLING, DML_FOLD beside them.

Pages: ns-directml-dml_average_pooling_operator_desc, -dml_lp_pooling_, -dml_max_pooling_, -dml_max_pooling2_,
-dml_average_pooling1_, -dml_lp_pooling1_, -dml_max_unpooling_, -dml_fold_,
-dml_quantized_linear_average_pooling_operator_desc.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.convolution_pooling.convolution import spatial_violations
from epcheck.generators.directml.descriptions.convolution_pooling.sliding import Sliding
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc


def _make_sliding(desc: "Pooling") -> Sliding:
    dilations = getattr(desc, "dilations", (1,) * len(desc.strides))
    sizes, output = desc.input_tensor.sizes[2:], desc.output_tensor.sizes[2:]
    return Sliding(sizes, output, desc.window_size, desc.strides, dilations, desc.start_padding)


@dataclass(frozen=True)
class Pooling(OperatorDesc):
    """What the pooling descriptions share; `dimension_count` is the length of `strides`."""

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    dimension_count: int = field(init=False)
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.strides))

    def constraints(self) -> Iterator[Violation]:
        """Same type and leading sizes, one positive value for each spatial dimension."""
        if self.input_tensor.data_type is not self.output_tensor.data_type:
            yield self.violation("same_data_type", "InputTensor and OutputTensor differ in their data type")
        if self.input_tensor.sizes[:2] != self.output_tensor.sizes[:2]:
            yield self.violation("same_leading_sizes", "InputTensor and OutputTensor differ in batch or channels")
        arrays = (self.strides, self.window_size, self.start_padding, self.end_padding)
        yield from spatial_violations(self, self.input_tensor, arrays)

    def _average(self, values: Array, include_padding: bool) -> Array:
        sliding = _make_sliding(self)
        counted = sliding.inside(self.end_padding if include_padding else None)
        averages: Array = sliding.gather(values, 0.0).sum(-1) / counted.sum(-1)
        return averages

    def _norm(self, values: Array, p: int) -> Array:
        norms: Array = (_make_sliding(self).gather(np.abs(values), 0.0) ** p).sum(-1) ** (1 / p)
        return norms

    def _prepare(self, values: Array) -> Array:
        self.require_defined()
        self.require_arrays(input_tensor=values)
        return values.astype(np.float64)

    def _store(self, values: Array) -> Array:
        with np.errstate(over="ignore"):
            return values.astype(self.output_tensor.data_type.dtype)


@dataclass(frozen=True)
class AveragePooling(Pooling):
    """The average under each window, of the image alone or with its padding."""

    NAME: ClassVar[str] = "DML_AVERAGE_POOLING_OPERATOR_DESC"
    include_padding: bool

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """In float64, cast to the output's type."""
        return (self._store(self._average(self._prepare(input_tensor), self.include_padding)),)


@dataclass(frozen=True)
class AveragePooling1(Pooling):
    """As AveragePooling, with dilations."""

    NAME: ClassVar[str] = "DML_AVERAGE_POOLING1_OPERATOR_DESC"
    dilations: tuple[int, ...]
    include_padding: bool

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """In float64, cast to the output's type."""
        return (self._store(self._average(self._prepare(input_tensor), self.include_padding)),)


@dataclass(frozen=True)
class LpPooling(Pooling):
    """(sum of |x|^P)^(1 / P) under each window."""

    NAME: ClassVar[str] = "DML_LP_POOLING_OPERATOR_DESC"
    p: int

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """In float64, cast to the output's type."""
        return (self._store(self._norm(self._prepare(input_tensor), self.p)),)


@dataclass(frozen=True)
class LpPooling1(Pooling):
    """As LpPooling, with dilations."""

    NAME: ClassVar[str] = "DML_LP_POOLING1_OPERATOR_DESC"
    dilations: tuple[int, ...]
    p: int

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """In float64, cast to the output's type."""
        return (self._store(self._norm(self._prepare(input_tensor), self.p)),)


@dataclass(frozen=True)
class MaxPooling(Pooling):
    """The maximum under each window."""

    NAME: ClassVar[str] = "DML_MAX_POOLING_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The padding never is the maximum."""
        self._prepare(input_tensor)
        return (_make_sliding(self).maximum(input_tensor)[0],)


@dataclass(frozen=True)
class MaxPooling2(OperatorDesc):
    """The maximum under each window, and optionally its index; with dilations."""

    NAME: ClassVar[str] = "DML_MAX_POOLING2_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    output_indices_tensor: TensorDesc | None
    dimension_count: int = field(init=False)
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    dilations: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.strides))

    def constraints(self) -> Iterator[Violation]:
        """Same type; indices of the output's sizes; one positive value for each spatial dimension."""
        if self.input_tensor.data_type is not self.output_tensor.data_type:
            yield self.violation("same_data_type", "InputTensor and OutputTensor differ in their data type")
        indices = self.output_indices_tensor
        if indices is not None and indices.sizes != self.output_tensor.sizes:
            yield self.violation("same_sizes", "OutputIndicesTensor and OutputTensor differ in their sizes")
        if self.input_tensor.sizes[:2] != self.output_tensor.sizes[:2]:
            yield self.violation("same_leading_sizes", "InputTensor and OutputTensor differ in batch or channels")
        arrays = (self.strides, self.window_size, self.start_padding, self.end_padding, self.dilations)
        yield from spatial_violations(self, self.input_tensor, arrays)

    def evaluate(self, input_tensor: Array) -> tuple[Array, ...]:
        """The page counts an index from the start of the whole input, padding left out; of equal ones the first."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        sizes, output = self.input_tensor.sizes[2:], self.output_tensor.sizes[2:]
        sliding = Sliding(sizes, output, self.window_size, self.strides, self.dilations, self.start_padding)
        values, indices = sliding.maximum(input_tensor)
        if self.output_indices_tensor is None:
            return (values,)
        return values, indices.astype(self.output_indices_tensor.data_type.dtype)


@dataclass(frozen=True)
class MaxUnpooling(OperatorDesc):
    """Puts each input element where its index says; the rest is 0."""

    NAME: ClassVar[str] = "DML_MAX_UNPOOLING_OPERATOR_DESC"

    input_tensor: TensorDesc
    indices_tensor: TensorDesc
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """Input and indices have the same sizes, input and output the same type."""
        if self.input_tensor.sizes != self.indices_tensor.sizes:
            yield self.violation("same_sizes", "InputTensor and IndicesTensor differ in their sizes")
        if self.input_tensor.data_type is not self.output_tensor.data_type:
            yield self.violation("same_data_type", "InputTensor and OutputTensor differ in their data type")

    def evaluate(self, input_tensor: Array, indices_tensor: Array) -> tuple[Array]:
        """The indices count from the start of the whole output."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, indices_tensor=indices_tensor)
        output = np.zeros(self.output_tensor.element_count, input_tensor.dtype)
        output[indices_tensor.ravel().astype(np.int64)] = input_tensor.ravel()
        return (output.reshape(self.output_tensor.sizes),)


@dataclass(frozen=True)
class Fold(OperatorDesc):
    """Adds up sliding blocks: [N, C * product(window), blocks] becomes [N, C, *spatial]."""

    NAME: ClassVar[str] = "DML_FOLD_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    dimension_count: int = field(init=False)
    window_sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.window_sizes))

    def constraints(self) -> Iterator[Violation]:
        """Same type, one value for each spatial dimension of the output."""
        if self.input_tensor.data_type is not self.output_tensor.data_type:
            yield self.violation("same_data_type", "InputTensor and OutputTensor differ in their data type")
        arrays = (self.strides, self.window_sizes, self.dilations, self.start_padding, self.end_padding)
        found = list(spatial_violations(self, self.output_tensor, arrays))
        if min((*self.window_sizes, *self.dilations)) < 1:
            found.append(self.violation("windows_positive", f"{self.window_sizes} with dilations {self.dilations}"))
        yield from found
        if found:
            return
        n, channels = self.output_tensor.sizes[:2]
        expected = (n, channels * math.prod(self.window_sizes), math.prod(self._blocks()))
        if self.input_tensor.sizes != expected:
            yield self.violation("input_sizes", f"InputTensor has sizes {self.input_tensor.sizes}, not {expected}")

    def _blocks(self) -> tuple[int, ...]:
        """How many windows there are along each spatial dimension of the output."""
        return tuple(
            (size + begin + end - dilation * (window - 1) - 1) // stride + 1
            for size, begin, end, dilation, window, stride in zip(
                self.output_tensor.sizes[2:],
                self.start_padding,
                self.end_padding,
                self.dilations,
                self.window_sizes,
                self.strides,
                strict=True,
            )
        )

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The sum where blocks overlap, in the output's type, float16 in float64."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        image = self.output_tensor.sizes[2:]
        blocks = self._blocks()
        sliding = Sliding(image, blocks, self.window_sizes, self.strides, self.dilations, self.start_padding)
        under = input_tensor.reshape(*self.output_tensor.sizes[:2], math.prod(self.window_sizes), *blocks)
        wide = np.float64 if input_tensor.dtype.kind == "f" else input_tensor.dtype
        total = sliding.add_up(np.moveaxis(under, 2, -1).astype(wide))
        return (total.astype(self.output_tensor.data_type.dtype),)


@dataclass(frozen=True)
class QuantizedLinearAveragePooling(OperatorDesc):
    """Dequantises, averages under each window, and quantises."""

    NAME: ClassVar[str] = "DML_QUANTIZED_LINEAR_AVERAGE_POOLING_OPERATOR_DESC"

    input_tensor: TensorDesc
    input_scale_tensor: TensorDesc
    input_zero_point_tensor: TensorDesc | None
    output_scale_tensor: TensorDesc
    output_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc
    dimension_count: int = field(init=False)
    strides: tuple[int, ...]
    window_size: tuple[int, ...]
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]
    dilations: tuple[int, ...]
    include_padding: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension_count", len(self.strides))

    def constraints(self) -> Iterator[Violation]:
        """Zero points of their tensors' types, one value for each spatial dimension."""
        for tensor, zero_point in (
            (self.input_tensor, self.input_zero_point_tensor),
            (self.output_tensor, self.output_zero_point_tensor),
        ):
            if zero_point is not None and zero_point.data_type is not tensor.data_type:
                yield self.violation("zero_point_same_data_type", "a zero point differs from its tensor in data type")
        rank, parameters = self.output_tensor.dimension_count, vars(self).items()
        for name, tensor in parameters:
            if ("scale" in name or "zero_point" in name) and tensor is not None and tensor.sizes != (1,) * rank:
                yield self.violation(f"{name}_sizes", f"{name} has sizes {tensor.sizes} instead of {(1,) * rank}")
        if self.input_tensor.sizes[:2] != self.output_tensor.sizes[:2]:
            yield self.violation("same_leading_sizes", "InputTensor and OutputTensor differ in batch or channels")
        if self.input_tensor.dimension_count != rank:
            yield self.violation("same_dimension_count", "InputTensor and OutputTensor differ in dimension count")
        arrays = (self.strides, self.window_size, self.start_padding, self.end_padding, self.dilations)
        yield from spatial_violations(self, self.input_tensor, arrays)

    def evaluate(
        self,
        input_tensor: Array,
        input_scale_tensor: Array,
        input_zero_point_tensor: Array | None,
        output_scale_tensor: Array,
        output_zero_point_tensor: Array | None,
    ) -> tuple[Array]:
        """clamp(round(average / OutputScale) + OutputZeroPoint); round is to nearest, ties to even."""
        self.require_defined()
        if self.output_tensor.strides is not None:
            raise ValueError(f"{self.NAME}: an output that is not packed has its elements in another order")
        sizes, output = self.input_tensor.sizes[2:], self.output_tensor.sizes[2:]
        sliding = Sliding(sizes, output, self.window_size, self.strides, self.dilations, self.start_padding)
        zero, out_zero = (
            0 if z is None else int(z.ravel()[0]) for z in (input_zero_point_tensor, output_zero_point_tensor)
        )
        counted = sliding.inside(self.end_padding if self.include_padding else None)
        total = sliding.gather(input_tensor.astype(np.int64) - zero, 0).sum(-1)
        scale = float(input_scale_tensor.ravel()[0]) / float(output_scale_tensor.ravel()[0])
        levels = np.rint(total * scale / counted.sum(-1)) + out_zero
        limits = np.iinfo(self.output_tensor.data_type.dtype)
        return (np.clip(levels, limits.min, limits.max).astype(limits.dtype),)
