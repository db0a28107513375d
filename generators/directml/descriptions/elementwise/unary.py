"""DML_ELEMENT_WISE_*_OPERATOR_DESC of one input tensor.

All but the last three have the same members: InputTensor, OutputTensor and an optional DML_SCALE_BIAS, of which the
pages say f(x * scale + bias). Where a page states no special values, IEEE 754 arithmetic is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import DataType, TensorDesc

ScaleBias = tuple[float, float]
"""DML_SCALE_BIAS: Scale, Bias."""


class IsInfinityMode(Enum):
    """DML_IS_INFINITY_MODE (ne-directml-dml_is_infinity_mode)."""

    EITHER = 0
    POSITIVE = 1
    NEGATIVE = 2


class RoundingMode(Enum):
    """DML_ROUNDING_MODE (ne-directml-dml_rounding_mode)."""

    HALVES_TO_NEAREST_EVEN = 0
    TOWARD_ZERO = 1
    TOWARD_INFINITY = 2


def erf(values: Array) -> Array:
    """The error function, in float64."""
    wide = np.asarray(values, np.float64)
    return np.array([math.erf(value) for value in wide.ravel()], np.float64).reshape(wide.shape)


@dataclass(frozen=True)
class OneTensor(OperatorDesc):
    """An operator that gives an element for each element of one tensor."""

    input_tensor: TensorDesc
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """The tensors have the same sizes; their types are the same."""
        source, target = self.input_tensor, self.output_tensor
        if source.sizes != target.sizes:
            yield self.violation("same_sizes", f"InputTensor has sizes {source.sizes}, OutputTensor {target.sizes}")
        if self._expected_type() is not target.data_type:
            yield self.violation(
                "output_data_type", f"OutputTensor is {target.data_type.name} instead of {self._expected_type().name}"
            )

    def _expected_type(self) -> DataType:
        return self.input_tensor.data_type

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """The page's formula in float64 (integers in their own type), rounded to the type of OutputTensor."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        wide = input_tensor.astype(np.float64) if input_tensor.dtype.kind == "f" else input_tensor
        with np.errstate(all="ignore"):
            return (np.asarray(self.formula(wide)).astype(self.output_tensor.data_type.dtype),)

    def formula(self, x: Array) -> Array:
        """f(x), element by element."""
        raise NotImplementedError


@dataclass(frozen=True)
class ElementWiseUnary(OneTensor):
    """f(x * scale + bias)."""

    FUNCTION: ClassVar[Callable[[Array], Array]]

    scale_bias: ScaleBias | None = None

    def formula(self, x: Array) -> Array:
        scaled = x if self.scale_bias is None else x * self.scale_bias[0] + self.scale_bias[1]
        return type(self).FUNCTION(scaled)


def _unary(name: str, function: Callable[[Array], Array]) -> type[ElementWiseUnary]:
    """The description of DML_ELEMENT_WISE_<name>_OPERATOR_DESC."""
    members = {
        "NAME": f"DML_ELEMENT_WISE_{name}_OPERATOR_DESC",
        "FUNCTION": staticmethod(function),
        "__module__": __name__,
        "__doc__": f"The page of DML_ELEMENT_WISE_{name}_OPERATOR_DESC.",
    }
    return type(f"ElementWise{name.title()}", (ElementWiseUnary,), members)


ElementWiseAcos = _unary("ACOS", np.arccos)
ElementWiseAcosh = _unary("ACOSH", np.arccosh)
ElementWiseAsin = _unary("ASIN", np.arcsin)
ElementWiseAsinh = _unary("ASINH", np.arcsinh)
ElementWiseAtan = _unary("ATAN", np.arctan)
ElementWiseAtanh = _unary("ATANH", np.arctanh)
ElementWiseCeil = _unary("CEIL", np.ceil)
ElementWiseCos = _unary("COS", np.cos)
ElementWiseCosh = _unary("COSH", np.cosh)
ElementWiseErf = _unary("ERF", erf)
ElementWiseExp = _unary("EXP", np.exp)
ElementWiseFloor = _unary("FLOOR", np.floor)
ElementWiseIdentity = _unary("IDENTITY", np.copy)
ElementWiseLog = _unary("LOG", np.log)
ElementWiseRecip = _unary("RECIP", np.reciprocal)
ElementWiseSin = _unary("SIN", np.sin)
ElementWiseSinh = _unary("SINH", np.sinh)
ElementWiseSqrt = _unary("SQRT", np.sqrt)
ElementWiseTan = _unary("TAN", np.tan)


@dataclass(frozen=True)
class ElementWiseRound(OneTensor):
    """Rounds to an integer."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_ROUND_OPERATOR_DESC"

    rounding_mode: RoundingMode = RoundingMode.HALVES_TO_NEAREST_EVEN

    def formula(self, x: Array) -> Array:
        match self.rounding_mode:
            case RoundingMode.HALVES_TO_NEAREST_EVEN:
                return np.asarray(np.rint(x))
            case RoundingMode.TOWARD_ZERO:
                return np.asarray(np.trunc(x))
            case RoundingMode.TOWARD_INFINITY:
                return np.asarray(np.copysign(np.ceil(np.abs(x)), x))


@dataclass(frozen=True)
class ElementWiseIsNan(OneTensor):
    """1 where an element is NaN, 0 elsewhere."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC"

    def _expected_type(self) -> DataType:
        return DataType.UINT8

    def formula(self, x: Array) -> Array:
        return np.isnan(x)


@dataclass(frozen=True)
class ElementWiseIsInfinity(OneTensor):
    """1 where an element is an infinity of the wanted sign, 0 elsewhere."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC"

    infinity_mode: IsInfinityMode = IsInfinityMode.EITHER

    def _expected_type(self) -> DataType:
        return DataType.UINT8

    def formula(self, x: Array) -> Array:
        match self.infinity_mode:
            case IsInfinityMode.EITHER:
                return np.isinf(x)
            case IsInfinityMode.POSITIVE:
                return np.isposinf(x)
            case IsInfinityMode.NEGATIVE:
                return np.isneginf(x)
