"""DML_ACTIVATION_*_OPERATOR_DESC that work element by element.

InputTensor and OutputTensor come first, the numbers of the formula after them. Where a page says 'else', NaN takes
that branch. Fused into another operator, an activation is described without its tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.elementwise.unary import OneTensor, erf
from epcheck.generators.directml.feature_level import FeatureLevel
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc


def softplus(x: Array) -> Array:
    """ln(1 + exp(x)) without overflow."""
    return np.asarray(np.logaddexp(0, x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


@dataclass(frozen=True)
class Celu(OneTensor):
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""

    NAME: ClassVar[str] = "DML_ACTIVATION_CELU_OPERATOR_DESC"

    alpha: float = 1.0

    def formula(self, x: Array) -> Array:
        return np.maximum(0, x) + np.minimum(0, self.alpha * np.expm1(x / self.alpha))


@dataclass(frozen=True)
class Elu(OneTensor):
    """x where x >= 0, alpha (exp(x) - 1) elsewhere."""

    NAME: ClassVar[str] = "DML_ACTIVATION_ELU_OPERATOR_DESC"

    alpha: float = 1.0

    def formula(self, x: Array) -> Array:
        return np.where(x >= 0, x, self.alpha * np.expm1(x))


@dataclass(frozen=True)
class Gelu(OneTensor):
    """0.5 x (1 + erf(x / sqrt(2)))."""

    NAME: ClassVar[str] = "DML_ACTIVATION_GELU_OPERATOR_DESC"

    def formula(self, x: Array) -> Array:
        return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2))))


@dataclass(frozen=True)
class HardSigmoid(OneTensor):
    """max(0, min(alpha x + beta, 1))."""

    NAME: ClassVar[str] = "DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC"

    alpha: float = 0.2
    beta: float = 0.5

    def formula(self, x: Array) -> Array:
        return np.maximum(0, np.minimum(self.alpha * x + self.beta, 1))


@dataclass(frozen=True)
class ActivationIdentity(OneTensor):
    """x."""

    NAME: ClassVar[str] = "DML_ACTIVATION_IDENTITY_OPERATOR_DESC"

    def formula(self, x: Array) -> Array:
        return x


@dataclass(frozen=True)
class LeakyRelu(OneTensor):
    """x where x >= 0, alpha x elsewhere."""

    NAME: ClassVar[str] = "DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC"

    alpha: float = 0.01

    def formula(self, x: Array) -> Array:
        return np.where(x >= 0, x, self.alpha * x)


@dataclass(frozen=True)
class ParametricSoftplus(OneTensor):
    """alpha ln(1 + exp(beta x))."""

    NAME: ClassVar[str] = "DML_ACTIVATION_PARAMETRIC_SOFTPLUS_OPERATOR_DESC"

    alpha: float = 1.0
    beta: float = 1.0

    def formula(self, x: Array) -> Array:
        return self.alpha * softplus(self.beta * x)


@dataclass(frozen=True)
class Relu(OneTensor):
    """max(0, x)."""

    NAME: ClassVar[str] = "DML_ACTIVATION_RELU_OPERATOR_DESC"

    def formula(self, x: Array) -> Array:
        return np.maximum(0, x)


@dataclass(frozen=True)
class ScaledElu(OneTensor):
    """gamma x where x > 0, gamma (alpha exp(x) - alpha) elsewhere."""

    NAME: ClassVar[str] = "DML_ACTIVATION_SCALED_ELU_OPERATOR_DESC"

    alpha: float = 1.67326319217681884765625
    gamma: float = 1.05070102214813232421875

    def formula(self, x: Array) -> Array:
        return np.where(x > 0, self.gamma * x, self.gamma * self.alpha * np.expm1(x))


@dataclass(frozen=True)
class ScaledTanh(OneTensor):
    """alpha tanh(beta x)."""

    NAME: ClassVar[str] = "DML_ACTIVATION_SCALED_TANH_OPERATOR_DESC"

    alpha: float = 1.0
    beta: float = 0.5

    def formula(self, x: Array) -> Array:
        return self.alpha * np.tanh(self.beta * x)


@dataclass(frozen=True)
class Shrink(OneTensor):
    """x - bias where x > threshold, x + bias where x < -threshold, 0 elsewhere."""

    NAME: ClassVar[str] = "DML_ACTIVATION_SHRINK_OPERATOR_DESC"

    bias: float = 0.0
    threshold: float = 0.5

    def formula(self, x: Array) -> Array:
        wide = x.astype(np.float64)
        above = np.where(wide > self.threshold, wide - self.bias, 0)
        return np.where(wide < -self.threshold, wide + self.bias, above)


@dataclass(frozen=True)
class Sigmoid(OneTensor):
    """1 / (1 + exp(-x))."""

    NAME: ClassVar[str] = "DML_ACTIVATION_SIGMOID_OPERATOR_DESC"

    def formula(self, x: Array) -> Array:
        return sigmoid(x)


@dataclass(frozen=True)
class Softplus(OneTensor):
    """ln(1 + exp(steepness x)) / steepness."""

    NAME: ClassVar[str] = "DML_ACTIVATION_SOFTPLUS_OPERATOR_DESC"

    steepness: float = 1.0

    def formula(self, x: Array) -> Array:
        return softplus(self.steepness * x) / self.steepness

    def constraints(self) -> Iterator[Violation]:
        """The formula divides by the steepness."""
        yield from super().constraints()
        if self.steepness == 0:
            yield self.violation("steepness_nonzero", "Steepness is 0")

    def validate(self, level: FeatureLevel) -> tuple[Violation, ...]:
        """The page wants a steepness of at least 1; 6_4 takes others (DirectML feature level history)."""
        found = super().validate(level)
        if self.steepness >= 1 or level >= FeatureLevel.DML_FEATURE_LEVEL_6_4:
            return found
        return (*found, self.violation("steepness_at_least_1", f"Steepness is {self.steepness}"))


@dataclass(frozen=True)
class Softsign(OneTensor):
    """x / (1 + |x|)."""

    NAME: ClassVar[str] = "DML_ACTIVATION_SOFTSIGN_OPERATOR_DESC"

    def formula(self, x: Array) -> Array:
        return np.asarray(x / (1 + np.abs(x)))


@dataclass(frozen=True)
class Tanh(OneTensor):
    """tanh(x)."""

    NAME: ClassVar[str] = "DML_ACTIVATION_TANH_OPERATOR_DESC"

    def formula(self, x: Array) -> Array:
        return np.tanh(x)


@dataclass(frozen=True)
class ThresholdedRelu(OneTensor):
    """x where x > alpha, 0 elsewhere."""

    NAME: ClassVar[str] = "DML_ACTIVATION_THRESHOLDED_RELU_OPERATOR_DESC"

    alpha: float = 1.0

    def formula(self, x: Array) -> Array:
        return np.where(x > self.alpha, x, 0)


@dataclass(frozen=True)
class ParameterizedRelu(OperatorDesc):
    """x where x >= 0, slope x elsewhere; the slope has the input's sizes, by strides of 0 where it is broadcast."""

    NAME: ClassVar[str] = "DML_ACTIVATION_PARAMETERIZED_RELU_OPERATOR_DESC"

    input_tensor: TensorDesc
    slope_tensor: TensorDesc
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """The three tensors have the same sizes and the same type."""
        tensors = (self.input_tensor, self.slope_tensor, self.output_tensor)
        if len({tensor.sizes for tensor in tensors}) > 1:
            yield self.violation("same_sizes", "InputTensor, SlopeTensor and OutputTensor differ in sizes")
        if len({tensor.data_type for tensor in tensors}) > 1:
            yield self.violation("same_data_type", "InputTensor, SlopeTensor and OutputTensor differ in type")

    def evaluate(self, input_tensor: Array, slope_tensor: Array) -> tuple[Array]:
        """The formula in float64 (integers in their own type), rounded to the type of the tensors."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, slope_tensor=slope_tensor)
        dtype = input_tensor.dtype
        x, slope = (a.astype(np.float64) if dtype.kind == "f" else a for a in (input_tensor, slope_tensor))
        with np.errstate(all="ignore"):
            return (np.where(x >= 0, x, slope * x).astype(dtype),)


FUSED: Mapping[str, type[OneTensor]] = {
    **{kind.__name__: kind for kind in (Relu, LeakyRelu, ThresholdedRelu, Elu, HardSigmoid, Sigmoid, Tanh)},
    **{kind.__name__: kind for kind in (ScaledTanh, Softplus, Softsign)},
    "Selu": ScaledElu,
}
"""The ONNX name of an activation that another operator may apply -> its description."""


def make_fused(name: str, *parameters: float) -> OneTensor:
    """An activation within another operator: InputTensor and OutputTensor are null."""
    null = cast(TensorDesc, None)
    return FUSED[name](null, null, *parameters)
