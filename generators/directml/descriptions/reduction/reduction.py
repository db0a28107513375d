"""DML_REDUCE, DML_ARGMAX, DML_ARGMIN and DML_CUMULATIVE_SUMMATION_OPERATOR_DESC (their pages)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.enumerations import AxisDirection
from epcheck.generators.directml.feature_level import FeatureLevel, TensorSupport, operator_record, support_row
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc


class ReduceFunction(Enum):
    """DML_REDUCE_FUNCTION (ne-directml-dml_reduce_function)."""

    ARGMAX = 0
    ARGMIN = 1
    AVERAGE = 2
    L1 = 3
    L2 = 4
    LOG_SUM = 5
    LOG_SUM_EXP = 6
    MAX = 7
    MIN = 8
    MULTIPLY = 9
    SUM = 10
    SUM_SQUARE = 11


def axes_violations(desc: OperatorDesc, source: TensorDesc, axes: tuple[int, ...]) -> Iterator[Violation]:
    """Axes are within the dimensions and none is there twice."""
    for axis in axes:
        if not 0 <= axis < source.dimension_count:
            yield desc.violation(
                "axis_less_than_dimension_count",
                f"an axis is {axis}; InputTensor has {source.dimension_count} dimensions",
            )
    if len(set(axes)) != len(axes):
        yield desc.violation("axes_distinct", f"Axes {axes} repeat one")


def reduced_sizes_violations(
    desc: OperatorDesc, source: TensorDesc, target: TensorDesc, axes: tuple[int, ...]
) -> Iterator[Violation]:
    """The output has the input's sizes, but 1 along the reduced axes."""
    expected = tuple(1 if axis in axes else size for axis, size in enumerate(source.sizes))
    if target.sizes != expected:
        yield desc.violation("output_sizes", f"OutputTensor has sizes {target.sizes} instead of {expected}")


@dataclass(frozen=True)
class Reduce(OperatorDesc):
    """Reduces the axes of a tensor to one element each; what tensors it takes depends on the function."""

    NAME: ClassVar[str] = "DML_REDUCE_OPERATOR_DESC"

    function: ReduceFunction
    input_tensor: TensorDesc
    output_tensor: TensorDesc
    axis_count: int = field(init=False)
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis_count", len(self.axes))

    def support(self, level: FeatureLevel) -> Mapping[str, TensorSupport]:
        """The table of the function at `level`: the page has one for each group of functions."""
        return _reduce_support(self.function.name, level)

    def constraints(self) -> Iterator[Violation]:
        source, target = self.input_tensor, self.output_tensor
        index = self.function in (ReduceFunction.ARGMAX, ReduceFunction.ARGMIN)
        if source.data_type is not target.data_type and not index:
            yield self.violation(
                "same_data_type", f"InputTensor is {source.data_type.name} and OutputTensor {target.data_type.name}"
            )
        yield from axes_violations(self, source, self.axes)
        yield from reduced_sizes_violations(self, source, target, self.axes)

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The function along the axes; floating point in float64, cast once.

        AVERAGE, L2 and the logarithms take floating-point tensors only. Raises ValueError for ARGMAX and ARGMIN, which
        have descriptions of their own.
        """
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        if self.function not in _EVALUATED:
            raise ValueError(f"{self.function.name} of {self.NAME} is evaluated by its own description")
        wide = input_tensor.astype(np.float64) if input_tensor.dtype.kind == "f" else input_tensor
        with np.errstate(all="ignore"):
            result = _EVALUATED[self.function](wide, {"axis": self.axes, "keepdims": True})
            return (np.asarray(result).astype(self.output_tensor.data_type.dtype),)


def _log_sum_exp(x: Array, along: dict[str, Any]) -> Array:
    largest = np.max(x, **along)
    shift = np.where(np.isfinite(largest), largest, 0)
    return np.asarray(np.log(np.sum(np.exp(x - shift), **along)) + shift)


_EVALUATED: dict[ReduceFunction, Callable[[Array, dict[str, Any]], Array]] = {
    ReduceFunction.AVERAGE: lambda x, along: np.asarray(np.mean(x, **along)),
    ReduceFunction.L1: lambda x, along: np.asarray(np.sum(np.abs(x), **along)),
    ReduceFunction.L2: lambda x, along: np.asarray(np.sqrt(np.sum(x * x, **along))),
    ReduceFunction.LOG_SUM: lambda x, along: np.asarray(np.log(np.sum(x, **along))),
    ReduceFunction.LOG_SUM_EXP: _log_sum_exp,
    ReduceFunction.MAX: lambda x, along: np.asarray(np.max(x, **along)),
    ReduceFunction.MIN: lambda x, along: np.asarray(np.min(x, **along)),
    ReduceFunction.MULTIPLY: lambda x, along: np.asarray(np.prod(x, **along)),
    ReduceFunction.SUM: lambda x, along: np.asarray(np.sum(x, **along)),
    ReduceFunction.SUM_SQUARE: lambda x, along: np.asarray(np.sum(x * x, **along)),
}


@cache
def _reduce_support(function: str, level: FeatureLevel) -> Mapping[str, TensorSupport]:
    for functions, tables in operator_record(Reduce.NAME)["support_by_function"].items():
        if function in functions.split(", "):
            levels = [table_level for table_level in map(FeatureLevel.__getitem__, tables) if table_level <= level]
            rows = tables[max(levels).name] if levels else []
            return MappingProxyType({row["tensor"]: support_row(row) for row in rows})
    return MappingProxyType({})


@dataclass(frozen=True)
class _ArgDesc(OperatorDesc):
    input_tensor: TensorDesc
    output_tensor: TensorDesc
    axis_count: int = field(init=False)
    axes: tuple[int, ...]
    axis_direction: AxisDirection

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis_count", len(self.axes))

    def constraints(self) -> Iterator[Violation]:
        yield from axes_violations(self, self.input_tensor, self.axes)
        yield from reduced_sizes_violations(self, self.input_tensor, self.output_tensor, self.axes)

    def _index(self, input_tensor: Array, best: Any) -> tuple[Array]:
        """The index of the best element; the last one of equals where the direction is DECREASING."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        if len(self.axes) != 1:
            raise ValueError(f"{self.NAME} along {len(self.axes)} axes: the page does not number their elements")
        (axis,) = self.axes
        if self.axis_direction is AxisDirection.DECREASING:
            index = input_tensor.shape[axis] - 1 - best(np.flip(input_tensor, axis), axis=axis, keepdims=True)
        else:
            index = best(input_tensor, axis=axis, keepdims=True)
        return (index.astype(self.output_tensor.data_type.dtype),)


@dataclass(frozen=True)
class ArgMax(_ArgDesc):
    """The index of the greatest element along the axes."""

    NAME: ClassVar[str] = "DML_ARGMAX_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """Defined for one axis; the first of equal elements, or the last where the direction is DECREASING."""
        return self._index(input_tensor, np.argmax)


@dataclass(frozen=True)
class ArgMin(_ArgDesc):
    """The index of the least element along the axes."""

    NAME: ClassVar[str] = "DML_ARGMIN_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """Defined for one axis; the first of equal elements, or the last where the direction is DECREASING."""
        return self._index(input_tensor, np.argmin)


@dataclass(frozen=True)
class CumulativeSummation(OperatorDesc):
    """The sums of all elements up to each one along an axis."""

    NAME: ClassVar[str] = "DML_CUMULATIVE_SUMMATION_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int
    axis_direction: AxisDirection
    has_exclusive_sum: bool

    def constraints(self) -> Iterator[Violation]:
        if self.input_tensor != self.output_tensor:
            yield self.violation("same_tensor", "InputTensor and OutputTensor must have one data type and one size")
        yield from axes_violations(self, self.input_tensor, (self.axis,))

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """Floating point in float64, cast once; DECREASING adds from the end."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        wide = input_tensor.astype(np.float64) if input_tensor.dtype.kind == "f" else input_tensor
        turned = np.flip(wide, self.axis) if self.axis_direction is AxisDirection.DECREASING else wide
        with np.errstate(invalid="ignore"):
            sums = np.cumsum(turned, axis=self.axis, dtype=turned.dtype)
        if self.has_exclusive_sum:
            sums = np.roll(sums, 1, axis=self.axis)
            sums[(slice(None),) * self.axis + (0,)] = 0
        if self.axis_direction is AxisDirection.DECREASING:
            sums = np.flip(sums, self.axis)
        return (sums.astype(input_tensor.dtype),)
