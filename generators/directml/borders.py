"""Descriptions on both sides of what DirectML demands: one that is valid, and neighbours that differ in one thing.

`validate()` says of each what the pages say; DirectML says for itself. Where the two disagree, a page or a description
is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any

from epcheck.generators import suite
from epcheck.generators.case import Lowering
from epcheck.generators.directml.operator_desc import OperatorDesc, c_name
from epcheck.generators.directml.tensor import DataType, TensorDesc

LOOKED_AT = 1000
"""Cases of an ONNX operator's version among which DirectML operators are looked for that none before them has."""

DATA_TYPES = tuple(one for one in DataType if one not in (DataType.UINT4, DataType.INT4))


@dataclass(frozen=True)
class Neighbour:
    """A description that differs from a valid one in `what`: `OutputTensor FLOAT64`, `Axis -1`."""

    what: str
    description: OperatorDesc


def lowerings() -> Iterator[Lowering]:
    """A lowering of each DirectML operator that one of the suite's cases becomes, and as many more as it takes to have
    each of its tensors in one of them."""
    seen: set[tuple[str, str]] = set()
    for operator in suite.all_operators().values():
        for case in islice(operator.cases(), LOOKED_AT):
            found = case.build().lowering
            if found is not None and not (there := _tensors_of(found.description)) <= seen:
                seen |= there
                yield found


def _tensors_of(description: OperatorDesc) -> set[tuple[str, str]]:
    """The tensors that are there, those of an array under one name, each with its operator."""
    there = (name for name, tensor in description.tensors().items() if tensor is not None)
    return {(description.NAME, name.partition("[")[0]) for name in there}


def neighbours(valid: OperatorDesc) -> Iterator[Neighbour]:
    """The description itself, then with each tensor of another type, size and number of dimensions, without each that
    may be left out, and with each number beyond what it may be."""
    yield Neighbour("as it is", valid)
    for one in fields(valid):
        value = getattr(valid, one.name)
        if isinstance(value, TensorDesc):
            for what, tensor in _tensors(value):
                yield Neighbour(f"{c_name(one.name)} {what}", replace(valid, **{one.name: tensor}))
            if "None" in str(one.type):
                yield Neighbour(f"{c_name(one.name)} left out", _replaced(valid, one.name, None))
        elif one.init and isinstance(value, tuple) and value and all(type(item) is int for item in value):
            for what, changed in _integers(value):
                yield Neighbour(f"{c_name(one.name)} {what}", _replaced(valid, one.name, changed))
        elif one.init and type(value) is int:
            for number in (0, value + 1, 2**31 - 1):
                yield Neighbour(f"{c_name(one.name)} {number}", _replaced(valid, one.name, number))
        elif one.init and type(value) is float:
            for real in (0.0, -1.0, float("inf")):
                yield Neighbour(f"{c_name(one.name)} {real:g}", _replaced(valid, one.name, real))


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


def _replaced(valid: OperatorDesc, name: str, value: Any) -> OperatorDesc:
    changed: OperatorDesc = replace(valid, **{name: value})
    return changed
