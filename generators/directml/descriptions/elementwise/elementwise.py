"""The DML_*_OPERATOR_DESC that compute each element of their output from one element of each input.

Pages: ns-directml-dml_element_wise_*_operator_desc, ns-directml-dml_cast_operator_desc. All of them want tensors of the
same sizes; broadcasting is a stride of 0. Floating point is evaluated in float64 and rounded once, integers wrap around
in their own type, and a logical result is 0 or 1, UINT8 or UINT32, as the pages describe.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.elementwise.unary import OneTensor
from epcheck.generators.directml.operator_desc import OperatorDesc, c_name
from epcheck.generators.directml.tensor import DataType, TensorDesc

ScaleBias = tuple[float, float]
"""DML_SCALE_BIAS: Scale and Bias, g(x) = x * Scale + Bias before the operator's own function."""

Formula = Callable[..., Any]


@dataclass(frozen=True)
class ElementWise(OperatorDesc):
    """What every element-wise operator demands: tensors of the same sizes.

    SAME_TYPE: members that have one data type. RESULTS: what the output may be where that is not the input's data type.
    """

    SAME_TYPE: ClassVar[tuple[str, ...]] = ("input_tensor", "output_tensor")
    RESULTS: ClassVar[tuple[DataType, ...]] = ()

    def constraints(self) -> Iterator[Violation]:
        """Same sizes everywhere, same data type where the page says so, results of logical operators."""
        tensors = {name: tensor for name, tensor in vars(self).items() if isinstance(tensor, TensorDesc)}
        if len({tensor.sizes for tensor in tensors.values()}) > 1:
            sizes = ", ".join(f"{c_name(name)} {tensor.sizes}" for name, tensor in tensors.items())
            yield self.violation("same_sizes", f"the sizes differ: {sizes}")
        if len({tensors[name].data_type for name in self.SAME_TYPE}) > 1:
            types = ", ".join(f"{c_name(name)} {tensors[name].data_type.name}" for name in self.SAME_TYPE)
            yield self.violation("same_data_type", f"the data types differ: {types}")
        if self.RESULTS and tensors["output_tensor"].data_type not in self.RESULTS:
            names = " or ".join(data_type.name for data_type in self.RESULTS)
            yield self.violation(
                "result_data_type",
                f"OutputTensor is {tensors['output_tensor'].data_type.name} instead of {names}",
            )

    def _compute(self, formula: Formula, *arrays: Array) -> tuple[Array]:
        """The formula on float64, or on integers in their own type; the result in the type of OutputTensor."""
        self.require_defined()
        target: TensorDesc = vars(self)["output_tensor"]
        with np.errstate(all="ignore"):
            result = np.asarray(formula(*(_widen(array) for array in arrays)))
            return (result.astype(target.data_type.dtype),)


def _widen(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind == "f" else array


@dataclass(frozen=True)
class ElementWiseUnary(ElementWise):
    """f(x) of each element, with FORMULA for f."""

    FORMULA: ClassVar[Formula]

    input_tensor: TensorDesc
    output_tensor: TensorDesc

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """FORMULA(InputTensor)."""
        self.require_arrays(input_tensor=input_tensor)
        return self._compute(type(self).FORMULA, input_tensor)


class ElementWiseNegate(ElementWiseUnary):
    """f(x) = -x."""

    NAME = "DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC"
    FORMULA = np.negative


class ElementWiseSign(ElementWiseUnary):
    """f(x) = -1, 0 or 1; the page does not say what the sign of NaN is."""

    NAME = "DML_ELEMENT_WISE_SIGN_OPERATOR_DESC"
    FORMULA = np.sign


class ElementWiseBitNot(ElementWiseUnary):
    """f(x) = ~x."""

    NAME = "DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC"
    FORMULA = np.bitwise_not


class ElementWiseLogicalNot(ElementWiseUnary):
    """f(x) = !x, UINT8 0 or 1."""

    NAME = "DML_ELEMENT_WISE_LOGICAL_NOT_OPERATOR_DESC"
    FORMULA = np.logical_not


@dataclass(frozen=True)
class ElementWiseScaled(ElementWise):
    """f(g(x)) of each element, where g(x) = x * Scale + Bias where ScaleBias is there, and x otherwise."""

    FORMULA: ClassVar[Formula]

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    scale_bias: ScaleBias | None = None

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """FORMULA(g(InputTensor))."""
        self.require_arrays(input_tensor=input_tensor)
        return self._compute(lambda x: type(self).FORMULA(_rescale(x, self.scale_bias)), input_tensor)


def _rescale(x: Array, scale_bias: ScaleBias | None) -> Array:
    return x if scale_bias is None else x * scale_bias[0] + scale_bias[1]


class ElementWiseIdentity(ElementWiseScaled):
    """f(x) = x."""

    NAME = "DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC"
    FORMULA = np.positive


class ElementWiseAbs(ElementWiseScaled):
    """f(x) = |x|."""

    NAME = "DML_ELEMENT_WISE_ABS_OPERATOR_DESC"
    FORMULA = np.abs


@dataclass(frozen=True)
class ElementWiseClip(ElementWise):
    """f(x) = min(Max, max(Min, g(x))), with FLOAT ends of the interval."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_CLIP_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    scale_bias: ScaleBias | None
    min: float
    max: float

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """NaN, of which the page says nothing, stays NaN."""
        self.require_arrays(input_tensor=input_tensor)
        return self._compute(
            lambda x: np.minimum(self.max, np.maximum(self.min, _rescale(x, self.scale_bias))), input_tensor
        )


@dataclass(frozen=True)
class ElementWiseClip1(ElementWise):
    """f(x) = min(Max, max(Min, g(x))); the ends are a DML_SCALAR_UNION of MinMaxDataType, here numpy scalars."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_CLIP1_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    scale_bias: ScaleBias | None
    min_max_data_type: DataType
    min: np.generic
    max: np.generic

    def constraints(self) -> Iterator[Violation]:
        """Besides the common ones: MinMaxDataType is the data type of InputTensor."""
        yield from super().constraints()
        if self.min_max_data_type is not self.input_tensor.data_type:
            yield self.violation(
                "min_max_data_type",
                f"MinMaxDataType is {self.min_max_data_type.name}, InputTensor {self.input_tensor.data_type.name}",
            )

    def as_dict(self) -> dict[str, Any]:
        """The members, the scalars as Python's own."""
        return {**super().as_dict(), "Min": self.min.item(), "Max": self.max.item()}

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """NaN, of which the page says nothing, stays NaN."""
        self.require_arrays(input_tensor=input_tensor)
        low, high = _widen(np.asarray(self.min)), _widen(np.asarray(self.max))
        return self._compute(lambda x: np.minimum(high, np.maximum(low, _rescale(x, self.scale_bias))), input_tensor)


@dataclass(frozen=True)
class ElementWiseBinary(ElementWise):
    """f(a, b) of each pair of elements, with FORMULA for f."""

    SAME_TYPE: ClassVar[tuple[str, ...]] = ("a_tensor", "b_tensor", "output_tensor")
    FORMULA: ClassVar[Formula]

    a_tensor: TensorDesc
    b_tensor: TensorDesc
    output_tensor: TensorDesc

    def evaluate(self, a_tensor: Array, b_tensor: Array) -> tuple[Array]:
        """FORMULA(ATensor, BTensor)."""
        self.require_arrays(a_tensor=a_tensor, b_tensor=b_tensor)
        return self._compute(type(self).FORMULA, a_tensor, b_tensor)


def truncated_quotient(a: Array, b: Array) -> Array:
    """a / b: of integers rounded toward zero (b is not 0), of floats as IEEE 754 divides."""
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    return np.asarray(a // b + ((a % b != 0) & ((a < 0) != (b < 0))))


class ElementWiseAdd(ElementWiseBinary):
    """f(a, b) = a + b."""

    NAME = "DML_ELEMENT_WISE_ADD_OPERATOR_DESC"
    FORMULA = np.add


class ElementWiseSubtract(ElementWiseBinary):
    """f(a, b) = a - b."""

    NAME = "DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC"
    FORMULA = np.subtract


class ElementWiseMultiply(ElementWiseBinary):
    """f(a, b) = a * b."""

    NAME = "DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC"
    FORMULA = np.multiply


class ElementWiseDivide(ElementWiseBinary):
    """f(a, b) = a / b, of integers rounded toward zero."""

    NAME = "DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC"
    FORMULA = staticmethod(truncated_quotient)


class ElementWiseModulusTruncate(ElementWiseBinary):
    """f(a, b) = a - b * trunc(a / b): C's remainder."""

    NAME = "DML_ELEMENT_WISE_MODULUS_TRUNCATE_OPERATOR_DESC"
    FORMULA = np.fmod


class ElementWiseModulusFloor(ElementWiseBinary):
    """f(a, b) = a - b * floor(a / b): Python's remainder."""

    NAME = "DML_ELEMENT_WISE_MODULUS_FLOOR_OPERATOR_DESC"
    FORMULA = np.mod


class ElementWiseMin(ElementWiseBinary):
    """f(a, b) = min(a, b); NaN, of which the page says nothing, wins."""

    NAME = "DML_ELEMENT_WISE_MIN_OPERATOR_DESC"
    FORMULA = np.minimum


class ElementWiseMax(ElementWiseBinary):
    """f(a, b) = max(a, b); NaN, of which the page says nothing, wins."""

    NAME = "DML_ELEMENT_WISE_MAX_OPERATOR_DESC"
    FORMULA = np.maximum


class ElementWiseMean(ElementWiseBinary):
    """f(a, b) = (a + b) / 2."""

    NAME = "DML_ELEMENT_WISE_MEAN_OPERATOR_DESC"
    FORMULA = staticmethod(lambda a, b: (a + b) / 2)


class ElementWiseBitAnd(ElementWiseBinary):
    """f(a, b) = a & b."""

    NAME = "DML_ELEMENT_WISE_BIT_AND_OPERATOR_DESC"
    FORMULA = np.bitwise_and


class ElementWiseBitOr(ElementWiseBinary):
    """f(a, b) = a | b."""

    NAME = "DML_ELEMENT_WISE_BIT_OR_OPERATOR_DESC"
    FORMULA = np.bitwise_or


class ElementWiseBitXor(ElementWiseBinary):
    """f(a, b) = a ^ b."""

    NAME = "DML_ELEMENT_WISE_BIT_XOR_OPERATOR_DESC"
    FORMULA = np.bitwise_xor


class ElementWiseBitShiftLeft(ElementWiseBinary):
    """f(a, b) = a << b, for b less than the width of the type."""

    NAME = "DML_ELEMENT_WISE_BIT_SHIFT_LEFT_OPERATOR_DESC"
    FORMULA = np.left_shift


class ElementWiseBitShiftRight(ElementWiseBinary):
    """f(a, b) = a >> b, for b less than the width of the type."""

    NAME = "DML_ELEMENT_WISE_BIT_SHIFT_RIGHT_OPERATOR_DESC"
    FORMULA = np.right_shift


class ElementWiseLogicalAnd(ElementWiseBinary):
    """f(a, b) = a && b, UINT8 0 or 1."""

    NAME = "DML_ELEMENT_WISE_LOGICAL_AND_OPERATOR_DESC"
    FORMULA = np.logical_and


class ElementWiseLogicalOr(ElementWiseBinary):
    """f(a, b) = a || b, UINT8 0 or 1."""

    NAME = "DML_ELEMENT_WISE_LOGICAL_OR_OPERATOR_DESC"
    FORMULA = np.logical_or


class ElementWiseLogicalXor(ElementWiseBinary):
    """f(a, b) = !a != !b, UINT8 0 or 1."""

    NAME = "DML_ELEMENT_WISE_LOGICAL_XOR_OPERATOR_DESC"
    FORMULA = np.logical_xor


@dataclass(frozen=True)
class ElementWiseComparison(ElementWiseBinary):
    """Two tensors of one data type; the result is UINT8 0 or 1."""

    SAME_TYPE: ClassVar[tuple[str, ...]] = ("a_tensor", "b_tensor")
    RESULTS: ClassVar[tuple[DataType, ...]] = (DataType.UINT8, DataType.UINT32)


class ElementWiseLogicalEquals(ElementWiseComparison):
    """f(a, b) = a == b."""

    NAME = "DML_ELEMENT_WISE_LOGICAL_EQUALS_OPERATOR_DESC"
    FORMULA = np.equal


class ElementWiseLogicalGreaterThan(ElementWiseComparison):
    """f(a, b) = a > b."""

    NAME = "DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OPERATOR_DESC"
    FORMULA = np.greater


class ElementWiseLogicalGreaterThanOrEqual(ElementWiseComparison):
    """f(a, b) = a >= b."""

    NAME = "DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL_OPERATOR_DESC"
    FORMULA = np.greater_equal


class ElementWiseLogicalLessThan(ElementWiseComparison):
    """f(a, b) = a < b."""

    NAME = "DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OPERATOR_DESC"
    FORMULA = np.less


class ElementWiseLogicalLessThanOrEqual(ElementWiseComparison):
    """f(a, b) = a <= b."""

    NAME = "DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL_OPERATOR_DESC"
    FORMULA = np.less_equal


@dataclass(frozen=True)
class ElementWiseAdd1(ElementWise):
    """FusedActivation(a + b); without an activation a + b."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_ADD1_OPERATOR_DESC"
    SAME_TYPE: ClassVar[tuple[str, ...]] = ("a_tensor", "b_tensor", "output_tensor")

    a_tensor: TensorDesc
    b_tensor: TensorDesc
    output_tensor: TensorDesc
    fused_activation: OneTensor | None

    def evaluate(self, a_tensor: Array, b_tensor: Array) -> tuple[Array]:
        """FusedActivation(ATensor + BTensor)."""
        self.require_arrays(a_tensor=a_tensor, b_tensor=b_tensor)
        activation = self.fused_activation
        return self._compute(
            lambda a, b: a + b if activation is None else activation.formula(a + b), a_tensor, b_tensor
        )


@dataclass(frozen=True)
class ElementWisePow(ElementWise):
    """f(x, exponent) = g(x) to the power of the exponent."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_POW_OPERATOR_DESC"

    input_tensor: TensorDesc
    exponent_tensor: TensorDesc
    output_tensor: TensorDesc
    scale_bias: ScaleBias | None = None

    def evaluate(self, input_tensor: Array, exponent_tensor: Array) -> tuple[Array]:
        """Powers of integers are exact."""
        self.require_arrays(input_tensor=input_tensor, exponent_tensor=exponent_tensor)
        return self._compute(lambda x, y: _power(_rescale(x, self.scale_bias), y), input_tensor, exponent_tensor)


@dataclass(frozen=True)
class ElementWiseConstantPow(ElementWise):
    """f(x) = g(x) to the power of Exponent, a FLOAT."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_CONSTANT_POW_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    scale_bias: ScaleBias | None
    exponent: float

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """Powers of integers are exact."""
        self.require_arrays(input_tensor=input_tensor)
        return self._compute(lambda x: _power(_rescale(x, self.scale_bias), np.asarray(self.exponent)), input_tensor)


def _power(x: Array, exponent: Array) -> Array:
    """Of integers in their own type where the exponents are whole, of all else in float64."""
    whole = exponent.astype(np.int64)
    if x.dtype.kind in "iu" and (whole == exponent).all() and (whole >= 0).all():
        return np.asarray(np.power(x, whole.astype(x.dtype)))
    return np.asarray(np.power(x.astype(np.float64), exponent.astype(np.float64)))


@dataclass(frozen=True)
class ElementWiseIf(ElementWise):
    """f(condition, a, b) = condition ? a : b, with a UINT8 condition."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_IF_OPERATOR_DESC"
    SAME_TYPE: ClassVar[tuple[str, ...]] = ("a_tensor", "b_tensor", "output_tensor")

    condition_tensor: TensorDesc
    a_tensor: TensorDesc
    b_tensor: TensorDesc
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """Besides the common ones: a condition of UINT8."""
        yield from super().constraints()
        if self.condition_tensor.data_type is not DataType.UINT8:
            yield self.violation(
                "condition_is_uint8", f"ConditionTensor is {self.condition_tensor.data_type.name} instead of UINT8"
            )

    def evaluate(self, condition_tensor: Array, a_tensor: Array, b_tensor: Array) -> tuple[Array]:
        """Bits are copied, whatever the type."""
        self.require_defined()
        self.require_arrays(condition_tensor=condition_tensor, a_tensor=a_tensor, b_tensor=b_tensor)
        return (np.where(condition_tensor, a_tensor, b_tensor),)


@dataclass(frozen=True)
class Cast(ElementWise):
    """f(x) = x in the data type of OutputTensor.

    The page says no more than that. Here floats become integers toward zero and integers keep their lower bits, as
    ONNX's Cast has it.
    """

    NAME: ClassVar[str] = "DML_CAST_OPERATOR_DESC"
    SAME_TYPE: ClassVar[tuple[str, ...]] = ()

    input_tensor: TensorDesc
    output_tensor: TensorDesc

    def evaluate(self, input_tensor: Array) -> tuple[Array]:
        """Defined for values within the range of the output's type, and for integers beyond it."""
        self.require_arrays(input_tensor=input_tensor)
        return self._compute(lambda x: x, input_tensor)
