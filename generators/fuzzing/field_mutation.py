"""Changing one value of a sample by the kind of thing that it is: a size, an index, a list of axes, attributes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np

from epcheck.generators.fuzzing import sizes

MOST_ELEMENTS = 9
"""The longest list that is made longer: one more than the most dimensions that DirectML has."""


def change_value(value: Any, random: Random, is_size: bool) -> Any:
    """The value with one thing changed; itself where there is nothing to change. is_size: its integers are sizes."""
    match value:
        case bool() | np.bool_():
            return not value
        case int():
            return sizes.size(random) if is_size else sizes.integer(value, random)
        case float():
            return sizes.number(value, random)
        case tuple() if is_attributes(value):
            return tuple(_change_mapping(dict(value), random).items())
        case tuple():
            return _change_tuple(value, random, is_size)
        case np.ndarray():
            return _change_array(value, random)
        case Mapping():
            return _change_mapping(value, random)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _change_dataclass(value, random)
    return value


def is_attributes(value: Any) -> bool:
    """Whether a value of a sample is a list of (attribute, value)."""
    return (
        isinstance(value, tuple)
        and bool(value)
        and all(isinstance(v, tuple) and len(v) == 2 and isinstance(v[0], str) for v in value)
    )


def is_sizes(value: Any) -> bool:
    """Whether a value may be a shape: a tuple of integers, none of them negative."""
    return isinstance(value, tuple) and all(type(v) is int and v >= 0 for v in value)


def _change_tuple(value: tuple[Any, ...], random: Random, is_size: bool) -> tuple[Any, ...]:
    items = list(value)
    if not items:
        return (sizes.size(random),) if is_size else value
    place = random.randrange(len(items))
    match random.choice(("change", "change", "change", "drop", "repeat", "swap", "reverse")):
        case "change":
            items[place] = change_value(items[place], random, is_size)
        case "drop":
            del items[place]
        case "repeat" if len(items) < MOST_ELEMENTS:
            items.insert(place, items[place])
        case "swap":
            other = random.randrange(len(items))
            items[place], items[other] = items[other], items[place]
        case "reverse":
            items.reverse()
    return tuple(items)


def _change_mapping(value: Mapping[str, Any], random: Random) -> Mapping[str, Any]:
    if not value:
        return value
    key = random.choice(list(value))
    if random.random() < 0.15:
        return {name: kept for name, kept in value.items() if name != key}
    return {**value, key: change_value(value[key], random, is_size=False)}


def _change_array(value: np.ndarray[Any, Any], random: Random) -> np.ndarray[Any, Any]:
    if not value.size or value.dtype.kind not in "biuf":
        return value
    flat = value.copy().reshape(-1)
    place = random.randrange(flat.size)
    if value.dtype.kind in "iu":
        limits = np.iinfo(value.dtype)
        flat[place] = min(max(sizes.integer(int(flat[place]), random), limits.min), limits.max)
    elif value.dtype.kind == "b":
        flat[place] = not flat[place]
    else:
        flat[place] = sizes.number(float(flat[place]), random)
    return flat.reshape(value.shape)


def _change_dataclass(value: Any, random: Random) -> Any:
    field = random.choice(dataclasses.fields(value))
    kept = getattr(value, field.name)
    return dataclasses.replace(value, **{field.name: change_value(kept, random, field.name == "shape")})


def map_shapes(value: Any, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Any:
    """The value with `change` applied to every shape in it."""
    if is_sizes(value):
        return change(value) if value else value
    if isinstance(value, tuple) and not is_attributes(value):
        return tuple(map_shapes(item, change) for item in value)
    if isinstance(value, Mapping):
        return {
            key: map_shapes(item, change) if dataclasses.is_dataclass(item) else item for key, item in value.items()
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "shape"):
        return dataclasses.replace(value, shape=map_shapes(value.shape, change))
    return value
