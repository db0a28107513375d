"""GridSample (16, 20, 22): the DML EP runs a shader of its own, so there is no DirectML operator to lower to.

Sources: the operator pages; what they say of borders is that a location outside is first moved onto the border or
reflected by it, and only then interpolated. With cubic and border, PyTorch and ONNX Runtime move each element that is
read instead, and so does the truth; from two elements beyond a border both are the same. The truth samples in float64
at the exact grid values; the bound is what a coordinate in the dtype of the grid, or float32, and weights and sums in
the dtype of X may lose (`interpolation`). Locations that rounding could move over a threshold (half-way for nearest,
the border for cubic) and NaN or infinite ones, of which the pages say nothing, have no sample; nor have cubic locations
less than two elements beyond a border (`_settle_locations`) and integers whose interpolated value is not whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from epcheck.generators import data, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate, output, unit_of
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.undefined_sample import (
    FLOATS,
    NOWHERE,
    Answer,
    UndefinedSample,
    UndefinedSamples,
    ramp,
    strange_positions,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families.contrib_twin import make_twin
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.oracle_math.interpolation import COORDINATE_ROUNDINGS, FLOAT32_UNIT, LINEAR, Kernel, cubic
from epcheck.generators.truth import Exact, Output, Outputs, Refusal, Truth

DECLARES = ("GridSample", "com.microsoft::GridSample")

MODES = ("nearest", "linear", "cubic")
PADDINGS = ("zeros", "border", "reflection")
OLD_NAMES = {"linear": "bilinear", "cubic": "bicubic"}
"""The names of GridSample-16, which knows images of two dimensions only."""

CUBIC_A = -0.75


@dataclass(frozen=True, kw_only=True)
class GridSampleSample(Sample):
    """shape: of X. points: where the grid looks, see `_points`. out: the spatial sizes of the grid.

    mode, padding, align: None leaves the attribute out. values: of X, `distinct` or `multiples` of 16.
    """

    shape: tuple[int, ...] = (2, 3, 4, 6)
    out: tuple[int, ...] = (5, 7)
    points: str = "around"
    mode: str | None = None
    padding: str | None = None
    align: int | None = None
    values: str = "distinct"
    broken: str = ""


def samples() -> Iterator[GridSampleSample]:
    yield GridSampleSample(name="defaults", every_dtype=True)
    yield from _combinations()
    yield from _ties()
    yield from _shapes()
    yield from _more_dimensions()
    yield from _dtypes()
    yield from map(expect_refusal, _list_refused())


def _combinations() -> Iterator[GridSampleSample]:
    for mode, padding, align, points in product(MODES, PADDINGS, (0, 1), ("inside", "around", "far", "corners")):
        on_a_threshold = (
            points == "corners" and align == 0 and (mode == "nearest" or (mode, padding) == ("cubic", "border"))
        )
        if not on_a_threshold:
            yield GridSampleSample(
                name=f"{mode}_{padding}_{'corners_aligned' if align else 'not_aligned'}_{points}",
                mode=mode,
                padding=padding,
                align=align,
                points=points,
                every_dtype=points == "around"
                and align == 1
                and (mode, padding) in (("nearest", "border"), ("cubic", "zeros")),
            )
    for mode in MODES:
        yield GridSampleSample(name=f"{mode}_alone", mode=mode)
    for padding in PADDINGS:
        yield GridSampleSample(name=f"{padding}_alone", padding=padding)
    yield GridSampleSample(name="align_corners_alone", align=1)


def _ties() -> Iterator[GridSampleSample]:
    """Locations half-way between two elements, exact in every float dtype: nearest takes the even index."""
    for padding, align in product(PADDINGS, (0, 1)):
        yield GridSampleSample(
            name=f"nearest_ties_{padding}_{'corners_aligned' if align else 'not_aligned'}",
            shape=(1, 2, 9, 5) if align else (1, 2, 8, 4),
            out=(6, 6),
            points="ties",
            mode="nearest",
            padding=padding,
            align=align,
            every_dtype=padding == "zeros" and not align,
        )


def _shapes() -> Iterator[GridSampleSample]:
    for name, shape, out in (
        ("one_pixel", (1, 1, 1, 1), (3, 3)),
        ("one_row", (1, 2, 1, 7), (3, 3)),
        ("one_output", (2, 3, 4, 6), (1, 1)),
        ("many_channels", (1, 65, 3, 3), (2, 3)),
        ("more_than_1024", (1, 1, 5, 5), (33, 37)),
        ("large_image", (1, 1, 61, 67), (6, 6)),
    ):
        for mode in MODES:
            yield GridSampleSample(name=f"{mode}_{name}", shape=shape, out=out, mode=mode, padding="border")
    yield GridSampleSample(name="no_output", out=(0, 3))
    yield GridSampleSample(name="batch_0", shape=(0, 3, 4, 6))


def _more_dimensions() -> Iterator[GridSampleSample]:
    for mode, padding, align in product(MODES, PADDINGS, (0, 1)):
        for name, shape, out in (("3d", (2, 2, 3, 4, 5), (2, 3, 4)), ("1d", (2, 3, 7), (9,))):
            yield GridSampleSample(
                name=f"{name}_{mode}_{padding}_{'corners_aligned' if align else 'not_aligned'}",
                shape=shape,
                out=out,
                mode=mode,
                padding=padding,
                align=align,
            )


def _dtypes() -> Iterator[GridSampleSample]:
    for padding in PADDINGS:
        yield GridSampleSample(
            name=f"linear_whole_numbers_{padding}",
            shape=(1, 2, 4, 8),
            out=(5, 5),
            points="quarters",
            values="multiples",
            mode="linear",
            padding=padding,
            every_dtype=padding == "zeros",
        )
    yield GridSampleSample(name="nearest_inside_every_dtype", points="inside", mode="nearest", every_dtype=True)


def _list_refused() -> Iterator[GridSampleSample]:
    for broken in ("three_coordinates", "batch", "grid_rank"):
        yield GridSampleSample(name=broken, broken=broken)
    yield GridSampleSample(name="unknown_mode", mode="quintic")
    yield GridSampleSample(name="unknown_padding", padding="wrap")
    yield GridSampleSample(name="x_rank_2", broken="x_rank_2")


def bindings(sample: GridSampleSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if len(sample.shape) != 4 and not _is_n_dimensional(since_version):
        return ()
    kind = np.dtype(dtypes[0]).kind
    nearest = sample.mode == "nearest"
    if not nearest and kind != "f" and not (sample.values == "multiples" and kind in "iu"):
        return ()
    first = dtypes == ("float32", "float32")
    return spread(sample, first=first, newest=first and sample.every_dtype)


def _is_n_dimensional(since_version: int) -> bool:
    """From GridSample-20 on; it has the other names of the modes."""
    return schema.schema("GridSample", since_version).attributes["mode"].default_value.s == b"linear"


def node(sample: GridSampleSample, context: CaseContext) -> Node:
    """X [N, C, D1, ...] of the first dtype, grid [N, out..., r] of the second, the innermost coordinate first.

    A grid that is always the same is an initializer in models that warp by a fixed map.
    """
    x = Operand("X", _values(sample, context))
    grid = _grid(sample, context)
    match sample.broken:
        case "three_coordinates":
            grid = np.concatenate([grid, grid[..., :1]], axis=-1)
        case "batch":
            grid = grid[:1]
        case "grid_rank":
            grid = grid[:, 0]
        case "x_rank_2":
            x = Operand("X", x.value[0, 0])
    mode = sample.mode
    if mode is not None and not _is_n_dimensional(context.since_version):
        mode = OLD_NAMES.get(mode, mode)
    settings = {"mode": mode, "padding_mode": sample.padding, "align_corners": sample.align}
    attributes: dict[str, Attribute] = {name: value for name, value in settings.items() if value is not None}
    return Node("GridSample", "", context.since_version, (x, Operand("grid", grid, parameter=True)), ("Y",), attributes)


def _values(sample: GridSampleSample, context: CaseContext) -> Array:
    dtype, count = context.dtype, int(np.prod(sample.shape))
    if sample.values == "multiples":
        lowest = -7 if dtype.kind in "if" else 0
        return (16 * context.rng.integers(lowest, 7, count, endpoint=True)).astype(dtype).reshape(sample.shape)
    if dtype.kind in "iu":
        # Small: the page lets intermediate values be floats.
        return context.rng.integers(0, 100, sample.shape).astype(dtype)
    return data.distinct(sample.shape, dtype, context.rng)


def _grid(sample: GridSampleSample, context: CaseContext) -> Array:
    """The normalised coordinates of points that are given in elements of X."""
    spatial = sample.shape[2:]
    count = sample.shape[0] * int(np.prod(sample.out))
    columns = []
    for length in reversed(spatial):
        x = _points(sample.points, length, count, context.rng)
        if (sample.mode, sample.padding) == ("cubic", "border"):
            x = _settle_locations(x, length)
        columns.append(2 * x / max(1, length - 1) - 1 if sample.align else (2 * x + 1) / length - 1)
    grid = np.stack(columns, -1).reshape((sample.shape[0], *sample.out, len(spatial)))
    return (
        np.clip(grid, -1, 1).astype(context.dtypes[1]) if sample.points == "corners" else grid.astype(context.dtypes[1])
    )


def _points(kind: str, length: int, count: int, rng: np.random.Generator) -> Array:
    """Coordinates along an axis of `length` elements, but for ties and quarters away from every half and whole."""
    share = rng.choice([-0.4, -0.3, -0.2, 0.2, 0.3, 0.4], count) + rng.uniform(-0.05, 0.05, count)
    match kind:
        case "inside":
            return np.clip(rng.integers(0, length, count) + share, -0.45, length - 0.55)
        case "far":
            return rng.integers(-20 * length, 20 * length, count) + share
        case "corners":
            return rng.choice([-1e9, 1e9, (length - 1) / 2], count)
        case "ties":
            return rng.integers(0, length - 1, count) + 0.5
        case "quarters":
            return rng.integers(-8, 4 * length + 4, count) / 4
    return rng.integers(-2 * length, 3 * length, count) + share


def _settle_locations(x: Array, length: int) -> Array:
    """Nothing within two elements outside: there the page does not say whether a location or an element is clamped."""
    x = np.where((x > -2) & (x < 0), x - 2.0, x)
    return np.where((x > length - 1) & (x < length + 1), x + 2.0, x)


def truth(node: Node) -> Truth:
    """Each axis has its taps and weights; their products are contracted axis by axis, in float64."""
    x, grid = node.array("X"), node.array("grid")
    mode, padding = _mode(node), node.text("padding_mode", "zeros")
    if (reason := _broken_rule(node, mode, padding)) is not None:
        return Refusal(reason)
    align = bool(node.integer("align_corners", 0))
    shape = (*x.shape[:2], *grid.shape[1:-1])
    if not np.prod(shape):
        return Outputs((Output("Y", np.zeros(shape, x.dtype)),))
    parts = [_sample_batch(image, points, mode, padding, align) for image, points in zip(x, grid, strict=True)]
    value = np.stack([part.value for part in parts]).reshape(shape)
    if mode == "nearest":
        return Outputs((Output("Y", value.astype(x.dtype), Exact()),))
    if x.dtype.kind == "f":
        error = np.stack([part.error for part in parts]).reshape(shape)
        return Outputs((output("Y", Approximate(value, error), x.dtype),))
    assert (value == np.rint(value)).all(), "an integer result must be whole"
    return Outputs((Output("Y", value.astype(x.dtype), Exact()),))


def _mode(node: Node) -> str:
    new = {old: name for name, old in OLD_NAMES.items()}
    mode = node.text("mode", "linear")
    return new.get(mode, mode)


def _broken_rule(node: Node, mode: str, padding: str) -> str | None:
    x, grid = node.array("X"), node.array("grid")
    if mode not in MODES:
        return f"mode '{mode}' is none of {', '.join(MODES)}"
    if padding not in PADDINGS:
        return f"padding_mode '{padding}' is none of {', '.join(PADDINGS)}"
    if x.ndim < 3:
        return f"X must have a batch, a channel and a spatial dimension; it has {x.ndim} dimensions"
    if grid.ndim != x.ndim:
        return f"grid must have as many dimensions as X, {x.ndim}, not {grid.ndim}"
    if grid.shape[-1] != x.ndim - 2 or grid.shape[0] != x.shape[0]:
        return f"grid of shape {grid.shape} does not fit X of shape {x.shape}"
    return None


def _sample_batch(x: Array, grid: Array, mode: str, padding: str, align: bool) -> Approximate:
    """One batch: x [C, D1, ...], grid [out..., r] -> [C, points]."""
    points = grid.reshape(-1, grid.shape[-1])[:, ::-1]
    axes = [_axis(points[:, i], length, mode, padding, align, x.dtype) for i, length in enumerate(x.shape[1:])]
    rank = len(axes)
    index: list[Any] = [slice(None)]
    for position, (taps, _, _) in enumerate(axes):
        sizes = [1] * (rank + 1)
        sizes[0], sizes[position + 1] = taps.shape
        index.append(taps.reshape(sizes))
    value = x[tuple(index)].astype(np.float64 if mode != "nearest" else x.dtype)
    found = Approximate(value, np.zeros(value.shape))
    unit = unit_of(x.dtype) if x.dtype.kind == "f" else FLOAT32_UNIT
    for _, weight, error in reversed(axes):
        found = _contract(found, weight, error, unit) if mode != "nearest" else _select_tap(found, weight)
    return found


def _contract(data: Approximate, weight: Array, error: Array, unit: float) -> Approximate:
    """The sum over the last axis, [C, points, ..., taps] times [points, taps]."""

    def apply(factor: Array, values: Array) -> Array:
        sizes = (1, factor.shape[0], *(1,) * (values.ndim - 3), factor.shape[1])
        return np.asarray((values * factor.reshape(sizes)).sum(axis=-1))

    magnitude = np.abs(data.value) + data.error
    steps = (weight.shape[1] + 1) * unit
    inherited = apply(np.abs(weight), data.error) + apply(error, magnitude)
    return Approximate(
        apply(weight, data.value), inherited + steps / (1 - steps) * apply(np.abs(weight) + error, magnitude)
    )


def _select_tap(data: Approximate, inside: Array) -> Approximate:
    """nearest: the only tap of the last axis, or zero where it lies outside."""
    value = data.value[..., 0]
    sizes = (1, inside.shape[0], *(1,) * (value.ndim - 2))
    return Approximate(np.where(inside.reshape(sizes) != 0, value, value.dtype.type(0)), data.error[..., 0])


def _axis(
    n: Array, length: int, mode: str, padding: str, align: bool, dtype: np.dtype[Any]
) -> tuple[Array, Array, Array]:
    """Taps [points, k] within the axis, their weights and the error of these."""
    wide = n.astype(np.float64)
    x = (wide + 1) / 2 * (length - 1) if align else ((wide + 1) * length - 1) / 2
    low, high = (0.0, length - 1.0) if align else (-0.5, length - 0.5)
    if mode == "nearest":
        x = np.rint(x)
    outside = (x < low) | (x > high)
    if padding == "border":
        x = np.clip(x, -2.0, length + 1.0) if mode == "cubic" else np.where(outside, np.clip(x, 0, length - 1), x)
    elif padding == "reflection":
        x = np.where(outside, _reflect(x, low, high), x)
    if mode == "nearest":
        taps = np.rint(x)[:, None].astype(np.int64)
        weight, error = np.ones(taps.shape), np.zeros(taps.shape)
    else:
        kernel = LINEAR if mode == "linear" else cubic(CUBIC_A)
        taps = np.floor(x)[:, None].astype(np.int64) + np.arange(-kernel.reach, kernel.reach + 2)
        weight = kernel.weight(taps - x[:, None])
        error = _weight_error(kernel, wide, length, unit_of(n.dtype), unit_of(dtype) if dtype.kind == "f" else 0.0)
        error = np.broadcast_to(error[:, None], taps.shape)
    inside = (taps >= 0) & (taps < length)
    if padding == "zeros":
        weight, error = np.where(inside, weight, 0.0), np.where(inside, error, 0.0)
    elif padding == "reflection":
        taps = np.rint(_reflect(taps.astype(np.float64), low, high)).astype(np.int64)
    return np.clip(taps, 0, length - 1), weight, error


def _weight_error(kernel: Kernel, n: Array, length: int, grid_unit: float, unit: float) -> Array:
    """The kernel's slope times the error of the coordinate, and the roundings of the weight itself."""
    moved = COORDINATE_ROUNDINGS * max(grid_unit, FLOAT32_UNIT) * (np.abs(n) + 2) * length
    return kernel.steepness * moved + COORDINATE_ROUNDINGS * unit


def _reflect(x: Array, low: float, high: float) -> Array:
    """Back and forth between the borders until within them."""
    extent = high - low
    if extent == 0:
        return np.full_like(x, low)
    inside = np.mod(x - low, 2 * extent)
    return low + np.minimum(inside, 2 * extent - inside)


def lower(node: Node) -> Lowering | None:
    """A shader of the DML EP, no DirectML operator."""
    del node
    return None


def _undefined_positions() -> UndefinedSamples:
    for dtype in FLOATS:
        image, grid = ramp((1, 1, 3, 3), dtype), np.zeros((1, 2, 4, 2), dtype)
        grid[..., 0] = strange_positions(dtype).reshape(1, 2, 4)
        answer = Answer(np.zeros((1, 1, 2, 4), dtype))
        for mode in ("zeros", "border", "reflection"):
            name, dtypes = f"position_nowhere_{mode}", f"{dtype}-{dtype}"
            yield UndefinedSample(name, dtypes, NOWHERE, (image, grid), (answer,), {"padding_mode": mode})


UNDEFINED = {"GridSample": _undefined_positions}

GRID_SAMPLE = Operator("GridSample", samples, bindings, node, truth, lower, varied=("T1", "T2"))

OPERATORS = declare(
    (GRID_SAMPLE, make_twin(GRID_SAMPLE, 16, lambda _, dtypes: dtypes[0] == dtypes[1])), undefined=UNDEFINED
)
