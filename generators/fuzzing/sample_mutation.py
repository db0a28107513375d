"""Samples that nobody wrote: those of an operator, mixed with each other and changed field by field.

What a field may hold is learnt from the samples themselves. A string, an enumeration, a kind of data is always one that
some sample has, since the generator knows no others; sizes, indices, axes and numbers are changed freely.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from epcheck.generators.case import Sample
from epcheck.generators.fuzzing import field_mutation, sizes

S = TypeVar("S", bound=Sample)

FIXED = frozenset(
    {
        "name", "every_dtype", "every_binding", "spread", "rank", "refused", "broken", "unchecked", "since", "until",
        "only", "kinds", "dtypes", "core", "int32", "constant", "among", "pair", "sources", "targets", "narrower",
        "only_cast",
    }
)  # fmt: skip
"""Fields that say to which versions and dtypes a sample applies, or that it must be refused; not what it is."""

SIZES = frozenset(
    {
        "shape", "shapes", "x", "w", "a", "b", "c", "slope", "image", "out", "bias_shape", "sizes", "batch", "sequence",
        "hidden", "heads", "head", "kv_heads", "skip_shape", "scale_shape", "leading", "like", "axis_shape", "weight",
    }
)  # fmt: skip
"""Fields whose integers are sizes."""

STEPS = (1, 1, 1, 2, 2, 3)
"""How many changes a sample gets."""


def mutate_sample(sample: S, samples: Sequence[S], random: Random) -> S:
    """The sample, one of `samples`, changed in one to three ways; the operator may give no meaning to it."""
    for _ in range(random.choice(STEPS)):
        sample = _step(sample, samples, random)
    worth = {f.name: True for f in dataclasses.fields(sample) if f.name in ("every_dtype", "every_binding", "spread")}
    return dataclasses.replace(sample, name="drawn", **worth)


def _step(sample: S, samples: Sequence[S], random: Random) -> S:
    names = [f.name for f in dataclasses.fields(sample) if f.name not in FIXED]
    if not names:
        return sample
    match random.choice(("mix", "mix", "change", "change", "change", "size", "rank", "square")):
        case "size":
            return _replace_size(sample, names, random)
        case "rank":
            return _change_rank(sample, names, random)
        case "square":
            return _equalize_sizes(sample, names, random)
        case "mix":
            return _mix_samples(sample, random.choice(samples), random.choice(names), random)
    name = random.choice(names)
    value = field_mutation.change_value(getattr(sample, name), random, name in SIZES)
    return dataclasses.replace(sample, **{name: value})


def _mix_samples(sample: S, other: S, name: str, random: Random) -> S:
    """The sample with a field of another one; where it has attributes, sometimes with those of both."""
    if not hasattr(other, name):
        return sample
    own, theirs = getattr(sample, name), getattr(other, name)
    if random.random() < 0.5:
        if field_mutation.is_attributes(own) and field_mutation.is_attributes(theirs):
            theirs = tuple({**dict(own), **dict(theirs)}.items())
        elif isinstance(own, dict) and isinstance(theirs, dict):
            theirs = {**own, **theirs}
    return dataclasses.replace(sample, **{name: theirs})


def _replace_size(sample: S, names: Sequence[str], random: Random) -> S:
    """The sample with one size replaced by another wherever it stands, so that inputs keep fitting each other."""
    found = sorted({size for name in names for size in _sizes_of(getattr(sample, name))})
    if not found:
        return sample
    old, new = random.choice(found), sizes.size(random)
    return _change_shapes(sample, names, lambda shape: tuple(new if size == old else size for size in shape))


def _equalize_sizes(sample: S, names: Sequence[str], random: Random) -> S:
    """The sample with one size wherever it has one above 1, so that what a wrong axis gives has the right shape."""
    size = random.choice((2, 3, 4, 5, 8))
    return _change_shapes(sample, names, lambda shape: tuple(size if own > 1 else own for own in shape))


def _change_rank(sample: S, names: Sequence[str], random: Random) -> S:
    """The sample with one dimension more or less in each of its longest shapes."""
    longest = max((len(getattr(sample, n)) for n in names if field_mutation.is_sizes(getattr(sample, n))), default=0)
    if not longest:
        return sample
    place, size, more = random.randrange(longest), sizes.size(random), random.random() < 0.6

    def change(shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(shape) != longest:
            return shape
        return (*shape[:place], size, *shape[place:]) if more else (*shape[:place], *shape[place + 1 :])

    return _change_shapes(sample, names, change)


def _change_shapes(sample: S, names: Sequence[str], change: Any) -> S:
    shaped = {
        name: field_mutation.map_shapes(getattr(sample, name), change)
        for name in names
        if name in SIZES or name == "arguments"
    }
    return dataclasses.replace(sample, **shaped)


def _sizes_of(value: Any) -> set[int]:
    if field_mutation.is_sizes(value):
        return set(value)
    if isinstance(value, tuple) and not field_mutation.is_attributes(value):
        return {size for item in value for size in _sizes_of(item)}
    return set()
