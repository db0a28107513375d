"""DML_ACTIVATION_SOFTMAX, LOG_SOFTMAX and HARDMAX_OPERATOR_DESC and their successors with axes (their pages)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.reduction.reduction import axes_violations
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc


def softmax(x: Array, axes: tuple[int, ...]) -> Array:
    """exp(x) over the sum of exp(x) along the axes."""
    share = np.exp(x - np.max(x, axis=axes, keepdims=True))
    return np.asarray(share / np.sum(share, axis=axes, keepdims=True))


def log_softmax(x: Array, axes: tuple[int, ...]) -> Array:
    """The logarithm of softmax."""
    shifted = x - np.max(x, axis=axes, keepdims=True)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=axes, keepdims=True)))


def hardmax(x: Array, axes: tuple[int, ...]) -> Array:
    """1 for the first greatest element along the axes in C order, 0 for the others."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    order = (*kept, *axes)
    turned = np.transpose(x, order)
    rows = turned.reshape(*turned.shape[: len(kept)], -1)
    ones = np.arange(rows.shape[-1]) == np.argmax(rows, axis=-1)[..., None]
    return np.transpose(ones.astype(x.dtype).reshape(turned.shape), np.argsort(order))


@dataclass(frozen=True)
class _Activation(OperatorDesc):
    input_tensor: TensorDesc
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        if self.input_tensor != self.output_tensor:
            yield self.violation("same_tensor", "InputTensor and OutputTensor must have one data type and one size")

    def _widen(self, input_tensor: Array) -> Array:
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        return input_tensor.astype(np.float64)

    def _cast(self, output: Array) -> tuple[Array]:
        return (output.astype(self.output_tensor.data_type.dtype),)


@dataclass(frozen=True)
class _ActivationAlongAxes(_Activation):
    axis_count: int = field(init=False)
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis_count", len(self.axes))

    def constraints(self) -> Iterator[Violation]:
        yield from super().constraints()
        yield from axes_violations(self, self.input_tensor, self.axes)


@dataclass(frozen=True)
class ActivationSoftmax(_Activation):
    """Softmax along the last dimension; the tensor is [1, 1, batch, count]."""

    NAME: ClassVar[str] = "DML_ACTIVATION_SOFTMAX_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """In float64, cast once."""
        return self._cast(softmax(self._widen(input_tensor), (input_tensor.ndim - 1,)))


@dataclass(frozen=True)
class ActivationLogSoftmax(_Activation):
    """The logarithm of softmax along the last dimension."""

    NAME: ClassVar[str] = "DML_ACTIVATION_LOG_SOFTMAX_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """In float64, cast once."""
        return self._cast(log_softmax(self._widen(input_tensor), (input_tensor.ndim - 1,)))


@dataclass(frozen=True)
class ActivationHardmax(_Activation):
    """1 at the first greatest element of the last dimension."""

    NAME: ClassVar[str] = "DML_ACTIVATION_HARDMAX_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        return self._cast(hardmax(self._widen(input_tensor), (input_tensor.ndim - 1,)))


@dataclass(frozen=True)
class ActivationSoftmax1(_ActivationAlongAxes):
    """Softmax along given axes."""

    NAME: ClassVar[str] = "DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """In float64, cast once."""
        return self._cast(softmax(self._widen(input_tensor), self.axes))


@dataclass(frozen=True)
class ActivationLogSoftmax1(_ActivationAlongAxes):
    """The logarithm of softmax along given axes."""

    NAME: ClassVar[str] = "DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """In float64, cast once."""
        return self._cast(log_softmax(self._widen(input_tensor), self.axes))


@dataclass(frozen=True)
class ActivationHardmax1(_ActivationAlongAxes):
    """1 at the first greatest element along given axes."""

    NAME: ClassVar[str] = "DML_ACTIVATION_HARDMAX1_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        return self._cast(hardmax(self._widen(input_tensor), self.axes))
