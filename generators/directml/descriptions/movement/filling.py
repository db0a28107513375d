"""DirectML's operators that fill a tensor in: constants, sequences, diagonals, one-hot vectors, coordinates.

See `layout` for what its descriptions have in common.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.directml.constraint import Violation
from epcheck.generators.directml.descriptions.movement.layout import LayoutDesc, scalar
from epcheck.generators.directml.operator_desc import INT
from epcheck.generators.directml.tensor import DataType, TensorDesc


@dataclass(frozen=True)
class FillValueConstant(LayoutDesc):
    """Fills a tensor with one value."""

    NAME: ClassVar[str] = "DML_FILL_VALUE_CONSTANT_OPERATOR_DESC"

    output_tensor: TensorDesc
    value_data_type: DataType
    value: str

    def constraints(self) -> Iterator[Violation]:
        if self.value_data_type is not self.output_tensor.data_type:
            yield self.violation("value_data_type", "ValueDataType must be the data type of OutputTensor")

    def evaluate(self) -> tuple[Array]:
        """The value everywhere."""
        self.require_defined()
        return (np.full(self.output_tensor.sizes, scalar(self.value, self.value_data_type)),)


@dataclass(frozen=True)
class FillValueSequence(LayoutDesc):
    """Fills a tensor with ValueStart, ValueStart + ValueDelta, and so on."""

    NAME: ClassVar[str] = "DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC"

    output_tensor: TensorDesc
    value_data_type: DataType
    value_start: str
    value_delta: str

    def constraints(self) -> Iterator[Violation]:
        if self.value_data_type is not self.output_tensor.data_type:
            yield self.violation("value_data_type", "ValueDataType must be the data type of OutputTensor")

    def evaluate(self) -> tuple[Array]:
        """Start + i delta, rounded once."""
        self.require_defined()
        start, delta = (scalar(text, self.value_data_type) for text in (self.value_start, self.value_delta))
        wide = object if self.value_data_type.dtype.kind in "iu" else np.float64
        steps = np.arange(prod(self.output_tensor.sizes)).astype(wide)
        values = start.item() + steps * delta.item()
        return (np.asarray(values).astype(self.value_data_type.dtype).reshape(self.output_tensor.sizes),)


@dataclass(frozen=True)
class DiagonalMatrix(LayoutDesc):
    """A value on one diagonal, 0 elsewhere."""

    NAME: ClassVar[str] = "DML_DIAGONAL_MATRIX_OPERATOR_DESC"

    output_tensor: TensorDesc
    offset: int = field(metadata=INT)
    value: float

    def evaluate(self) -> tuple[Array]:
        """The value where column - row is Offset."""
        self.require_defined()
        sizes = self.output_tensor.sizes
        rows, columns = np.indices(sizes[-2:])
        matrix = np.where(columns - rows == self.offset, self.value, 0).astype(self.output_tensor.data_type.dtype)
        return (np.broadcast_to(matrix, sizes),)


@dataclass(frozen=True)
class DiagonalMatrix1(LayoutDesc):
    """A value on the diagonals from DiagonalFillBegin up to, and without, DiagonalFillEnd; the input elsewhere."""

    NAME: ClassVar[str] = "DML_DIAGONAL_MATRIX1_OPERATOR_DESC"

    input_tensor: TensorDesc | None
    output_tensor: TensorDesc
    value_data_type: DataType
    value: str
    diagonal_fill_begin: int = field(metadata=INT)
    diagonal_fill_end: int = field(metadata=INT)

    def constraints(self) -> Iterator[Violation]:
        if self.value_data_type is not self.output_tensor.data_type:
            yield self.violation("value_data_type", "ValueDataType must be the data type of OutputTensor")
        if self.input_tensor is not None:
            yield from self.check_same_type("input_tensor", "output_tensor")
            yield from self.check_same_sizes("input_tensor", "output_tensor")

    def evaluate(self, input_tensor: Array | None) -> tuple[Array]:
        """The value where column - row lies in the range; elsewhere the input, or 0 without one."""
        self.require_defined()
        self.require_arrays(input_tensor=input_tensor)
        rows, columns = np.indices(self.output_tensor.sizes[-2:])
        diagonal = columns - rows
        filled = (diagonal >= self.diagonal_fill_begin) & (diagonal < self.diagonal_fill_end)
        value = scalar(self.value, self.value_data_type)
        if input_tensor is not None and input_tensor.dtype == bool:
            value = np.bool_(value)
        rest = np.zeros(self.output_tensor.sizes, value.dtype) if input_tensor is None else input_tensor
        return (np.where(filled, value, rest),)


@dataclass(frozen=True)
class OneHot(LayoutDesc):
    """values[1] where the place along the axis is the index, values[0] elsewhere."""

    NAME: ClassVar[str] = "DML_ONE_HOT_OPERATOR_DESC"

    indices_tensor: TensorDesc
    values_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_same_type("values_tensor", "output_tensor")
        yield from self.check_within(self.axis, self.output_tensor)
        sizes = self.output_tensor.sizes
        yield from self.check_sizes("indices_tensor", (*sizes[: self.axis], 1, *sizes[self.axis + 1 :]))

    def evaluate(self, indices_tensor: Array, values_tensor: Array) -> tuple[Array]:
        """Negative indices count from the back; those out of range select nothing."""
        self.require_defined()
        self.require_arrays(indices_tensor=indices_tensor, values_tensor=values_tensor)
        rank, classes = indices_tensor.ndim, self.output_tensor.sizes[self.axis]
        places = np.arange(classes).reshape([-1 if a == self.axis else 1 for a in range(rank)])
        exact = indices_tensor.astype(object)
        hot = ((places == exact) | (places - classes == exact)).astype(bool)
        off, on = values_tensor.reshape(-1)[:2]
        return (np.where(hot, on, off),)


@dataclass(frozen=True)
class NonzeroCoordinates(LayoutDesc):
    """The coordinates of the elements that are not 0, with their number.

    The page wants tensors of one dimension count; the provider's are not (DmlOperatorNonZero.cpp), and DirectML takes
    them, so that this is not demanded here.
    """

    NAME: ClassVar[str] = "DML_NONZERO_COORDINATES_OPERATOR_DESC"

    input_tensor: TensorDesc
    output_count_tensor: TensorDesc
    output_coordinates_tensor: TensorDesc

    def constraints(self) -> Iterator[Violation]:
        yield from self.check_right_aligned("output_count_tensor", (1,))
        sizes, written = self.input_tensor.sizes, self.output_coordinates_tensor.sizes
        effective_rank = len(sizes) - next((at for at, size in enumerate(sizes) if size != 1), len(sizes))
        if not effective_rank <= written[-1] <= len(sizes):
            yield self.violation("coordinates_fit_rank", f"{written[-1]} coordinates for sizes {sizes}")
        yield from self.check_right_aligned("output_coordinates_tensor", (self.input_tensor.element_count, written[-1]))
        for name in ("output_count_tensor", "output_coordinates_tensor"):
            tensor: TensorDesc = getattr(self, name)
            if tensor.data_type is not DataType.UINT32:
                yield self.violation("output_data_type", f"{name} is {tensor.data_type.name} instead of UINT32")
