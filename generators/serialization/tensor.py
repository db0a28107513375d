"""Tensors of models, serialized: most of them hold a few numbers, for which making a message object takes long."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epcheck.generators.array import Array
from epcheck.generators.serialization import wire

NAME, RAW_DATA = 8, 9
"""Fields of TensorProto."""


def tensor(array: Array, name: str) -> bytes:
    """A TensorProto, as `numpy_helper.from_array` makes it."""
    if array.dtype.kind in "biuf" and array.dtype.isnative and sys.byteorder == "little":
        return (
            _type_of_tensor(array.dtype, array.shape)
            + wire.field(NAME, name.encode())
            + wire.field(RAW_DATA, array.tobytes())
        )
    made: bytes = numpy_helper.from_array(array, name).SerializeToString(deterministic=True)
    return made


@lru_cache(maxsize=4096)
def _type_of_tensor(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """A TensorProto that has a type and dimensions, and nothing else."""
    made: bytes = onnx.TensorProto(dims=shape, data_type=helper.np_dtype_to_tensor_dtype(dtype)).SerializeToString()
    return made
