"""Descriptions on both sides of what DirectML demands: one that is valid, and neighbours that differ in one thing.

`validate()` says of each what the pages say; DirectML says for itself. Where the two disagree, a page or a description
is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from epcheck.generators.directml.operator_desc import OperatorDesc, c_name
from epcheck.generators.directml.tensor import DataType, TensorDesc

DATA_TYPES = tuple(data_type for data_type in DataType if data_type not in (DataType.UINT4, DataType.INT4))
"""Those that a tensor of the same buffer may have instead: numpy has no dtype for the others."""


@dataclass(frozen=True)
class Neighbour:
    """A description that differs from a valid one in `what`: `OutputTensor FLOAT64`, `Axis -1`."""

    what: str
    description: OperatorDesc


def neighbours(valid: OperatorDesc) -> Iterator[Neighbour]:
    """The description itself, then with each tensor of another type, size and number of dimensions, without each that
    may be left out, and with each number beyond what it may be."""
    yield Neighbour("as it is", valid)
    for member in fields(valid):
        value = getattr(valid, member.name)
        if isinstance(value, TensorDesc):
            for what, tensor in _tensors(value):
                yield Neighbour(f"{c_name(member.name)} {what}", replace(valid, **{member.name: tensor}))
            if "None" in str(member.type):
                yield Neighbour(f"{c_name(member.name)} left out", _replace_member(valid, member.name, None))
        elif member.init and isinstance(value, tuple) and value and all(type(item) is int for item in value):
            for what, changed in _integers(value):
                yield Neighbour(f"{c_name(member.name)} {what}", _replace_member(valid, member.name, changed))
        elif member.init and type(value) is int:
            for number in (0, value + 1, 2**31 - 1):
                yield Neighbour(f"{c_name(member.name)} {number}", _replace_member(valid, member.name, number))
        elif member.init and type(value) is float:
            for real in (0.0, -1.0, float("inf")):
                yield Neighbour(f"{c_name(member.name)} {real:g}", _replace_member(valid, member.name, real))


def _tensors(tensor: TensorDesc) -> Iterator[tuple[str, TensorDesc]]:
    for data_type in DATA_TYPES:
        if data_type is not tensor.data_type:
            yield data_type.name, replace(tensor, data_type=data_type)
    packed = replace(tensor, strides=None)
    yield "of one more dimension", replace(packed, sizes=(1, *tensor.sizes))
    yield "of nine dimensions", replace(packed, sizes=(*(1,) * (9 - len(tensor.sizes)), *tensor.sizes))
    for axis in range(len(tensor.sizes)):
        sizes = tensor.sizes
        yield (
            f"one larger in dimension {axis}",
            replace(packed, sizes=(*sizes[:axis], sizes[axis] + 1, *sizes[axis + 1 :])),
        )
    yield (
        "of 2^32 elements",
        replace(packed, sizes=(*(1,) * (len(tensor.sizes) - 2), 1 << 16, 1 << 16)[-len(tensor.sizes) :]),
    )
    yield "of size 0", replace(packed, sizes=(*tensor.sizes[:-1], 0))


def _integers(values: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "of zeros", (0,) * len(values)
    yield "one larger", tuple(value + 1 for value in values)


def _replace_member(valid: OperatorDesc, name: str, value: Any) -> OperatorDesc:
    changed: OperatorDesc = replace(valid, **{name: value})
    return changed
