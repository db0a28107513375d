"""DML_BATCH_NORMALIZATION, MEAN_VARIANCE_NORMALIZATION, its successors 1 and 2, LP_NORMALIZATION and
LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC (their pages).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.elementwise.unary import OneTensor
from epcheck.generators.directml.descriptions.reduction.reduction import axes_violations
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc


@dataclass(frozen=True)
class _Normalization(OperatorDesc):
    """What the evaluation of every description here shares."""

    def _finish(self, y: Array, activation: OneTensor | None, target: TensorDesc) -> tuple[Array]:
        with np.errstate(all="ignore"):
            applied = y if activation is None else activation.formula(y)
            return (np.asarray(applied).astype(target.data_type.dtype),)


@dataclass(frozen=True)
class BatchNormalization(_Normalization):
    """Normalizes with given means and variances, which are broadcast to the input."""

    NAME: ClassVar[str] = "DML_BATCH_NORMALIZATION_OPERATOR_DESC"

    input_tensor: TensorDesc
    mean_tensor: TensorDesc
    variance_tensor: TensorDesc
    scale_tensor: TensorDesc
    bias_tensor: TensorDesc
    output_tensor: TensorDesc
    spatial: bool
    epsilon: float
    fused_activation: OneTensor | None = None

    def constraints(self) -> Iterator[Violation]:
        yield from _same_types(self)
        if self.input_tensor.sizes != self.output_tensor.sizes:
            yield self.violation("output_sizes", "InputTensor and OutputTensor must have one size")
        for name in ("mean_tensor", "variance_tensor", "scale_tensor", "bias_tensor"):
            yield from _broadcastable(self, name, getattr(self, name), self.input_tensor)

    def evaluate(self, x: Array, mean: Array, variance: Array, scale: Array, bias: Array) -> tuple[Array]:
        """Scale * (x - mean) / sqrt(variance + epsilon) + bias, in float64, cast once."""
        self.require_defined()
        self.require_arrays(
            input_tensor=x, mean_tensor=mean, variance_tensor=variance, scale_tensor=scale, bias_tensor=bias
        )
        x, mean, variance, scale, bias = (array.astype(np.float64) for array in (x, mean, variance, scale, bias))
        with np.errstate(all="ignore"):
            y = scale * (x - mean) / np.sqrt(variance + self.epsilon) + bias
        return self._finish(y, self.fused_activation, self.output_tensor)


def _same_types(desc: OperatorDesc) -> Iterator[Violation]:
    types = {name: tensor.data_type.name for name, tensor in desc.tensors().items() if tensor is not None}
    if len(set(types.values())) > 1:
        yield desc.violation("same_data_type", f"the tensors have the data types {types}")


def _broadcastable(desc: OperatorDesc, name: str, tensor: TensorDesc | None, source: TensorDesc) -> Iterator[Violation]:
    if tensor is None:
        return
    if tensor.dimension_count != source.dimension_count:
        yield desc.violation(
            f"{name}_dimension_count",
            f"{name} has {tensor.dimension_count} dimensions; InputTensor has {source.dimension_count}",
        )
    elif any(size not in (1, whole) for size, whole in zip(tensor.sizes, source.sizes, strict=True)):
        yield desc.violation(f"{name}_sizes", f"{name} of sizes {tensor.sizes} does not broadcast to {source.sizes}")


@dataclass(frozen=True)
class MeanVarianceNormalization(OperatorDesc):
    """The first of them: along the spatial dimensions, or CrossChannel along the channels, too.

    Its page adds Epsilon to the deviation, those after it to the variance; so nothing is evaluated.
    """

    NAME: ClassVar[str] = "DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC"

    input_tensor: TensorDesc
    scale_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc
    cross_channel: bool
    normalize_variance: bool
    epsilon: float
    fused_activation: OneTensor | None = None


@dataclass(frozen=True)
class _MeanVariance(_Normalization):
    input_tensor: TensorDesc
    scale_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc
    axis_count: int = field(init=False)
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis_count", len(self.axes))

    def constraints(self) -> Iterator[Violation]:
        yield from _same_types(self)
        if self.input_tensor.sizes != self.output_tensor.sizes:
            yield self.violation("output_sizes", "InputTensor and OutputTensor must have one size")
        yield from axes_violations(self, self.input_tensor, self.axes)
        for name in ("scale_tensor", "bias_tensor"):
            yield from _broadcastable(self, name, getattr(self, name), self.input_tensor)
        if self.bias_tensor is not None and self.scale_tensor is None:
            yield self.violation("scale_with_bias", "BiasTensor is given without ScaleTensor")

    def _normalize(
        self,
        x: Array,
        scale: Array | None,
        bias: Array | None,
        how: tuple[bool, bool, float],
        last: OneTensor | None,
    ) -> tuple[Array]:
        self.require_defined()
        self.require_arrays(input_tensor=x, scale_tensor=scale, bias_tensor=bias)
        subtract, divide, epsilon = how
        y = x.astype(np.float64)
        with np.errstate(all="ignore"):
            if subtract:
                y = y - np.mean(y, axis=self.axes, keepdims=True)
            if divide:
                y = y / np.sqrt(np.mean(y * y, axis=self.axes, keepdims=True) + epsilon)
            y = y * (1 if scale is None else scale.astype(np.float64)) + (
                0 if bias is None else bias.astype(np.float64)
            )
        return self._finish(y, last, self.output_tensor)


@dataclass(frozen=True)
class MeanVarianceNormalization1(_MeanVariance):
    """Subtracts the mean along axes and, if asked, divides by the deviation."""

    NAME: ClassVar[str] = "DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC"

    normalize_variance: bool
    epsilon: float
    fused_activation: OneTensor | None = None

    def evaluate(self, x: Array, scale: Array | None = None, bias: Array | None = None) -> tuple[Array]:
        """Scale * (x - mean) / sqrt(variance + epsilon) + bias, in float64, cast once."""
        return self._normalize(x, scale, bias, (True, self.normalize_variance, self.epsilon), self.fused_activation)


@dataclass(frozen=True)
class MeanVarianceNormalization2(_MeanVariance):
    """As its predecessor, but the mean can be left out: then the mean square takes the place of the variance."""

    NAME: ClassVar[str] = "DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC"

    use_mean: bool
    use_variance: bool
    epsilon: float
    fused_activation: OneTensor | None = None

    def evaluate(self, x: Array, scale: Array | None = None, bias: Array | None = None) -> tuple[Array]:
        """Scale * (x - mean) / sqrt(variance + epsilon) + bias, in float64, cast once."""
        return self._normalize(x, scale, bias, (self.use_mean, self.use_variance, self.epsilon), self.fused_activation)


@dataclass(frozen=True)
class LpNormalization(_Normalization):
    """Divides by the Lp norm along an axis; where Epsilon goes, the page does not say, so nothing is evaluated."""

    NAME: ClassVar[str] = "DML_LP_NORMALIZATION_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int
    epsilon: float
    p: int

    def constraints(self) -> Iterator[Violation]:
        if self.input_tensor != self.output_tensor:
            yield self.violation("same_tensor", "InputTensor and OutputTensor must have one data type and one size")
        yield from axes_violations(self, self.input_tensor, (self.axis,))
        if self.p not in (1, 2):
            yield self.violation("p_1_or_2", f"P is {self.p}")


@dataclass(frozen=True)
class LocalResponseNormalization(_Normalization):
    """Divides by a power of the squares around an element, across channels or within one."""

    NAME: ClassVar[str] = "DML_LOCAL_RESPONSE_NORMALIZATION_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    cross_channel: bool
    local_size: int
    alpha: float
    beta: float
    bias: float

    def constraints(self) -> Iterator[Violation]:
        if self.input_tensor != self.output_tensor:
            yield self.violation("same_tensor", "InputTensor and OutputTensor must have one data type and one size")
        if self.local_size < 1:
            yield self.violation("local_size_positive", f"LocalSize is {self.local_size}")

    def evaluate(self, x: Array) -> tuple[Array]:
        """x / (bias + alpha / size * sum of squares) ^ beta, in float64, cast once.

        Raises ValueError within channels and for an even size, whose window the page does not place.
        """
        self.require_defined()
        self.require_arrays(input_tensor=x)
        if not self.cross_channel or self.local_size % 2 == 0:
            raise ValueError(f"the page of {self.NAME} does not place this window")
        wide, half = x.astype(np.float64), self.local_size // 2
        square = np.pad(wide * wide, [(half, half) if axis == 1 else (0, 0) for axis in range(x.ndim)])
        total = sum(square[:, start : start + x.shape[1]] for start in range(self.local_size))
        base = self.bias + self.alpha / self.local_size * np.asarray(total)
        return self._finish(wide / base**self.beta, None, self.output_tensor)
