"""TopK-1, 10, 11 and 24 by sorting each sequence in plain Python, and implementations that are wrong in one way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from tests.mutants.mutant import implemented
from tests.mutants.one_node import RefusedError, parse

Keys = Sequence[Any]


def order_of(keys: Keys, largest: bool) -> list[int]:
    """The indices by key; Python keeps equal keys in their order, with `reverse` too."""
    return sorted(range(len(keys)), key=keys.__getitem__, reverse=largest)


def with_nan_at_an_end(keys: Keys, largest: bool, order: Callable[[Keys, bool], list[int]]) -> list[int]:
    nan = [i for i, key in enumerate(keys) if key != key]
    if not nan:
        return order(keys, largest)
    numbers = [i for i, key in enumerate(keys) if key == key]
    ordered = [numbers[i] for i in order([keys[i] for i in numbers], largest)]
    return nan + ordered if largest else ordered + nan


def check(k: Array, axis: int, shape: tuple[int, ...]) -> None:
    if not -len(shape) <= axis < len(shape):
        raise RefusedError("the axis is out of range")
    if k.shape != (1,):
        raise RefusedError("K must hold one number")
    if not 0 <= k[0] <= shape[axis]:
        raise RefusedError("k is out of range")


@dataclass(frozen=True)
class TopK:
    """Every field is one step of the computation; a sequence is what lies along the axis."""

    default_axis: int = -1
    axis: Callable[[int, int], int] = lambda axis, rank: axis % rank
    k: Callable[[int, int], int] = lambda k, _dim: k
    check: Callable[[Array, int, tuple[int, ...]], None] = check
    largest: Callable[[int], int] = lambda largest: largest
    keys: Callable[[Array], Keys] = lambda sequence: sequence.tolist()
    order: Callable[[Keys, bool], list[int]] = order_of
    nan: Callable[[Keys, bool, Callable[[Keys, bool], list[int]]], list[int]] = with_nan_at_an_end
    selected: Callable[[list[int], bool], list[int]] = lambda order, _sorted: order
    values: Callable[[Array, list[int]], Array] = lambda sequence, order: sequence[order]
    indices: Callable[[list[int], int, int], Sequence[int]] = lambda order, _row, _dim: order
    index_dtype: type = np.int64

    def __call__(self, model: bytes, feeds: Mapping[str, Array]) -> tuple[Array, Array]:
        node = parse(model)
        x, k = node.values(feeds, 2)
        assert x is not None
        if k is None:
            k = np.array([node.attributes["k"]])
        axis = node.attributes.get("axis", self.default_axis)
        largest = bool(self.largest(node.attributes.get("largest", 1)))
        is_sorted = bool(node.attributes.get("sorted", 1))
        self.check(k, axis, x.shape)
        axis = self.axis(axis, x.ndim)
        dim = x.shape[axis]
        count = self.k(int(k[0]), dim)
        moved = np.moveaxis(x, axis, -1)
        rows = moved.reshape(int(np.prod(moved.shape[:-1], dtype=np.int64)), dim)
        values = np.empty((len(rows), count), x.dtype)
        indices = np.empty((len(rows), count), self.index_dtype)
        for row, sequence in enumerate(rows):
            order = self.nan(self.keys(sequence), largest, self.order)[:count]
            order = self.selected(order, is_sorted)
            values[row] = self.values(sequence, order)
            indices[row] = self.indices(order, row, dim)
        shape = (*moved.shape[:-1], count)
        return np.moveaxis(values.reshape(shape), -1, axis), np.moveaxis(indices.reshape(shape), -1, axis)


CORRECT = TopK()


def higher_index_before_lower(keys: Keys, largest: bool) -> list[int]:
    return sorted(range(len(keys)), key=lambda i: (keys[i], i if largest else -i), reverse=largest)


def ascending_then_reversed(keys: Keys, largest: bool) -> list[int]:
    ascending = order_of(keys, False)
    return ascending[::-1] if largest else ascending


def descending_then_reversed(keys: Keys, largest: bool) -> list[int]:
    descending = order_of(keys, True)
    return descending if largest else descending[::-1]


def selection_that_swaps(keys: Keys, largest: bool) -> list[int]:
    """Selection sort: swapping moves an element past its equals."""
    order = list(range(len(keys)))
    for place in range(min(len(order), 5)):
        best = place
        for other in range(place + 1, len(order)):
            a, b = keys[order[other]], keys[order[best]]
            if a > b if largest else a < b:
                best = other
        order[place], order[best] = order[best], order[place]
    return [*order[:5], *sorted(order[5:], key=keys.__getitem__, reverse=largest)]


def as_numbers(sequence: Array) -> Array:
    return sequence.astype(np.float64)


def negated(keys: Array) -> Array:
    with np.errstate(over="ignore"):
        return -keys


def ascending_negated(sequence: Array, largest: bool) -> list[int]:
    return [int(i) for i in np.argsort(negated(sequence) if largest else sequence, kind="stable")]


def bits_as_signed(sequence: Array) -> Keys:
    return sequence.view(sequence.dtype.name.removeprefix("u")).tolist() if sequence.dtype.kind == "u" else sequence


def total_order_bits(sequence: Array) -> Keys:
    """The bits of a float as an integer of the same order, in which -0 stands before +0."""
    if sequence.dtype.kind != "f":
        return sequence.tolist()
    bits = [int(b) for b in sequence.view(f"u{sequence.dtype.itemsize}")]
    top = 1 << (8 * sequence.dtype.itemsize - 1)
    return [float("nan") if v != v else (b | top) if b < top else ~b & (2 * top - 1)
            for b, v in zip(bits, sequence.tolist(), strict=True)]  # fmt: skip


def magnitudes(sequence: Array) -> Keys:
    return [abs(key) for key in sequence.tolist()]


def flushed(sequence: Array) -> Keys:
    if sequence.dtype.kind != "f":
        return sequence.tolist()
    tiny = float(np.finfo(sequence.dtype).tiny)
    return [0.0 if abs(key) < tiny else key for key in sequence.tolist()]


def infinities_as_largest_finite(sequence: Array) -> Keys:
    if sequence.dtype.kind != "f":
        return sequence.tolist()
    most = float(np.finfo(sequence.dtype).max)
    return [key if key != key else max(-most, min(key, most)) for key in sequence.tolist()]


def block_of_1024(keys: Keys, largest: bool) -> list[int]:
    """Only the first 1024 elements compete."""
    return order_of(keys[:1024], largest) + list(range(1024, len(keys)))


def blocks_of_256_not_merged(keys: Keys, largest: bool) -> list[int]:
    """Every block of 256 is sorted; the blocks follow each other."""
    return [
        start + i for start in range(0, len(keys), 256) for i in order_of(keys[start : start + 256], largest)
    ]  # fmt: skip


def padded_to_a_power_of_two_with_0(keys: Keys, largest: bool) -> list[int]:
    size = 1 << max(0, len(keys) - 1).bit_length()
    order = order_of([*keys, *[0] * (size - len(keys))], largest)
    return [min(i, len(keys) - 1) for i in order]


def nan_where_comparisons_leave_it(keys: Keys, largest: bool, order: Callable[[Keys, bool], list[int]]) -> list[int]:
    """Insertion sort: every comparison with NaN is false, so NaN parts the sequence."""
    if all(key == key for key in keys):
        return order(keys, largest)
    inserted: list[int] = []
    for i, key in enumerate(keys):
        at = len(inserted)
        while at and (key > keys[inserted[at - 1]] if largest else key < keys[inserted[at - 1]]):
            at -= 1
        inserted.insert(at, i)
    return inserted


def nan_is_0(keys: Keys, largest: bool, order: Callable[[Keys, bool], list[int]]) -> list[int]:
    return order([0.0 if key != key else key for key in keys], largest)


def nan_by_higher_index(keys: Keys, largest: bool, order: Callable[[Keys, bool], list[int]]) -> list[int]:
    right = with_nan_at_an_end(keys, largest, order)
    nan = [i for i in right if keys[i] != keys[i]]
    numbers = [i for i in right if keys[i] == keys[i]]
    return nan[::-1] + numbers if largest else numbers + nan[::-1]


def nan_becomes_infinity(sequence: Array, order: list[int]) -> Array:
    values = sequence[order]
    return np.where(values != values, np.inf, values).astype(values.dtype) if values.dtype.kind == "f" else values


def denormals_become_0(sequence: Array, order: list[int]) -> Array:
    values = sequence[order]
    if values.dtype.kind != "f":
        return values
    return np.where(np.abs(values) < np.finfo(values.dtype).tiny, values.dtype.type(0), values)


def no_check_of_k(k: Array, axis: int, shape: tuple[int, ...]) -> None:
    check(k[:1] * 0, axis, shape)


def no_check_of_the_axis(k: Array, axis: int, shape: tuple[int, ...]) -> None:
    check(k, axis % len(shape) if shape else axis, shape)


def no_check_of_the_number_of_ks(k: Array, axis: int, shape: tuple[int, ...]) -> None:
    check(k[:1], axis, shape)


def k_as_uint32(k: Array, axis: int, shape: tuple[int, ...]) -> None:
    check(k % 2**32, axis, shape)


HIGHER_INDEX_FIRST = TopK(order=higher_index_before_lower)
"""A mutant that is run as a target, by its name."""

MUTANTS = [
    implemented(
        "TopK",
        "among equals the higher index comes first",
        HIGHER_INDEX_FIRST,
        "TopK-11/float32/ties_largest[initializer]",
    ),
    implemented(
        "TopK",
        "the largest in descending order have their ties reversed",
        TopK(order=ascending_then_reversed),
        "TopK-11/float32/all_equal_largest[initializer]",
    ),
    implemented(
        "TopK",
        "the smallest in ascending order have their ties reversed",
        TopK(order=descending_then_reversed),
        "TopK-11/float32/ties_smallest[initializer]",
    ),
    implemented(
        "TopK",
        "an element that is swapped away passes its equals",
        TopK(order=selection_that_swaps),
        "TopK-11/float32/ties_smallest_whole_axis[initializer]",
    ),
    implemented(
        "TopK",
        "largest = 0 gives the largest",
        TopK(largest=lambda _: 1),
        "TopK-11/float32/smallest_sorted_k_2[initializer]",
    ),
    implemented(
        "TopK",
        "largest and smallest are mixed up",
        TopK(largest=lambda largest: 1 - largest),
        "TopK-11/float32/defaults[initializer]",
    ),
    implemented(
        "TopK",
        "the right elements come in the order of their indices, sorted or not",
        TopK(selected=lambda order, _: sorted(order)),
        "TopK-11/float32/largest_sorted_k_dim[initializer]",
    ),
    implemented(
        "TopK",
        "the right elements come worst first",
        TopK(selected=lambda order, is_sorted: order[::-1] if is_sorted else order),
        "TopK-11/float32/default_attributes_k_6[initializer]",
    ),
    implemented(
        "TopK",
        "sorted = 0 returns the first elements, whatever they are",
        TopK(selected=lambda order, is_sorted: order if is_sorted else list(range(len(order)))),
        "TopK-11/float32/largest_unsorted_k_2[initializer]",
    ),
    implemented(
        "TopK",
        "the last axis, always",
        TopK(axis=lambda _, rank: rank - 1),
        "TopK-11/float32/axis_0_largest[initializer]",
    ),
    implemented(
        "TopK",
        "axis -2 is read as axis 2",
        TopK(axis=lambda axis, rank: abs(axis) % rank),
        "TopK-11/float32/axis_minus_2_largest[initializer]",
    ),
    implemented(
        "TopK",
        "the default of axis is 0",
        TopK(default_axis=0),
        "TopK-11/float32/defaults[initializer]",
    ),
    implemented(
        "TopK",
        "more than four dimensions are not expected",
        TopK(axis=lambda axis, rank: min(3, axis % rank)),
        "TopK-11/float32/rank_8_last_axis[initializer]",
    ),
    implemented(
        "TopK",
        "k may not be the whole axis; it is one less then",
        TopK(k=lambda k, dim: min(k, max(0, dim - 1))),
        "TopK-11/float32/largest_sorted_k_dim[initializer]",
    ),
    implemented(
        "TopK",
        "nothing cannot be selected",
        TopK(k=lambda k, dim: max(k, min(1, dim))),
        "TopK-11/float32/largest_sorted_k_0[initializer]",
    ),
    implemented(
        "TopK",
        "k beyond the axis gives the whole axis instead of an error",
        TopK(check=no_check_of_k, k=lambda k, dim: max(0, min(k, dim))),
        "TopK-11/float32/refused_k_beyond_dim[runtime]",
    ),
    implemented(
        "TopK",
        "k = 2^32 + 1 is taken for 1",
        TopK(check=k_as_uint32, k=lambda k, _: k % 2**32),
        "TopK-11/float32/refused_k_2_to_the_32_plus_1[runtime]",
    ),
    implemented(
        "TopK",
        "K may hold two numbers; the first counts",
        TopK(check=no_check_of_the_number_of_ks),
        "TopK-11/float32/refused_two_ks[runtime]",
    ),
    implemented(
        "TopK",
        "axis 2 of a matrix is axis 0",
        TopK(check=no_check_of_the_axis),
        "TopK-11/float32/refused_axis_at_rank[runtime]",
    ),
    implemented(
        "TopK",
        "integers beyond 2^53 are equal to their neighbours",
        TopK(keys=lambda sequence: as_numbers(sequence).tolist()),
        "TopK-11/int64/beyond_2_53_largest[initializer]",
    ),
    implemented(
        "TopK",
        "values that differ beyond float32's 24 bits are equal",
        TopK(
            keys=lambda sequence: (
                sequence.astype(np.float32) if sequence.dtype.kind == "f" and sequence.itemsize == 8 else sequence
            ).tolist()
        ),
        "TopK-11/float64/beyond_2_53_smallest[initializer]",
    ),
    implemented(
        "TopK",
        "the least integer has no negative, and neither have unsigned ones",
        TopK(keys=lambda sequence: sequence, order=ascending_negated),  # type: ignore[arg-type, return-value]
        "TopK-11/int8/boundary_largest[initializer]",
    ),
    implemented(
        "TopK",
        "the upper half of the unsigned integers is negative",
        TopK(keys=bits_as_signed),
        "TopK-11/uint8/boundary_smallest[initializer]",
    ),
    implemented(
        "TopK",
        "one dtype takes the path of another",
        TopK(keys=lambda sequence: (sequence.view(np.int32) if sequence.dtype == np.uint32 else sequence).tolist()),
        "TopK-11/uint32/boundary_largest[initializer]",
    ),
    implemented(
        "TopK",
        "K is looked for among the initializers only",
        lambda model, feeds: CORRECT(model, {**feeds, "K": np.array([1])} if "K" in feeds else feeds),
        "TopK-11/float32/defaults[runtime]",
    ),
    implemented(
        "TopK",
        "-5 is greater than 3",
        TopK(keys=magnitudes),
        "TopK-11/float32/defaults[initializer]",
    ),
    implemented(
        "TopK",
        "-0 is less than +0",
        TopK(keys=total_order_bits),
        "TopK-11/float32/signed_zeros_largest[initializer]",
    ),
    implemented(
        "TopK",
        "denormals are equal to 0",
        TopK(keys=flushed),
        "TopK-11/float32/denormals_largest_whole_axis[initializer]",
    ),
    implemented(
        "TopK",
        "denormals become 0 on their way out",
        TopK(values=denormals_become_0),
        "TopK-11/float32/boundary_largest_whole_axis[initializer]",
    ),
    implemented(
        "TopK",
        "an infinity and the largest finite number are equal",
        TopK(keys=infinities_as_largest_finite),
        "TopK-11/float32/boundary_largest[initializer]",
    ),
    implemented(
        "TopK",
        "comparisons with NaN are false, so that elements on both of its sides never meet",
        TopK(nan=nan_where_comparisons_leave_it),
        "TopK-11/float32/nan_largest[initializer]",
    ),
    implemented(
        "TopK",
        "NaN stands among the numbers, where 0 would",
        TopK(nan=nan_is_0),
        "TopK-11/float32/nan_smallest_whole_axis[initializer]",
    ),
    implemented(
        "TopK",
        "among several NaN the higher index comes first",
        TopK(nan=nan_by_higher_index),
        "TopK-11/float32/all_nan_largest[initializer]",
    ),
    implemented(
        "TopK",
        "NaN becomes infinity on its way out",
        TopK(values=nan_becomes_infinity),
        "TopK-11/float32/all_nan_smallest[initializer]",
    ),
    implemented(
        "TopK",
        "a thread group takes 1024 elements and the rest of the axis is not looked at",
        TopK(order=block_of_1024),
        "TopK-11/float32/length_1025_distinct_largest[initializer]",
    ),
    implemented(
        "TopK",
        "blocks of 256 are sorted and never merged",
        TopK(order=blocks_of_256_not_merged),
        "TopK-11/float32/length_257_distinct_largest[initializer]",
    ),
    implemented(
        "TopK",
        "the axis is filled up with 0 to a power of two, and the 0 are selected",
        TopK(order=padded_to_a_power_of_two_with_0),
        "TopK-11/float32/length_33_distinct_largest[initializer]",
    ),
    implemented(
        "TopK",
        "an index counts from the start of the tensor",
        TopK(indices=lambda order, row, dim: [row * dim + i for i in order]),
        "TopK-11/float32/defaults[initializer]",
    ),
    implemented(
        "TopK",
        "the first index is 1",
        TopK(indices=lambda order, _row, _dim: [i + 1 for i in order]),
        "TopK-11/float32/dim_1[initializer]",
    ),
    implemented(
        "TopK",
        "the indices come in ascending order, the values do not",
        TopK(indices=lambda order, _row, _dim: sorted(order)),
        "TopK-11/float32/largest_sorted_k_dim[initializer]",
    ),
    implemented(
        "TopK",
        "Indices has the wrong dtype",
        replace(CORRECT, index_dtype=np.int32),
        "TopK-11/float32/defaults[initializer]",
    ),
]
