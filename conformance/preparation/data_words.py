"""What the elements of a tensor have about them that a provider may get wrong, as a few words that a record keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from epcheck.generators.array import Array, is_of_ml_dtypes

TIES_RANK, TIES_SIZE = 6, 1 << 14
"""Tensors with more dimensions or elements are not searched for ties."""


def describe_data(value: Array) -> tuple[str, ...]:
    """`NaN`, `inf`, `-inf`, `-0`, `denormal`, `negative`, `positive`, `zero`, `fraction` (no integer), `negative
    fraction`, `half` (a fraction of one half exactly), `lowest` and `highest` (of an integer dtype), `true`, `false`,
    `2^K` and `least 2^K` (the greatest powers of two that are no greater than the largest, and the smallest finite
    magnitude but 0), `positive 2^K` (the same of the largest positive value, where a negative one is larger), and `ties
    AXIS`, `highest twice AXIS` and `lowest twice AXIS` (some value, the largest and the smallest are there twice along
    that axis): those that apply.
    """
    kind = value.dtype.kind
    if not value.size or kind not in "fiubV":
        return ()
    if kind == "b":
        return tuple(word for word, has in (("true", value.any()), ("false", not value.all())) if has)
    if is_of_ml_dtypes(value.dtype):
        value = value.astype(np.float32)
    words = [*(_float_words(value) if value.dtype.kind == "f" else _integer_words(value)), *_ties(value)]
    return tuple(words)


def _float_words(value: Array) -> Iterator[str]:
    finite = np.isfinite(value)
    if not finite.all():
        yield from _special_words(value)
        value = value[finite]
    if not value.size:
        return
    magnitude = np.abs(value)
    zero = magnitude == 0
    negative = value < 0
    if negative.any():
        yield "negative"
    if (is_positive := value > 0).any():
        yield "positive"
    if zero.any():
        yield "zero"
        if np.signbit(value[zero]).any():
            yield "-0"
    if (magnitude < np.finfo(value.dtype).tiny)[~zero].any():
        yield "denormal"
    parts = np.modf(magnitude)[0]
    if parts.any():
        yield "fraction"
        if parts[negative].any():
            yield "negative fraction"
    if (parts == 0.5).any():
        yield "half"
    if not zero.all():
        for begin, most in (("", magnitude.max()), ("least ", magnitude[~zero].min())):
            yield f"{begin}2^{_power(most)}"
        if is_positive.any() and (most := _power(value.max())) < _power(magnitude.max()):
            yield f"positive 2^{most}"


def _power(number: object) -> int:
    """The exponent of the greatest power of two that is no greater than a positive number."""
    return int(np.frexp(float(number))[1]) - 1  # type: ignore[arg-type]


def _special_words(value: Array) -> Iterator[str]:
    if np.isnan(value).any():
        yield "NaN"
    if np.isposinf(value).any():
        yield "inf"
    if np.isneginf(value).any():
        yield "-inf"


def _integer_words(value: Array) -> Iterator[str]:
    limits = np.iinfo(value.dtype)
    low, high = int(value.min()), int(value.max())
    if low < 0:
        yield "negative"
    if high > 0:
        yield "positive"
    if not value.all():
        yield "zero"
    if low == limits.min and low < 0:
        yield "lowest"
    if high == limits.max:
        yield "highest"
    if largest := max(-low, high):
        nearest = [int(value[value > 0].min()) if high > 0 else 0, -int(value[value < 0].max()) if low < 0 else 0]
        yield f"2^{largest.bit_length() - 1}"
        yield f"least 2^{min(each for each in nearest if each).bit_length() - 1}"
        if high > 0 and high.bit_length() < largest.bit_length():
            yield f"positive 2^{high.bit_length() - 1}"


def _ties(value: Array) -> Iterator[str]:
    if value.ndim > TIES_RANK or value.size > TIES_SIZE:
        return
    for axis in range(value.ndim):
        before = (slice(None),) * axis
        ordered = np.sort(value, axis=axis)
        same = ordered[*before, 1:] == ordered[*before, :-1]
        if same.any():
            yield f"ties {axis}"
            if same[*before, -1].any():
                yield f"highest twice {axis}"
            if same[*before, 0].any():
                yield f"lowest twice {axis}"


def compare_data(first: Array, second: Array) -> tuple[str, ...]:
    """Of the pairs of elements of two broadcast inputs: `signs` where the signs of some differ, `equal`, `less` and
    `greater` where some are so; nothing where they have different dtypes or do not broadcast."""
    if first.dtype != second.dtype or first.dtype.kind not in "fiu" or is_of_ml_dtypes(first.dtype):
        return ()
    try:
        left, right = np.broadcast_arrays(first, second)
    except ValueError:
        return ()
    found = {"signs": (left < 0) != (right < 0), "equal": left == right, "less": left < right, "greater": left > right}
    return tuple(word for word, where in found.items() if where.any())


def compare_with_numbers(value: Array, numbers: Mapping[str, float]) -> Iterator[str]:
    """`equal to NAME`, `above NAME` and `below NAME` where some element of a tensor of numbers is equal to, above or
    below the number of that name."""
    if not value.size or value.dtype.kind not in "fiu" or is_of_ml_dtypes(value.dtype):
        return
    for name, number in numbers.items():
        exact = value.dtype.type(number) if value.dtype.kind == "f" else number
        found = {"equal to": value == exact, "above": value > exact, "below": value < exact}
        yield from (f"{word} {name}" for word, where in found.items() if where.any())
