"""Operators along an axis: reductions, Softmax and its like, ArgMax, CumSum, TopK, normalisations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.declaration.parameter_space import (
    ANY_NUMBER,
    ANY_VALUE,
    ParameterSpace,
    Parts,
    Values,
)

LENGTHS = (7, 16, 17, 33, 129, 257, 513, 4097, 65_537)
"""Of an axis whose elements are neighbours."""

STRIDED = (17, 257, 1025)
"""Of an axis whose elements are not."""

SUBSETS = ((1,), (0, 2), (1, 3), (0, 3), (3, 1), (1, 2), (0, 1, 3), (0, 2, 3), (-1, -3))
"""Of the axes of rank 4, in any order: neighbours, not neighbours, from both ends."""

NO_INFINITY = ("nan", *ANY_NUMBER)

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def spaces() -> Iterator[ParameterSpace]:
    """In a stable order."""
    borders = {"length": LENGTHS, "strided": STRIDED}
    along: dict[str, Any] = {"sizes": {"outer": 2, "length": 5, "strided": 0, "inner": 1}, "borders": borders}
    for name in REDUCTIONS:
        yield ParameterSpace(
            f"Reduce{name}",
            node=partial(_reduction, name),
            choices={"axes": (None, *SUBSETS), "keepdims": (1, 0)},
            empty=("outer", "inner"),
            extremes=ANY_VALUE,
            **along,
        )
    for name in ("ArgMax", "ArgMin"):
        choices = {"axis": (1, 0, -1, 2), "keepdims": (1, 0), "select_last_index": (0, 1)}
        yield ParameterSpace(
            name, node=_along_axis, choices=choices, empty=("outer", "inner"), extremes=ANY_VALUE[1:], **along
        )
    for name in ("Softmax", "LogSoftmax", "Hardmax"):
        axes = {"axis": (1, 0, -1, 2)}
        defined = ("minus_inf", *ANY_NUMBER)
        yield ParameterSpace(name, node=_along_axis, choices=axes, empty=("outer", "inner"), extremes=defined, **along)
    choices = {"axis": (1, 0, -1, 2), "exclusive": (0, 1), "reverse": (0, 1)}
    yield ParameterSpace(
        "CumSum", node=_cumulative, choices=choices, empty=("outer", "inner"), extremes=ANY_VALUE, **along
    )
    choices = {"axis": (1, 0, -1, 2), "largest": (1, 0), "sorted": (1, 0), "k": (1, 2)}
    yield ParameterSpace(
        "TopK", node=_selected, choices=choices, empty=("outer", "inner"), extremes=ANY_VALUE[1:], **along
    )
    choices = {"axis": (1, 0, -1, 2), "p": (2, 1)}
    yield ParameterSpace(
        "LpNormalization", node=_along_axis, choices=choices, empty=("outer", "inner"), extremes=NO_INFINITY, **along
    )
    yield ParameterSpace(
        "LayerNormalization",
        {"outer": 2, "length": 5},
        _layer,
        {"axis": (-1, 1, -2), "bias": (True, False), "mean": (False, True), "deviation": (False, True)},
        {"length": LENGTHS},
        ("outer",),
        extremes=("inf", *NO_INFINITY),
    )


def _shape(values: Values) -> tuple[int, ...]:
    """[outer, length, inner], where the axis is the second one; with `strided` that is its length, beside 3 others."""
    if values["strided"]:
        return (2, values["strided"], 3)
    return (values["outer"], values["length"], values["inner"])


def _reduction(name: str, values: Values, rng: np.random.Generator) -> Parts:
    shape = _shape(values) if values["axes"] is None else (2, 3, 4, 5)
    data = rng.uniform(0.5, 2, shape) if name == "LogSum" else rng.uniform(-2, 2, shape)
    if name == "Prod":
        data = 1 + data / max(shape[1], 1)
    axes = np.array((1,) if values["axes"] is None else values["axes"], np.int64)
    return Parts((data.astype(np.float32), axes), {"keepdims": values["keepdims"]}, (1,))


def _data(values: Values, rng: np.random.Generator) -> Array:
    """Of the shape for the second axis; of a fixed one of rank 3 for the others."""
    shape = _shape(values) if values["axis"] == 1 else (3, 4, 5)
    return rng.uniform(-2, 2, shape).astype(np.float32)


def _attributes(values: Values, *names: str) -> dict[str, int]:
    return {name: values[name] for name in names if name in values}


def _along_axis(values: Values, rng: np.random.Generator) -> Parts:
    return Parts((_data(values, rng),), _attributes(values, "axis", "keepdims", "select_last_index", "p"))


def _cumulative(values: Values, rng: np.random.Generator) -> Parts:
    axis = np.array(values["axis"], np.int64)
    return Parts((_data(values, rng), axis), _attributes(values, "exclusive", "reverse"), (1,))


def _selected(values: Values, rng: np.random.Generator) -> Parts:
    """Values that all differ, so that their order is defined."""
    data = _data(values, rng)
    data = rng.permutation(np.arange(data.size, dtype=np.float32)).reshape(data.shape)
    return Parts((data, np.array([values["k"]], np.int64)), _attributes(values, "axis", "largest", "sorted"), (1,))


def _layer(values: Values, rng: np.random.Generator) -> Parts:
    shape = (values["outer"], 3, values["length"])
    scale = rng.uniform(0.5, 2, shape[values["axis"] :]).astype(np.float32)
    bias = rng.uniform(-1, 1, scale.shape).astype(np.float32) if values["bias"] else None
    data = rng.uniform(-2, 2, shape).astype(np.float32)
    inputs = (data, scale, bias) if values["bias"] else (data, scale)
    outputs = (True, values["mean"], values["deviation"])
    return Parts(inputs, {"axis": values["axis"]}, (1, 2) if values["bias"] else (1,), outputs)
