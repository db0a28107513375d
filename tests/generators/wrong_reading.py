"""Wrong readings of a node: the mistakes that kernels make, each with the outputs that it leads to.

A case detects a reading when the outputs that it leads to are not right: only then do its data show the mistake. The
readings follow from a node; `readings.py` finds those that no case of an operator detects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand

Misread = Callable[[Node], Node | None]
"""The node that a kernel takes this one for; None where the mistake cannot be made with it."""

Change = Callable[[Array], Array]
"""What a kernel makes of a tensor, of the same shape and dtype."""


@dataclass(frozen=True)
class WrongReading:
    """name: the mistake, in words. misread: see `Misread`."""

    name: str
    misread: Misread


def _through(name: str) -> Change:
    kind = ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
    return lambda value: value.astype(kind).astype(value.dtype)


def _saturate(value: Array) -> Array:
    return np.nan_to_num(value, nan=np.nan)


def _drop_sign_of_zero(value: Array) -> Array:
    return np.where(value == 0, np.zeros((), value.dtype), value)


def _flush(value: Array) -> Array:
    tiny = ml_dtypes.finfo(value.dtype).smallest_normal  # type: ignore[no-untyped-call]
    return np.where(np.abs(value) < tiny, np.zeros((), value.dtype), value)


def _drop_nan(value: Array) -> Array:
    return np.where(np.isnan(value), np.zeros((), value.dtype), value)


def _repeat_first_row(value: Array) -> Array:
    return np.broadcast_to(value[:1], value.shape).copy() if value.ndim > 1 else value


def _repeat_first(value: Array) -> Array:
    return np.full_like(value, value.reshape(-1)[0])


def _leave_last(value: Array) -> Array:
    flat = value.reshape(-1).copy()
    flat[-1] = 0
    return flat.reshape(value.shape)


def _leave_tail(value: Array) -> Array:
    flat = value.reshape(-1).copy()
    flat[flat.size // 4 * 4 :] = 0
    return flat.reshape(value.shape)


def _leave_last_row(value: Array) -> Array:
    if value.ndim < 2 or value.shape[0] < 2:
        return value
    changed = value.copy()
    changed[-1] = 0
    return changed


def _exchange_last_axes(value: Array) -> Array:
    return value.swapaxes(-1, -2).reshape(value.shape) if value.ndim > 1 else value


def _exchange_first_axes(value: Array) -> Array:
    return value.swapaxes(0, 1).reshape(value.shape) if value.ndim > 2 else value


def _read_unsigned(value: Array) -> Array:
    """What a kernel sees that takes the bits for those of the unsigned dtype, in the next wider one, saturated."""
    return np.where(value < 0, np.iinfo(value.dtype).max, value).astype(value.dtype)


READ: Mapping[str, tuple[str, Change]] = {
    "its sign is dropped": ("if", np.abs),
    "its bits are unsigned": ("i", _read_unsigned),
    "it goes through float16": ("f", _through("float16")),
    "it goes through bfloat16": ("f", _through("bfloat16")),
    "it goes through float32": ("iuf", _through("float32")),
    "its higher half of bits is dropped": ("iu", lambda value: _drop_high_bits(value)),
    "its fractions are dropped": ("f", np.trunc),
    "NaN is 0": ("f", _drop_nan),
    "infinity is the largest number": ("f", _saturate),
    "denormals are 0": ("f", _flush),
    "the sign of zero is dropped": ("f", _drop_sign_of_zero),
    "its first row stands for all": ("biuf", _repeat_first_row),
    "its first element stands for all": ("biuf", _repeat_first),
    "its last element is not read": ("biuf", _leave_last),
    "its last two axes are exchanged": ("biuf", _exchange_last_axes),
    "its first two axes are exchanged": ("biuf", _exchange_first_axes),
}
"""How an input is misread -> the kinds of dtype of which it may be, and what becomes of it."""

WRITTEN: Mapping[str, tuple[str, Change]] = {
    "its last element is not written": ("biuf", _leave_last),
    "its tail after whole vectors of 4 is not written": ("biuf", _leave_tail),
    "its last row is not written": ("biuf", _leave_last_row),
    "its first row stands for all": ("biuf", _repeat_first_row),
    "it goes through float16": ("f", _through("float16")),
    "it goes through bfloat16": ("f", _through("bfloat16")),
    "it goes through float32": ("iuf", _through("float32")),
    "its higher half of bits is dropped": ("iu", lambda value: _drop_high_bits(value)),
    "its bits are unsigned": ("i", _read_unsigned),
    "NaN is 0": ("f", _drop_nan),
    "infinity is the largest number": ("f", _saturate),
    "denormals are 0": ("f", _flush),
    "the sign of zero is dropped": ("f", _drop_sign_of_zero),
    "its last two axes are exchanged": ("biuf", _exchange_last_axes),
}
"""How an output is miswritten, likewise."""


def _drop_high_bits(value: Array) -> Array:
    bits = value.dtype.itemsize * 4
    if bits < 8:
        return value
    half = np.dtype(f"{value.dtype.kind}{bits // 8}")
    return value.astype(half).astype(value.dtype)


LISTS: Mapping[str, Callable[[Any], Attribute]] = {
    " is reversed": lambda value: value[::-1],
    " is sorted": lambda value: tuple(sorted(value)),
    ": its first element stands for all": lambda value: (value[0],) * len(value),
}
"""How an attribute that is a list is misread."""


def change_array(how: Mapping[str, tuple[str, Change]], name: str, value: Array) -> Array:
    """The array as it is misread or miswritten; itself where the mistake cannot be made with its dtype."""
    kinds, change = how[name]
    return change(value) if value.size and value.dtype.kind in kinds else value


def list_misreadings(node: Node) -> Iterator[WrongReading]:
    """Every mistake of reading that can be made with the node; some of them make no difference to it."""
    for name, value in node.attributes.items():
        yield from _misread_attribute(name, value)
    names = [name for name, value in node.attributes.items() if isinstance(value, int | float)]
    for name, other in pairwise(names):
        yield WrongReading(f"{name} and {other} are exchanged", _exchange_attributes(name, other))
    present = [(index, operand) for index, operand in enumerate(node.inputs) if operand is not None]
    for index, operand in present:
        label = _label(node, index, operand)
        if index:
            yield WrongReading(f"{label} is not seen", _leave_out(index))
        for how, (kinds, _) in READ.items():
            if operand.value.dtype.kind in kinds:
                yield WrongReading(f"{label}: {how}", _read_changed(index, how))
        if operand.parameter and operand.value.ndim == 1 and operand.value.size > 1:
            yield WrongReading(f"{label} is reversed", _change_input(index, lambda value: value[::-1].copy()))
            yield WrongReading(f"{label} is sorted", _change_input(index, np.sort))
    for (left, first), (right, second) in pairwise(present):
        if first.value.dtype == second.value.dtype:
            words = f"{_label(node, left, first)} and {_label(node, right, second)} are exchanged"
            yield WrongReading(words, _exchange_inputs(left, right))


def _label(node: Node, index: int, operand: Operand) -> str:
    """The name of an input; one word for the many of a variadic operator."""
    digits = operand.name.rstrip("0123456789")
    return operand.name if digits == operand.name or len(node.inputs) < 4 or not index else f"{digits}N"


def _misread_attribute(name: str, value: Attribute) -> Iterator[WrongReading]:
    yield WrongReading(f"{name} is not seen", _set_attribute(name, lambda _: None))
    if isinstance(value, int) and "axis" in name:
        yield WrongReading(f"{name}: its sign is dropped", _set_attribute(name, _drop_sign))
    if isinstance(value, tuple) and len(value) > 1 and not isinstance(value[0], str):
        for words, change in LISTS.items():
            yield WrongReading(f"{name}{words}", _set_attribute(name, change))


def _drop_sign(value: Any) -> Attribute:
    return abs(int(value))


def _set_attribute(name: str, change: Callable[[Attribute], Attribute | None]) -> Misread:
    def misread(node: Node) -> Node | None:
        if name not in node.attributes:
            return None
        value = change(node.attributes[name])
        others = {key: kept for key, kept in node.attributes.items() if key != name}
        return replace(node, attributes=others if value is None else {**others, name: value})

    return misread


def _exchange_attributes(name: str, other: str) -> Misread:
    def misread(node: Node) -> Node | None:
        values = node.attributes
        if name not in values or other not in values or type(values[name]) is not type(values[other]):
            return None
        return replace(node, attributes={**values, name: values[other], other: values[name]})

    return misread


def _change_input(index: int, change: Change) -> Misread:
    def misread(node: Node) -> Node | None:
        operand = node.inputs[index] if index < len(node.inputs) else None
        if operand is None or not operand.value.size:
            return None
        operands = list(node.inputs)
        operands[index] = replace(operand, value=change(operand.value))
        return replace(node, inputs=tuple(operands))

    return misread


def _read_changed(index: int, how: str) -> Misread:
    return _change_input(index, lambda value: change_array(READ, how, value))


def _leave_out(index: int) -> Misread:
    def misread(node: Node) -> Node | None:
        if index >= len(node.inputs) or node.inputs[index] is None:
            return None
        operands = (*node.inputs[:index], None, *node.inputs[index + 1 :])
        return replace(node, inputs=operands)

    return misread


def _exchange_inputs(index: int, other: int) -> Misread:
    def misread(node: Node) -> Node | None:
        first, second = (node.inputs[at] if at < len(node.inputs) else None for at in (index, other))
        if first is None or second is None:
            return None
        operands = list(node.inputs)
        operands[index], operands[other] = replace(first, value=second.value), replace(second, value=first.value)
        return replace(node, inputs=tuple(operands))

    return misread
