"""Quantising and its inverse: DML_ELEMENT_WISE_QUANTIZE_LINEAR, DML_ELEMENT_WISE_DEQUANTIZE_LINEAR, DML_QUANTIZE,
DML_DEQUANTIZE, DML_ELEMENT_WISE_QUANTIZED_LINEAR_ADD and DML_DYNAMIC_QUANTIZE_LINEAR, each as its page says."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.operator_desc import OperatorDesc, c_name
from epcheck.generators.directml.tensor import TensorDesc


def _same_sizes(desc: OperatorDesc, *names: str) -> Iterator[Violation]:
    """Violations of the demand that those tensors have the sizes of the output."""
    output: TensorDesc = desc.output_tensor  # type: ignore[attr-defined]
    for name in names:
        tensor: TensorDesc | None = getattr(desc, name)
        if tensor is not None and tensor.sizes != output.sizes:
            yield desc.violation(
                f"{name}_sizes", f"{c_name(name)} has sizes {tensor.sizes}, OutputTensor {output.sizes}"
            )


def _same_type(desc: OperatorDesc, name: str, other: str) -> Iterator[Violation]:
    first, second = getattr(desc, name), getattr(desc, other)
    if second is not None and first.data_type is not second.data_type:
        yield desc.violation(
            f"{other}_same_data_type",
            f"{c_name(name)} is {first.data_type.name}, {c_name(other)} {second.data_type.name}",
        )


def _one_element(desc: OperatorDesc, name: str) -> Iterator[Violation]:
    """Violations of the demand that a tensor has one element, in as many dimensions as the output has."""
    tensor: TensorDesc | None = getattr(desc, name)
    output: TensorDesc = desc.output_tensor  # type: ignore[attr-defined]
    if tensor is not None and tensor.sizes != (1,) * output.dimension_count:
        yield desc.violation(
            f"{name}_sizes", f"{c_name(name)} has sizes {tensor.sizes} instead of {(1,) * output.dimension_count}"
        )


def _quantise(real: Array, zero_point: Array | None, output: TensorDesc) -> Array:
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
        return (_quantise(real, zero_point_tensor, self.output_tensor),)


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
            yield from _one_element(self, f"{name}_scale_tensor")
            yield from _one_element(self, f"{name}_zero_point_tensor")

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
        return (_quantise(real / output_scale_tensor.astype(np.float64), output_zero_point_tensor, self.output_tensor),)


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
            yield from _one_element(self, name)

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


class QuantizationType(Enum):
    """DML_QUANTIZATION_TYPE (ne-directml-dml_quantization_type)."""

    NONE = 0
    SCALE = 1
    SCALE_ZERO_POINT = 2


@dataclass(frozen=True)
class _Blocked(OperatorDesc):
    """The members of DML_QUANTIZE and DML_DEQUANTIZE: a scale, and by the type a zero point, for each block.

    The pages say of the blocks only that all tensors have as many dimensions; here the sizes of the input are whole
    multiples of those of the scale, each of which serves as many neighbours.
    """

    input_tensor: TensorDesc
    quantization_type: QuantizationType
    quantization_tensor_count: int = field(init=False)
    quantization_tensors: tuple[TensorDesc, ...]
    output_tensor: TensorDesc

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantization_tensor_count", len(self.quantization_tensors))

    def constraints(self) -> Iterator[Violation]:
        """As many tensors as the type has, the same dimension count, whole blocks."""
        if self.quantization_tensor_count != self.quantization_type.value:
            yield self.violation(
                "quantization_tensor_count",
                f"{self.quantization_type.name} has {self.quantization_type.value} tensors, "
                f"there are {self.quantization_tensor_count}",
            )
        yield from _same_sizes(self, "input_tensor")
        for tensor in self.quantization_tensors:
            if tensor.dimension_count != self.input_tensor.dimension_count:
                yield self.violation(
                    "same_dimension_count",
                    f"InputTensor has {self.input_tensor.dimension_count} dimensions, "
                    f"one of QuantizationTensors {tensor.dimension_count}",
                )
            elif any(size % blocks for size, blocks in zip(self.input_tensor.sizes, tensor.sizes, strict=True)):
                yield self.violation("whole_blocks", f"{tensor.sizes} does not divide {self.input_tensor.sizes}")

    def _parameters(self, quantization_tensors: tuple[Array, ...]) -> tuple[Array, Array]:
        """Scale and zero point (0 if there is none) in the sizes of the input, float64."""
        self.require_defined()
        spread = []
        for tensor in quantization_tensors:
            wide = tensor.astype(np.float64)
            for axis, size in enumerate(self.input_tensor.sizes):
                wide = np.repeat(wide, size // wide.shape[axis], axis)
            spread.append(wide)
        return spread[0], spread[1] if len(spread) > 1 else np.zeros(1)


@dataclass(frozen=True)
class Quantize(_Blocked):
    """clamp(round(Input / scale) + zero point), the arithmetic of ONNX's QuantizeLinear."""

    NAME: ClassVar[str] = "DML_QUANTIZE_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array, *quantization_tensors: Array) -> tuple[Array]:
        """In float64; ties to even."""
        scale, zero_point = self._parameters(quantization_tensors)
        return (_quantise(input_tensor.astype(np.float64) / scale, zero_point, self.output_tensor),)


@dataclass(frozen=True)
class Dequantize(_Blocked):
    """(Input - zero point) * scale, the arithmetic of ONNX's DequantizeLinear."""

    NAME: ClassVar[str] = "DML_DEQUANTIZE_OPERATOR_DESC"

    def evaluate(self, input_tensor: Array, *quantization_tensors: Array) -> tuple[Array]:
        """In float64, rounded once."""
        scale, zero_point = self._parameters(quantization_tensors)
        with np.errstate(over="ignore"):
            real = _real(input_tensor, scale, zero_point)
            return (real.astype(self.output_tensor.data_type.dtype),)
