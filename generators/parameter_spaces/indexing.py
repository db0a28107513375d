"""GatherElements and ScatterElements: axes, indices of both types and signs, reductions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.declaration.parameter_space import ANY_VALUE, ParameterSpace, Parts, Values
from epcheck.generators.node import Attribute

LENGTHS = (7, 16, 17, 33, 65, 129, 257, 1025, 4097)


def spaces() -> Iterator[ParameterSpace]:
    """In a stable order."""
    gathering, scattering = _spaces()
    yield replace(gathering, extremes=ANY_VALUE, only_moves=True)
    yield scattering


def _spaces() -> Iterator[ParameterSpace]:
    sizes = {"outer": 2, "length": 5, "inner": 3}
    borders = {"length": LENGTHS, "inner": LENGTHS}
    common = {"axis": (1, 0, 2, -1), "index": ("int64", "int32")}
    yield ParameterSpace(
        "GatherElements",
        sizes,
        _gathered,
        {**common, "indices": ("permuted", "negative", "repeated", "fewer", "more")},
        borders,
        ("outer", "inner"),
    )
    yield ParameterSpace(
        "ScatterElements",
        sizes,
        _scattered,
        {
            **common,
            "indices": ("permuted", "negative", "fewer", "repeated"),
            "reduction": ("none", "add", "mul", "max", "min"),
        },
        borders,
        ("outer", "inner"),
        lambda values: values["indices"] != "repeated" or values["reduction"] != "none",
    )


def _shape(values: Values) -> tuple[int, ...]:
    return tuple(values[name] for name in ("outer", "length", "inner"))


def _indices(values: Values, rng: np.random.Generator) -> Array:
    """Indices along the axis; without `repeated` and `more` no two elements of a line have the same."""
    shape, axis, kind = _shape(values), values["axis"], values["indices"]
    length = shape[axis]
    lines = rng.permuted(np.broadcast_to(np.arange(length), (*np.delete(shape, axis), length)), axis=-1)
    if kind == "negative":
        lines = lines - length
    elif kind == "repeated":
        lines = lines // 2
    elif kind == "fewer":
        lines = lines[..., : length // 2]
    elif kind == "more":
        lines = np.concatenate([lines, lines[..., ::-1]], axis=-1)
    return np.ascontiguousarray(np.moveaxis(lines, -1, axis)).astype(values["index"])


def _gathered(values: Values, rng: np.random.Generator) -> Parts:
    data = np.arange(1, 1 + int(np.prod(_shape(values))), dtype=np.float32).reshape(_shape(values))
    return Parts((data, _indices(values, rng)), {"axis": values["axis"]}, (1,))


def _scattered(values: Values, rng: np.random.Generator) -> Parts:
    """Small integers, of which every order of a reduction gives the same."""
    indices = _indices(values, rng)
    data, updates = (rng.integers(-4, 5, shape).astype(np.float32) for shape in (_shape(values), indices.shape))
    attributes: dict[str, Attribute] = {"axis": values["axis"], "reduction": values["reduction"]}
    return Parts((data, indices, updates), attributes, (1,))
