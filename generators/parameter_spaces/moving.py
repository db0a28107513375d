"""Operators that move data: Transpose, Concat, Split, Slice, Gather, Tile, Expand, Pad."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.declaration.parameter_space import ANY_VALUE, ParameterSpace, Parts, Values

LENGTHS = (7, 16, 17, 33, 65, 129, 257, 1025, 4097)
EDGES = ((0, 0), (1, 0), (0, 2), (3, 1))
"""Of pads, before and after."""


def spaces() -> Iterator[ParameterSpace]:
    """In a stable order."""
    for space in _spaces():
        # The usual indices of Gather take the first and the last element of a row.
        values = ("nan", "inf", "minus_zero") if space.operator == "Gather" else ANY_VALUE
        yield replace(space, extremes=values, only_moves=True)


def _spaces() -> Iterator[ParameterSpace]:
    sizes = {"outer": 2, "length": 5, "inner": 3}
    every = {"length": LENGTHS, "inner": LENGTHS}
    orders = tuple(order for order in permutations(range(4)) if order != (0, 1, 2, 3))
    yield ParameterSpace(
        "Transpose", sizes, _transposed, {"perm": (None, (1, 0, 2), (0, 2, 1), (2, 0, 1), *orders)}, every, tuple(sizes)
    )
    axes = {"axis": (1, 0, 2, -1)}
    yield ParameterSpace("Concat", sizes, _joined, {**axes, "count": (2, 1, 3, 5)}, every, ("outer", "length", "inner"))
    steps = {"start": (0, 1, -2, -100), "end": (100, -1, 3), "step": (1, 2, -1, -2)}
    yield ParameterSpace("Slice", sizes, _sliced, {**axes, **steps}, every, ("outer", "inner"))
    picks = {"indices": ((4, 0, -1), (), (0,), ((1, 2), (0, 1)))}
    yield ParameterSpace("Gather", sizes, _gathered, {**axes, **picks}, every, ("outer", "inner"))
    repeats = {"first": (1, 2), "second": (2, 1, 3), "third": (1, 4)}
    yield ParameterSpace("Tile", sizes, _tiled, repeats, every, ("outer", "length", "inner"))
    pads = {"mode": ("constant", "edge", "reflect"), "first": EDGES[:2], "second": EDGES[::-1], "third": EDGES}
    wide = {
        "ones": ("outer", "length", "inner", "outer_inner", "all", ""),
        "shape": ("same", "ones", "shorter", "longer"),
    }
    yield ParameterSpace("Expand", sizes, _expanded, wide, every, ("outer", "length", "inner"), _is_expand)
    parts = {**axes, "parts": ("uneven", "equal", "single", "many"), "given": ("split", "")}
    yield ParameterSpace("Split", sizes, _split, parts, every, ("outer", "inner"), _is_split)
    yield ParameterSpace("Pad", sizes, _padded, pads, every, (), _is_pad)


def _ramp(values: Values) -> Array:
    shape = tuple(values[name] for name in ("outer", "length", "inner"))
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _transposed(values: Values, _: np.random.Generator) -> Parts:
    perm, data = values["perm"], _ramp(values)
    if perm is None:
        return Parts((data,))
    data = data if len(perm) == 3 else data.reshape(2, 5, 1, 3)
    return Parts((data,), {"perm": perm})


def _joined(values: Values, _: np.random.Generator) -> Parts:
    """Inputs of different sizes along the axis, where that is not the dimension which is empty or large."""
    data = _ramp(values)
    parts = [data + 1000 * i for i in range(values["count"])]
    parts[-1] = np.take(parts[-1], range(0, data.shape[values["axis"]], 2), values["axis"])
    return Parts(tuple(parts), {"axis": values["axis"]})


def _sliced(values: Values, _: np.random.Generator) -> Parts:
    parameters = (np.array([values[name]], np.int64) for name in ("start", "end", "axis", "step"))
    return Parts((_ramp(values), *parameters), {}, (1, 2, 3, 4))


def _gathered(values: Values, _: np.random.Generator) -> Parts:
    data, axis = _ramp(values), values["axis"]
    indices = np.array(values["indices"], np.int64)
    return Parts((data, np.minimum(indices, data.shape[axis] - 1)), {"axis": axis}, (1,))


def _tiled(values: Values, _: np.random.Generator) -> Parts:
    return Parts((_ramp(values), np.array([values[name] for name in ("first", "second", "third")], np.int64)), {}, (1,))


def _edges(values: Values) -> tuple[tuple[int, int], ...]:
    return tuple(values[name] for name in ("first", "second", "third"))


def _is_pad(values: Values) -> bool:
    """Reflection has no more elements than the axis less one."""
    return values["mode"] != "reflect" or all(max(e) < size for e, size in zip(_edges(values), (2, 5, 3), strict=True))


def _padded(values: Values, _: np.random.Generator) -> Parts:
    edges = _edges(values)
    pads = np.array([begin for begin, _ in edges] + [end for _, end in edges], np.int64)
    constant = (np.array(-7, np.float32),) if values["mode"] == "constant" else ()
    return Parts((_ramp(values), pads, *constant), {"mode": values["mode"]}, (1, 2)[: 1 + len(constant)])


def _is_expand(values: Values) -> bool:
    """Where all sizes of data are 1, none is more than that of the shape."""
    return bool(values["ones"] != "all" or values["shape"] != "ones")


def _expanded(values: Values, _: np.random.Generator) -> Parts:
    """ones: the sizes of data that are 1 and repeated. shape: as long as data is, with ones where data has more,
    without its first dimension, or with one more."""
    full, ones = _ramp(values), values["ones"]
    axes = tuple(axis for axis, name in enumerate(("outer", "length", "inner")) if name in ones or ones == "all")
    data = full[tuple(slice(0, 1) if axis in axes else slice(None) for axis in range(3))]
    shape = [size if axis in axes or values["shape"] != "ones" else 1 for axis, size in enumerate(full.shape)]
    shape = {"shorter": shape[1:], "longer": [2, *shape]}.get(values["shape"], shape)
    return Parts((data, np.array(shape, np.int64)), {}, (1,))


PARTS = {"uneven": (2, 3, 1), "equal": (2, 2, 2), "single": (6,), "many": (1,) * 6}
"""How an axis of six elements is split."""


def _is_split(values: Values) -> bool:
    """Without lengths the parts are equal; the number of outputs says how many."""
    return values["given"] == "split" or values["parts"] in ("equal", "single", "many")


def _split(values: Values, _: np.random.Generator) -> Parts:
    """The axis has six elements, or a border size, which is split into three parts. num_outputs stands for lengths."""
    shape, axis, sizes = [values[name] for name in ("outer", "length", "inner")], values["axis"], PARTS[values["parts"]]
    if shape[axis] in (2, 3, 5):
        shape[axis] = sum(sizes)
    else:
        third = shape[axis] // 3
        sizes = (third, shape[axis] - 2 * third, third)
    data = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
    outputs = (True,) * len(sizes)
    if values["given"] == "split":
        return Parts((data, np.array(sizes, np.int64)), {"axis": axis}, (1,), outputs)
    return Parts((data,), {"axis": axis, "num_outputs": len(sizes)}, (), outputs)
