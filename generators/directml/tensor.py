"""DML_TENSOR_DATA_TYPE and DML_BUFFER_TENSOR_DESC."""

import math
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from epcheck.generators.array import Array

MAX_RANK = 8
"""DML_TENSOR_DIMENSION_COUNT_MAX1: the most dimensions that a tensor can be described with."""


class DataType(Enum):
    """DML_TENSOR_DATA_TYPE; a value is the C value (ne-directml-dml_tensor_data_type)."""

    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11
    UINT4 = 12
    INT4 = 13

    @classmethod
    def of(cls, dtype: npt.DTypeLike) -> "DataType":
        """The type in which DirectML carries `dtype`; bool travels as UINT8.

        Raises ValueError for a dtype that DirectML has no type for, such as bfloat16 or a string.
        """
        return _carrier(np.dtype(dtype))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of the same values. Raises ValueError for UINT4 and INT4, which numpy does not have."""
        if self in (DataType.UINT4, DataType.INT4):
            raise ValueError(f"numpy has no dtype for {self.name}")
        return np.dtype(self.name.lower())


@cache
def _carrier(dtype: np.dtype[Any]) -> DataType:
    try:
        return DataType.UINT8 if dtype.name == "bool" else DataType[dtype.name.upper()]
    except KeyError:
        raise ValueError(f"DirectML has no tensor data type for numpy's {dtype.name}") from None


@dataclass(frozen=True, slots=True)
class TensorDesc:
    """DML_BUFFER_TENSOR_DESC: the type and layout of one tensor (ns-directml-dml_buffer_tensor_desc).

    `strides` count elements, one for each dimension, and 0 repeats the same elements along a dimension
    (broadcasting); None is densely packed, last dimension fastest. Flags, total size and alignment are left out: they
    say how a buffer is bound, not what an operator computes.

    Raises ValueError for what the C struct cannot express: a negative size or stride, or not as many strides as sizes.
    """

    data_type: DataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if min((0, *self.sizes, *(self.strides or ()))) < 0:
            raise ValueError(f"sizes {self.sizes} and strides {self.strides} must not be negative")
        if self.strides is not None and len(self.strides) != len(self.sizes):
            raise ValueError(f"{len(self.strides)} strides {self.strides} for {len(self.sizes)} sizes {self.sizes}")

    @classmethod
    def of(cls, array: Array, sizes: tuple[int, ...] | None = None) -> "TensorDesc":
        """The packed description of an array; with `sizes` that of another tensor of its dtype."""
        return cls(DataType.of(array.dtype), array.shape if sizes is None else sizes)

    @property
    def dimension_count(self) -> int:
        return len(self.sizes)

    @property
    def element_count(self) -> int:
        """The number of elements that an operator sees, repeated ones included."""
        return math.prod(self.sizes)

    @property
    def buffer_element_count(self) -> int:
        """The least number of elements a buffer needs to hold the tensor, as DMLCalcBufferTensorSize counts."""
        if self.strides is None or self.element_count == 0:
            return self.element_count
        return 1 + sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))

    def view(self, buffer: Array) -> Array:
        """The tensor that lies in `buffer` (one dimension, dtype `data_type`), as a read-only array of shape `sizes`.

        Raises ValueError if the buffer has another dtype or rank, or ends before the tensor does.
        """
        if buffer.ndim != 1 or DataType.of(buffer.dtype) is not self.data_type:
            raise ValueError(
                f"a buffer of {self.data_type.name} has one dimension; got {buffer.dtype} of shape {buffer.shape}"
            )
        if buffer.size < self.buffer_element_count:
            raise ValueError(
                f"sizes {self.sizes} with strides {self.strides} need {self.buffer_element_count} elements; "
                f"the buffer has {buffer.size}"
            )
        if self.strides is None:
            dense = buffer[: self.element_count].reshape(self.sizes)
            dense.flags.writeable = False
            return dense
        byte_strides = tuple(stride * buffer.strides[0] for stride in self.strides)
        return np.lib.stride_tricks.as_strided(buffer, self.sizes, byte_strides, writeable=False)
