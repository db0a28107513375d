"""Cheap algorithms: how a provider may read the inputs of a node in a way that is nearly right.

A kernel that was written for another type reads what it is fed through that type: integers of 64 bits as their lower
half, unsigned ones as signed, floats by way of float16. It is right for most values, and a case shows it only where its
data tells the two apart. Each algorithm changes the data inputs of a node; the provider's answer is then the truth of
the changed node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node


@dataclass(frozen=True)
class CheapAlgorithm:
    """A way of reading inputs. does: what it does, in words. dtypes: numpy names of the inputs that it is about. read:
    gives what the provider reads of an array, in its dtype and shape."""

    name: str
    does: str
    dtypes: tuple[str, ...]
    read: Callable[[Array], Array]


def _read_through(dtype: Any) -> Callable[[Array], Array]:
    def read(value: Array) -> Array:
        with np.errstate(all="ignore"):
            passed = value.astype(dtype)
            if value.dtype.kind not in "iu" or passed.dtype.kind != "f":
                return passed.astype(value.dtype)
            limit = np.iinfo(value.dtype).max  # rounded up by every float that does not hold it
            beyond = passed >= passed.dtype.type(limit)
            return np.where(beyond, limit, np.where(beyond, 0, passed).astype(value.dtype)).astype(value.dtype)

    return read


def _replace_nan(value: Array) -> Array:
    return np.where(np.isnan(value), value.dtype.type(0), value)


def _drop_sign_of_zero(value: Array) -> Array:
    return np.where(value == 0, value.dtype.type(0), value)


def _saturate(value: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.clip(value, -65504, 65504).astype(value.dtype)


ALGORITHMS = (
    CheapAlgorithm("float16", "reads floats by way of float16", ("float32", "float64"), _read_through(np.float16)),
    CheapAlgorithm(
        "float32", "reads them by way of float32", ("float64", "int32", "uint32"), _read_through(np.float32)
    ),
    CheapAlgorithm(
        "float64", "reads integers of 64 bits by way of float64", ("int64", "uint64"), _read_through(np.float64)
    ),
    CheapAlgorithm("lower_half", "reads the lower half of 64 bits", ("int64",), _read_through(np.int32)),
    CheapAlgorithm("lower_half_unsigned", "reads the lower half of 64 bits", ("uint64",), _read_through(np.uint32)),
    CheapAlgorithm("lower_byte", "reads the lower byte", ("int16", "int32"), _read_through(np.int8)),
    CheapAlgorithm("lower_byte_unsigned", "reads the lower byte", ("uint16", "uint32"), _read_through(np.uint8)),
    CheapAlgorithm("nan_is_0", "reads NaN as 0", ("float16", "float32", "float64"), _replace_nan),
    CheapAlgorithm("zero_has_no_sign", "reads -0 as 0", ("float16", "float32", "float64"), _drop_sign_of_zero),
    CheapAlgorithm("early_saturation", "ends at 65,504", ("float32", "float64"), _saturate),
)
"""What providers are known to do with data that a kernel was not written for."""


def readings(node: Node) -> Iterator[tuple[CheapAlgorithm, str, Node]]:
    """Each algorithm that changes a data input of the node: with the dtype of the inputs that it changes, and the node
    as it reads them. Inputs that say how to compute (`parameter`) stay."""
    for algorithm in ALGORITHMS:
        for dtype in algorithm.dtypes:
            operands = tuple(
                replace(o, value=algorithm.read(o.value))
                if o is not None and not o.parameter and o.value.dtype.name == dtype
                else o
                for o in node.inputs
            )
            if any(
                changed is not None and own is not None and changed.value.tobytes() != own.value.tobytes()
                for own, changed in zip(node.inputs, operands, strict=True)
            ):
                yield algorithm, dtype, replace(node, inputs=operands)
