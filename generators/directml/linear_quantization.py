"""Quantising and its inverse, element by element: DML_ELEMENT_WISE_QUANTIZE_LINEAR, DML_ELEMENT_WISE_DEQUANTIZE_LINEAR,
DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD and DML_DYNAMIC_QUANTIZE_LINEAR, each on the page of its struct."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.operator_desc import OperatorDesc, c_name
from epcheck.generators.directml.tensor import Array, TensorDesc


def _same_sizes(desc: OperatorDesc, *names: str) -> Iterator[Violation]:
    """Violations of the demand that those tensors have the sizes of the output."""
    output: TensorDesc = desc.output_tensor  # type: ignore[attr-defined]
    for name in names:
        tensor: TensorDesc | None = getattr(desc, name)
        if tensor is not None and tensor.sizes != output.sizes:
            yield desc.violation(
                f"{name}_sizes", f"{c_name(name)} has sizes {tensor.sizes}, OutputTensor {output.sizes}"
            )


def _same_type(desc: OperatorDesc, one: str, other: str) -> Iterator[Violation]:
    first, second = getattr(desc, one), getattr(desc, other)
    if second is not None and first.data_type is not second.data_type:
        yield desc.violation(
            f"{other}_same_data_type",
            f"{c_name(one)} is {first.data_type.name}, {c_name(other)} {second.data_type.name}",
        )


def _quantised(real: Array, zero_point: Array | None, output: TensorDesc) -> Array:
    info = np.iinfo(output.data_type.dtype)
    zero = 0 if zero_point is None else zero_point.astype(np.float64)
    return np.clip(np.rint(real) + zero, info.min, info.max).astype(info.dtype)


def _real(array: Array, scale: Array, zero_point: Array | None) -> Array:
    zero = 0 if zero_point is None else zero_point.astype(np.float64)
    real: Array = (array.astype(np.float64) - zero) * scale.astype(np.float64)
    return real


@dataclass(frozen=True)
class ElementWiseQuantizeLinear(OperatorDesc):
    """clamp(round(Input / Scale) + ZeroPoint)."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC"

    input_tensor: TensorDesc
    scale_tensor: TensorDesc
    zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """All tensors have the same sizes; the zero point has the output's type."""
        yield from _same_sizes(self, "input_tensor", "scale_tensor", "zero_point_tensor")
        yield from _same_type(self, "output_tensor", "zero_point_tensor")

    def evaluate(self, input_tensor: Array, scale_tensor: Array, zero_point_tensor: Array | None) -> tuple[Array]:
        """In float64; ties to even. A zero point that is left out is 0."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, scale_tensor=scale_tensor, zero_point_tensor=zero_point_tensor)
        real = input_tensor.astype(np.float64) / scale_tensor.astype(np.float64)
        return (_quantised(real, zero_point_tensor, self.output_tensor),)


@dataclass(frozen=True)
class ElementWiseDequantizeLinear(OperatorDesc):
    """(Input - ZeroPoint) * Scale."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC"

    input_tensor: TensorDesc
    scale_tensor: TensorDesc
    zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """All tensors have the same sizes; the zero point has the input's type, the scale the output's."""
        yield from _same_sizes(self, "input_tensor", "scale_tensor", "zero_point_tensor")
        yield from _same_type(self, "input_tensor", "zero_point_tensor")
        yield from _same_type(self, "output_tensor", "scale_tensor")

    def evaluate(self, input_tensor: Array, scale_tensor: Array, zero_point_tensor: Array | None) -> tuple[Array]:
        """In float64, rounded once. A zero point that is left out is 0."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor, scale_tensor=scale_tensor, zero_point_tensor=zero_point_tensor)
        real = _real(input_tensor, scale_tensor, zero_point_tensor)
        with np.errstate(over="ignore"):
            return (real.astype(self.output_tensor.data_type.dtype),)


@dataclass(frozen=True)
class ElementWiseQuantizedLinearAdd(OperatorDesc):
    """The sum of two dequantised tensors, quantised."""

    NAME: ClassVar[str] = "DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD_OPERATOR_DESC"

    a_tensor: TensorDesc
    a_scale_tensor: TensorDesc
    a_zero_point_tensor: TensorDesc | None
    b_tensor: TensorDesc
    b_scale_tensor: TensorDesc
    b_zero_point_tensor: TensorDesc | None
    output_scale_tensor: TensorDesc
    output_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """A and B have the output's sizes, zero points the types of their tensors."""
        yield from _same_sizes(self, "a_tensor", "b_tensor")
        for name in ("a", "b", "output"):
            yield from _same_type(self, f"{name}_tensor", f"{name}_zero_point_tensor")

    def evaluate(
        self,
        a_tensor: Array,
        a_scale_tensor: Array,
        a_zero_point_tensor: Array | None,
        b_tensor: Array,
        b_scale_tensor: Array,
        b_zero_point_tensor: Array | None,
        output_scale_tensor: Array,
        output_zero_point_tensor: Array | None,
    ) -> tuple[Array]:
        """In float64; ties to even."""
        self.require_defined()
        real = _real(a_tensor, a_scale_tensor, a_zero_point_tensor)
        real = real + _real(b_tensor, b_scale_tensor, b_zero_point_tensor)
        return (
            _quantised(real / output_scale_tensor.astype(np.float64), output_zero_point_tensor, self.output_tensor),
        )


@dataclass(frozen=True)
class DynamicQuantizeLinear(OperatorDesc):
    """Quantises with the scale and zero point that the range of the input gives, 0 included."""

    NAME: ClassVar[str] = "DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    output_scale_tensor: TensorDesc
    output_zero_point_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """The output has the input's sizes, scale and zero point one element."""
        yield from _same_sizes(self, "input_tensor")
        yield from _same_type(self, "output_tensor", "output_zero_point_tensor")
        for name in ("output_scale_tensor", "output_zero_point_tensor"):
            tensor: TensorDesc = getattr(self, name)
            if tensor.element_count != 1:
                yield self.violation(
                    f"{name}_sizes", f"{c_name(name)} has {tensor.element_count} elements, must have 1"
                )

    def evaluate(self, input_tensor: Array) -> tuple[Array, Array, Array]:
        """ONNX's DynamicQuantizeLinear in float64, the scale rounded once. Raises ValueError also for a range of 0."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        low, high = (float(end) for end in (min(0.0, input_tensor.min()), max(0.0, input_tensor.max())))
        info = np.iinfo(self.output_tensor.data_type.dtype)
        scale = np.float32((high - low) / (int(info.max) - int(info.min)))
        if not scale:
            raise ValueError(f"{self.NAME}: the range of InputTensor is 0")
        zero = np.clip(np.rint(info.min - low / float(scale)), info.min, info.max)
        output = np.clip(np.rint(input_tensor.astype(np.float64) / float(scale)) + zero, info.min, info.max)
        ones = self.output_scale_tensor.sizes
        return output.astype(info.dtype), np.full(ones, scale), np.full(ones, zero).astype(info.dtype)
