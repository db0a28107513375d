"""What a node is, as a set of aspects: words such as `rank of A is 3` that designs combine in pairs and triples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.schema import dtype_name
from epcheck.generators.truth import Outputs, Truth

MOST_VALUES = 12
"""Integers of a parameter input that are looked at one by one."""


def describe_aspects(node: Node, dtypes: Sequence[str], binding: str, truth: Truth) -> frozenset[str]:
    """Every aspect of the node. dtypes: of the varied type constraints."""
    return frozenset(_list_aspects(node, dtypes, binding, truth))


def _list_aspects(node: Node, dtypes: Sequence[str], binding: str, truth: Truth) -> Iterator[str]:
    yield from (f"dtype {index} {dtype}" for index, dtype in enumerate(dtypes))
    yield f"version {node.since_version}"
    yield f"binding {binding}"
    for name, value in node.attributes.items():
        yield f"{name} is there"
        yield from (f"{name} {word}" for word in _describe_attribute(value))
    results = [output.value for output in truth.outputs] if isinstance(truth, Outputs) else []
    target = results[0].shape if results else None
    for index, operand in enumerate(node.inputs):
        if operand is None:
            yield f"no input {index}"
        elif not (node.surroundings is None and operand.name[-1:].isdigit() and index > 3):
            yield from (f"{operand.name} {word}" for word in _describe_operand(operand, target))
    yield f"{sum(bool(name) for name in node.outputs)} outputs"
    for index, value in enumerate(results[:2]):
        yield from (f"output {index} {word}" for word in (*_describe_sizes(value), *_describe_numbers(value)))


def _describe_attribute(value: Attribute) -> Iterator[str]:
    match value:
        case int() | str():
            yield f"is {value}" if isinstance(value, str) or abs(value) < 5 else _describe_sign(value)
        case float():
            yield f"is {value}" if value in (0.0, 1.0, -1.0) else _describe_sign(value)
        case tuple():
            yield from _describe_list(value)
        case np.ndarray():
            yield from _describe_sizes(value)


def _describe_sign(value: float) -> str:
    return "is above 0" if value > 0 else "is below 0" if value < 0 else "is 0"


def _describe_list(values: Sequence[Any]) -> Iterator[str]:
    yield f"has {min(len(values), 5)} elements"
    numbers = [value for value in values if isinstance(value, int | float | np.number)]
    if not numbers:
        return
    if min(numbers) < 0:
        yield "has one below 0"
    if 0 in numbers:
        yield "has a 0"
    if len(numbers) > 1:
        yield "has equal ones" if len(set(numbers)) == 1 else "has different ones"
        yield "ascends" if list(numbers) == sorted(numbers) else "does not ascend"
    if sorted(numbers) == list(range(len(numbers))):
        inverse = [numbers.index(index) for index in range(len(numbers))]
        yield "is its own inverse" if inverse == list(numbers) else "is not its own inverse"


def _describe_operand(operand: Operand, target: tuple[int, ...] | None) -> Iterator[str]:
    value = operand.value
    yield "is there"
    yield f"is {dtype_name(value.dtype)}"
    yield from _describe_sizes(value)
    if operand.parameter and value.size <= MOST_VALUES and value.dtype.kind in "iu":
        yield from _describe_list(value.reshape(-1).tolist())
    else:
        yield from _describe_numbers(value)
    if target is not None and not operand.parameter:
        yield from _describe_broadcast(value.shape, target)


def _describe_sizes(value: Array) -> Iterator[str]:
    yield f"has {value.ndim} dimensions"
    yield f"has up to {_round_up(value.size, (0, 1, 63, 1023))} elements"
    if value.ndim > 1:
        if value.shape[0] == 1:
            yield "has one row"
        if 1 in value.shape[1:-1]:
            yield "has an inner size of 1"
        if len(set(value.shape)) == 1:
            yield "has equal sizes"
        elif len(sizes := [size for size in value.shape if size > 1]) > len(set(sizes)):
            yield "has two equal sizes"
    if value.ndim:
        last = value.shape[-1]
        multiple = next(number for number in (4, 2, 1) if last % number == 0)
        yield f"has rows of {'1' if last == 1 else f'a multiple of {multiple}'}"
        yield f"has rows up to {_round_up(last, (16, 64))}"


def _round_up(number: float, steps: Sequence[int]) -> str:
    """The first of the steps that is no less; `any` beyond them."""
    return next((str(step) for step in steps if number <= step), "any")


def _describe_numbers(value: Array) -> Iterator[str]:
    if value.dtype.kind not in "iufV" or not value.size or value.dtype.names or value.dtype.itemsize > 8:
        return
    with np.errstate(all="ignore"):
        flat = np.asarray(value, np.float64).reshape(-1)
        if np.isnan(flat).any():
            yield "has NaN"
        if np.isinf(flat).any():
            yield "has infinities"
        if (flat == 0).any():
            yield "has zeros"
        if (flat < 0).any():
            yield "has values below 0"
        if flat.size > 1 and bool((flat == flat[0]).all()):
            yield "has equal values"
        elif value.ndim > 1 and value.shape[0] > 1 and bool((value == value[:1]).all()):
            yield "has equal rows"
        largest = np.abs(flat[np.isfinite(flat)]).max(initial=0.0)
        yield f"is up to {_round_up(largest, (1, 16, 256, 65_536))}"
        if value.dtype.kind != "f" or not math.isfinite(largest):
            return
        yield "has fractions" if (np.mod(flat[np.isfinite(flat)], 1) != 0).any() else "has no fractions"


def _describe_broadcast(shape: tuple[int, ...], target: tuple[int, ...]) -> Iterator[str]:
    if shape == target:
        yield "is as the output"
    elif not shape:
        yield "is a scalar"
    elif len(shape) < len(target):
        yield "has fewer dimensions than the output"
    elif len(shape) == len(target):
        spread = [index for index, (own, size) in enumerate(zip(shape, target, strict=True)) if own == 1 and size != 1]
        if spread:
            is_last = spread[-1] == len(target) - 1
            yield f"is spread {'along the first' if spread[0] == 0 else 'along the last' if is_last else 'inside'}"
    if shape != target and _fits_otherwise(shape, target):
        yield "would fit along other dimensions"


def _fits_otherwise(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether what is not 1 in the shape could as well be spread along other dimensions of the output."""
    first = next((index for index, size in enumerate(shape) if size != 1), None)
    if first is None:
        return False
    last = max(index for index, size in enumerate(shape) if size != 1)
    core, own = shape[first : last + 1], len(target) - len(shape) + first
    places = range(len(target) - len(core) + 1)
    return any(
        place != own and all(size in (1, other) for size, other in zip(core, target[place:], strict=False))
        for place in places
    )
