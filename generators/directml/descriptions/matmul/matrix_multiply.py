"""The products of matrices: DML_GEMM, DML_MATRIX_MULTIPLY_INTEGER, DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT and
DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY, each on the page of its struct."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.elementwise.unary import OneTensor
from epcheck.generators.directml.operator_desc import OperatorDesc
from epcheck.generators.directml.tensor import TensorDesc


class MatrixTransform(Enum):
    """DML_MATRIX_TRANSFORM (ne-directml-dml_matrix_transform)."""

    NONE = 0
    TRANSPOSE = 1


@dataclass(frozen=True)
class _Product(OperatorDesc):
    """What the products have in common: the tensors A, B and Output, batches in front, matrices in the last two."""

    def _product_violations(
        self, a: tuple[int, ...], b: tuple[int, ...], output: tuple[int, ...], *matrices: TensorDesc | None
    ) -> Iterator[Violation]:
        """a, b: the sizes after any transposition. matrices: further tensors with the dimensions of the output."""
        counts = {len(a), len(b), len(output), *(m.dimension_count for m in matrices if m is not None)}
        if len(counts) > 1:
            yield self.violation("same_dimension_count", f"the tensors have {sorted(counts)} dimensions")
            return
        if a[-1] != b[-2]:
            yield self.violation("inner_sizes_match", f"A has {a[-1]} columns, B {b[-2]} rows")
        if a[:-2] != b[:-2]:
            yield self.violation("same_batches", f"A has batches {a[:-2]}, B {b[:-2]}")
        expected = (*a[:-1], b[-1])
        if output != expected:
            yield self.violation("output_sizes", f"OutputTensor has sizes {output} instead of {expected}")

    def _parameter_sizes(self, name: str, axis: int) -> Iterator[Violation]:
        """The scale and the zero point of matrix `name` have one element, or one for each place along the axis: {1, 1,
        M, 1} for the rows of A and of the output, {1, 1, 1, N} for the columns of B."""
        matrix: TensorDesc = getattr(self, f"{name}_tensor")
        ones = (1,) * matrix.dimension_count
        along = list(ones)
        along[axis] = matrix.sizes[axis]
        for parameter in (f"{name}_scale_tensor", f"{name}_zero_point_tensor"):
            tensor: TensorDesc | None = getattr(self, parameter, None)
            if tensor is not None and tensor.sizes not in (ones, tuple(along)):
                yield self.violation(
                    f"{parameter}_sizes", f"{parameter} has sizes {tensor.sizes}, neither {ones} nor {tuple(along)}"
                )

    def _same_type(self, first: TensorDesc, other: TensorDesc | None, name: str) -> Iterator[Violation]:
        if other is not None and first.data_type is not other.data_type:
            yield self.violation(f"{name}_same_data_type", f"{name}: {first.data_type.name}, {other.data_type.name}")


@dataclass(frozen=True)
class Gemm(_Product):
    """FusedActivation(Alpha * TransA(A) x TransB(B) + Beta * C)."""

    NAME: ClassVar[str] = "DML_GEMM_OPERATOR_DESC"

    a_tensor: TensorDesc
    b_tensor: TensorDesc
    c_tensor: TensorDesc | None
    output_tensor: TensorDesc
    trans_a: MatrixTransform
    trans_b: MatrixTransform
    alpha: float
    beta: float
    fused_activation: OneTensor | None = None

    def constraints(self) -> Iterator[Violation]:
        """Same data types and dimension counts, sizes of a product, C with the sizes of the output."""
        for name in ("b_tensor", "c_tensor", "output_tensor"):
            yield from self._same_type(self.a_tensor, getattr(self, name), name)
        a, b = _transposed_sizes(self.a_tensor, self.trans_a), _transposed_sizes(self.b_tensor, self.trans_b)
        yield from self._product_violations(a, b, self.output_tensor.sizes, self.c_tensor)
        if self.c_tensor is not None and self.c_tensor.sizes != self.output_tensor.sizes:
            yield self.violation(
                "c_tensor_sizes", f"CTensor has sizes {self.c_tensor.sizes}, OutputTensor {self.output_tensor.sizes}"
            )

    def evaluate(self, a_tensor: Array, b_tensor: Array, c_tensor: Array | None) -> tuple[Array]:
        """The formula in float64, rounded once."""
        self.require_defined()
        self.require_arrays(a_tensor=a_tensor, b_tensor=b_tensor, c_tensor=c_tensor)
        a = _transpose_matrix(a_tensor.astype(np.float64), self.trans_a)
        b = _transpose_matrix(b_tensor.astype(np.float64), self.trans_b)
        with np.errstate(all="ignore"):
            result = self.alpha * (a @ b)
            if c_tensor is not None:
                result = result + self.beta * c_tensor.astype(np.float64)
            if self.fused_activation is not None:
                result = self.fused_activation.formula(result)
            return (result.astype(self.output_tensor.data_type.dtype),)


def _transposed_sizes(tensor: TensorDesc, transform: MatrixTransform) -> tuple[int, ...]:
    sizes = tensor.sizes
    return (*sizes[:-2], sizes[-1], sizes[-2]) if transform is MatrixTransform.TRANSPOSE else sizes


def _transpose_matrix(array: Array, transform: MatrixTransform) -> Array:
    return np.swapaxes(array, -1, -2) if transform is MatrixTransform.TRANSPOSE else array


def _center(array: Array, zero_point: Array | None) -> Array:
    """The integers less their zero point, int64."""
    return array.astype(np.int64) - (0 if zero_point is None else zero_point.astype(np.int64))


@dataclass(frozen=True)
class MatrixMultiplyInteger(_Product):
    """(A - AZeroPoint) x (B - BZeroPoint) in int32."""

    NAME: ClassVar[str] = "DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC"

    a_tensor: TensorDesc
    a_zero_point_tensor: TensorDesc | None
    b_tensor: TensorDesc
    b_zero_point_tensor: TensorDesc | None
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """Zero points of their matrices' types, sizes of a product."""
        yield from self._same_type(self.a_tensor, self.a_zero_point_tensor, "a_zero_point_tensor")
        yield from self._same_type(self.b_tensor, self.b_zero_point_tensor, "b_zero_point_tensor")
        yield from self._parameter_sizes("a", -2)
        yield from self._parameter_sizes("b", -1)
        yield from self._product_violations(self.a_tensor.sizes, self.b_tensor.sizes, self.output_tensor.sizes)

    def evaluate(
        self, a_tensor: Array, a_zero_point_tensor: Array | None, b_tensor: Array, b_zero_point_tensor: Array | None
    ) -> tuple[Array]:
        """Exact; a zero point that is left out is 0."""
        self.require_defined()
        self.require_arrays(
            a_tensor=a_tensor,
            a_zero_point_tensor=a_zero_point_tensor,
            b_tensor=b_tensor,
            b_zero_point_tensor=b_zero_point_tensor,
        )
        product = _center(a_tensor, a_zero_point_tensor) @ _center(b_tensor, b_zero_point_tensor)
        return (product.astype(self.output_tensor.data_type.dtype),)


@dataclass(frozen=True)
class MatrixMultiplyIntegerToFloat(_Product):
    """(A - AZeroPoint) * AScale x (B - BZeroPoint) * BScale + Bias."""

    NAME: ClassVar[str] = "DML_MATRIX_MULTIPLY_INTEGER_TO_FLOAT_OPERATOR_DESC"

    a_tensor: TensorDesc
    a_scale_tensor: TensorDesc
    a_zero_point_tensor: TensorDesc | None
    b_tensor: TensorDesc
    b_scale_tensor: TensorDesc
    b_zero_point_tensor: TensorDesc | None
    bias_tensor: TensorDesc | None
    output_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        """Zero points of their matrices' types, scales of the output's, sizes of a product."""
        yield from self._same_type(self.a_tensor, self.a_zero_point_tensor, "a_zero_point_tensor")
        yield from self._same_type(self.b_tensor, self.b_zero_point_tensor, "b_zero_point_tensor")
        for name in ("a_scale_tensor", "b_scale_tensor", "bias_tensor"):
            yield from self._same_type(self.output_tensor, getattr(self, name), name)
        bias, output = self.bias_tensor, self.output_tensor.sizes
        if bias is not None and any(size not in (1, whole) for size, whole in zip(bias.sizes, output, strict=False)):
            yield self.violation("bias_tensor_sizes", f"BiasTensor has sizes {bias.sizes}, OutputTensor {output}")
        yield from self._parameter_sizes("a", -2)
        yield from self._parameter_sizes("b", -1)
        yield from self._product_violations(self.a_tensor.sizes, self.b_tensor.sizes, self.output_tensor.sizes)

    def evaluate(
        self,
        a_tensor: Array,
        a_scale_tensor: Array,
        a_zero_point_tensor: Array | None,
        b_tensor: Array,
        b_scale_tensor: Array,
        b_zero_point_tensor: Array | None,
        bias_tensor: Array | None,
    ) -> tuple[Array]:
        """The formula in float64, rounded once; a zero point that is left out is 0."""
        self.require_defined()
        a = _center(a_tensor, a_zero_point_tensor) * a_scale_tensor.astype(np.float64)
        b = _center(b_tensor, b_zero_point_tensor) * b_scale_tensor.astype(np.float64)
        result = a @ b + (0 if bias_tensor is None else bias_tensor.astype(np.float64))
        return (result.astype(self.output_tensor.data_type.dtype),)


@dataclass(frozen=True)
class QuantizedLinearMatrixMultiply(_Product):
    """clamp(round((A - AZeroPoint) * AScale x (B - BZeroPoint) * BScale / OutputScale) + OutputZeroPoint)."""

    NAME: ClassVar[str] = "DML_QUANTIZED_LINEAR_MATRIX_MULTIPLY_OPERATOR_DESC"

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
        """Zero points of their matrices' types, sizes of a product."""
        yield from self._same_type(self.a_tensor, self.a_zero_point_tensor, "a_zero_point_tensor")
        yield from self._same_type(self.b_tensor, self.b_zero_point_tensor, "b_zero_point_tensor")
        yield from self._same_type(self.output_tensor, self.output_zero_point_tensor, "output_zero_point_tensor")
        for name, axis in (("a", -2), ("b", -1), ("output", -2)):
            yield from self._parameter_sizes(name, axis)
        yield from self._product_violations(self.a_tensor.sizes, self.b_tensor.sizes, self.output_tensor.sizes)

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
        """The formula in float64; `round` is to nearest, ties to even, as in ONNX."""
        self.require_defined()
        sums = _center(a_tensor, a_zero_point_tensor) @ _center(b_tensor, b_zero_point_tensor)
        scale = a_scale_tensor.astype(np.float64) * b_scale_tensor.astype(np.float64)
        steps = np.rint(sums * scale / output_scale_tensor.astype(np.float64))
        zero = 0 if output_zero_point_tensor is None else output_zero_point_tensor.astype(np.float64)
        info = np.iinfo(self.output_tensor.data_type.dtype)
        return (np.clip(steps + zero, info.min, info.max).astype(info.dtype),)
