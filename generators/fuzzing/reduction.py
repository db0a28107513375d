"""Smaller nodes than a given one: fewer elements, dimensions, inputs, attributes, and plainer values.

Each step keeps the inputs fitting each other where it can; where it cannot, the oracle refuses the node, and the step
is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node

Measure = tuple[int, int, int, int, int, int]

FEW = 64
"""Elements of an input up to which single elements are made plain."""


MOST_PARTS, MOST_TIMES = 1025, 8
"""Sizes that are made smaller together with their multiples, and how many times as large these are at most: eight are
the biases of an LSTM."""


def measure(node: Node) -> Measure:
    """How large a node is: dimensions beyond 3, elements, dimensions, inputs and attributes, and how odd its values
    are; a smaller node is one that compares less."""
    arrays = [operand.value for operand in node.inputs if operand is not None]
    ranks = [array.ndim for array in arrays]
    numbers = sum(_oddness(value) for value in node.attributes.values())
    return (
        sum(max(rank - 3, 0) for rank in ranks),
        sum(array.size for array in arrays) + sum(max(array.shape, default=0) == 0 for array in arrays),
        sum(ranks),
        len(arrays) + len(node.outputs),
        len(node.attributes) * 100 + numbers,
        sum(_plainness(array) for array in arrays),
    )


def _oddness(value: Attribute) -> int:
    if isinstance(value, tuple):
        return sum(map(_oddness, value)) + len(value)
    if isinstance(value, int | float):
        return min(int(abs(value)), 9) if np.isfinite(value) else 9
    return 0


def _plainness(array: Array) -> int:
    """0 for each 0, 1 for a 1, 2 for another small integer, 3 for all the rest."""
    if array.dtype.kind == "b":
        return int(array.sum())
    if array.dtype.kind not in "iuf":
        return 0
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        small = (np.abs(wide) < 10) & (wide == np.trunc(wide))
        return int(3 * array.size - (small * 1).sum() - (small & (wide == 1)).sum() - 2 * (small & (wide == 0)).sum())


def smaller(node: Node) -> Iterator[Node]:
    """Nodes that are one step smaller, the largest steps first. Nodes with surroundings are not made smaller."""
    if node.surroundings:
        yield from _plainer(node)
        return
    size = measure(node)
    for make in (_shorter, _reduce_parts, _reduce_shares, _reduce_rank, _drop_inputs, _drop_outputs,
                 _drop_attributes, _shorter_lists, _smaller_attributes, _plainer):  # fmt: skip
        for found in make(node):
            if measure(found) < size:
                yield found


def _arrays(node: Node) -> dict[int, Array]:
    return {place: operand.value for place, operand in enumerate(node.inputs) if operand is not None}


def _replace_arrays(node: Node, arrays: Mapping[int, Array]) -> Node:
    operands = tuple(
        replace(operand, value=np.ascontiguousarray(arrays[place]).reshape(arrays[place].shape))
        if operand is not None and place in arrays
        else operand
        for place, operand in enumerate(node.inputs)
    )
    return replace(node, inputs=operands)


def _shorter(node: Node) -> Iterator[Node]:
    """Every dimension of one size cut to its first elements wherever that size stands, or to its last ones; then one
    dimension of one input alone."""
    arrays = _arrays(node)
    found = sorted({size for array in arrays.values() for size in array.shape if size > 1}, reverse=True)
    for size in found:
        for count in dict.fromkeys((1, 2, size // 2, size - 1)):
            if 0 < count < size:
                for kept in (slice(count), slice(-count, None)):
                    yield _cut_arrays(node, arrays, lambda _place, _axis, old: old == size, kept)  # noqa: B023
    for place, array in arrays.items():
        for axis, size in enumerate(array.shape):
            for count in dict.fromkeys((1, 2, size // 2, size - 1)):
                if 0 < count < size:
                    yield _cut_arrays(node, arrays, lambda p, a, _old: (p, a) == (place, axis), slice(count))  # noqa: B023


def _reduce_parts(node: Node) -> Iterator[Node]:
    """A size and its multiples made smaller together, with the attributes that are that size: of a recurrent operator
    the states have a dimension of it, the weights one of three or four times as much, and hidden_size says it."""
    arrays = _arrays(node)
    named = {value for value in node.attributes.values() if isinstance(value, int) and not isinstance(value, bool)}
    found = {size for array in arrays.values() for size in array.shape} | named
    for size in sorted((size for size in found if 1 < size < MOST_PARTS), reverse=True):
        for count in dict.fromkeys((1, 2, size - 1)):
            if count < size:
                attributes = {n: count if v == size and v in named else v for n, v in node.attributes.items()}
                yield replace(_keep_parts(node, arrays, size, count), attributes=attributes)


def _reduce_shares(node: Node) -> Iterator[Node]:
    """A list whose numbers are as many in all as a dimension has elements, as `split` is: one element for each."""
    arrays = _arrays(node)
    for place, array in arrays.items():
        total = int(array.sum()) if array.dtype.kind in "iu" and array.ndim == 1 and 0 < array.size <= FEW else 0
        if place and array.size < total:
            cut = _cut_arrays(node, arrays, lambda p, _axis, size: p == 0 and size == total, slice(array.size))  # noqa: B023
            yield _replace_arrays(cut, {place: np.ones_like(array)})


def _keep_parts(node: Node, arrays: Mapping[int, Array], size: int, count: int) -> Node:
    """With `count` of each `size` elements along every dimension that holds a few times as many."""
    cut = {
        place: array[tuple(_slice_kept(length, size, count) for length in array.shape)]
        for place, array in arrays.items()
    }
    return _replace_arrays(node, cut)


def _slice_kept(length: int, size: int, count: int) -> slice:
    times = length // size
    return slice(times * count) if length and not length % size and times <= MOST_TIMES else slice(None)


def _cut_arrays(node: Node, arrays: Mapping[int, Array], chosen: Callable[[int, int, int], bool], kept: slice) -> Node:
    cut = {
        place: array[tuple(kept if chosen(place, a, s) else slice(None) for a, s in enumerate(array.shape))]
        for place, array in arrays.items()
    }
    return _replace_arrays(node, cut)


def _reduce_rank(node: Node) -> Iterator[Node]:
    """One dimension taken out: of all inputs of that rank, with what the parameters and attributes say of it; of one
    input alone; and all dimensions made one."""
    arrays = _arrays(node)
    if any(array.ndim > 1 for array in arrays.values()):
        yield _replace_arrays(node, {place: array.reshape(-1) for place, array in arrays.items() if array.ndim > 1})
    ranks = sorted({array.ndim for array in arrays.values() if array.ndim}, reverse=True)
    for rank in ranks:
        for axis in range(rank):
            kept = {p: _drop_dimension(a, axis) if a.ndim == rank else a for p, a in arrays.items()}
            yield _replace_arrays(node, kept)
            listed = {p: np.delete(a, axis) if _lists(node, p, rank) else a for p, a in kept.items()}
            yield _drop_list_elements(_replace_arrays(node, listed), rank, axis)
            spatial = rank - 2
            if axis >= 2:
                yield _drop_list_elements(_replace_arrays(node, kept), spatial, axis - 2)
    for place, array in arrays.items():
        for axis in range(array.ndim):
            if array.shape[axis] == 1:
                yield _replace_arrays(node, {place: array.reshape(array.shape[:axis] + array.shape[axis + 1 :])})


def _drop_dimension(array: Array, axis: int) -> Array:
    """The first part of the array along the axis; the array itself where there is none."""
    return array[(slice(None),) * axis + (0,)] if array.shape[axis] else array


def _lists(node: Node, place: int, rank: int) -> bool:
    """Whether an input has an element for each dimension of the data."""
    operand = node.inputs[place]
    return operand is not None and place > 0 and operand.value.shape == (rank,) and operand.value.dtype.kind in "iuf"


def _drop_list_elements(node: Node, count: int, index: int) -> Node:
    """Without one element of each attribute that has one, or two, for each dimension."""

    def shorter(value: Attribute) -> Attribute:
        if isinstance(value, tuple) and count and len(value) in (count, 2 * count):
            return _leave_out(value, (index, index + count))
        return value

    return replace(node, attributes={name: shorter(value) for name, value in node.attributes.items()})


def _leave_out(value: tuple[Any, ...], left_out: tuple[int, ...]) -> tuple[Any, ...]:
    """The list without the elements at these places."""
    return tuple(item for place, item in enumerate(value) if place not in left_out)


def _drop_inputs(node: Node) -> Iterator[Node]:
    for place in reversed(range(1, len(node.inputs))):
        if node.inputs[place] is not None:
            left = [*node.inputs[:place], None, *node.inputs[place + 1 :]]
            while left and left[-1] is None:
                left.pop()
            yield replace(node, inputs=tuple(left))
    if len(node.inputs) > 2:
        yield replace(node, inputs=node.inputs[:-1])


def _drop_outputs(node: Node) -> Iterator[Node]:
    if len(node.outputs) > 1:
        yield replace(node, outputs=node.outputs[:-1])


def _drop_attributes(node: Node) -> Iterator[Node]:
    for name in node.attributes:
        yield replace(node, attributes={key: value for key, value in node.attributes.items() if key != name})


def _shorter_lists(node: Node) -> Iterator[Node]:
    """One element less of each list of parameters of the same length: starts, ends, axes and steps go together."""
    arrays = _arrays(node)
    lists = {p: a for p, a in arrays.items() if p > 0 and a.ndim == 1 and a.size > 1}
    for length in sorted({a.size for a in lists.values()}, reverse=True):
        for index in range(min(length, 9)):
            yield _replace_arrays(node, {p: np.delete(a, index) for p, a in lists.items() if a.size == length})
    for name, value in node.attributes.items():
        if isinstance(value, tuple) and len(value) > 1:
            for index in range(len(value)):
                yield replace(node, attributes={**node.attributes, name: _leave_out(value, (index,))})


def _smaller_attributes(node: Node) -> Iterator[Node]:
    for name, value in node.attributes.items():
        for other in _smaller_values(value):
            yield replace(node, attributes={**node.attributes, name: other})


def _smaller_values(value: Attribute) -> Iterator[Attribute]:
    if isinstance(value, bool | str | np.ndarray):
        return
    if isinstance(value, int):
        yield from (other for other in (0, 1, 2, value // 2) if abs(other) < abs(value))
    elif isinstance(value, float):
        yield from (other for other in (0.0, 1.0, 2.0) if abs(other) < abs(value))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            if isinstance(item, int | float):
                for other in _smaller_values(item):
                    yield (*value[:index], other, *value[index + 1 :])


def _plainer(node: Node) -> Iterator[Node]:
    """Inputs of zeros, of ones, of small integers; then single elements."""
    for place, array in _arrays(node).items():
        if array.dtype.kind not in "biuf" or not array.size:
            continue
        with np.errstate(all="ignore"):
            counted = (np.arange(array.size) % 8 + 1).reshape(array.shape)
            choices: list[Array] = [np.zeros_like(array), np.ones_like(array), counted.astype(array.dtype)]
            if array.dtype.kind == "f":
                choices += [np.trunc(array), np.sign(array)]
        for choice in choices:
            if not np.array_equal(choice, array):
                yield _replace_arrays(node, {place: choice})
    for place, array in _arrays(node).items():
        if array.dtype.kind in "biuf" and array.size <= FEW:
            yield from _plainer_elements(node, place, array)


def _plainer_elements(node: Node, place: int, array: Array) -> Iterator[Node]:
    flat = array.reshape(-1)
    for index in range(flat.size):
        for plain in (0, 1, 2):
            if flat[index] != plain:
                changed = flat.copy()
                changed[index] = plain
                yield _replace_arrays(node, {place: changed.reshape(array.shape)})
