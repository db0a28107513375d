"""DeformConv-19 and DeformConv-22: convolutions whose every tap is moved by an offset.

Source: the operator's page, and its examples for what the text leaves open: the order of offsets within a channel, for
each tap one for each axis. A tap between two elements is interpolated linearly; the padding is zeros. Whether a tap
less than one element beyond the padded input is zero or still interpolated is not said: no case has such a tap. The
page gives masks of anything but two axes two shapes: only images have them. The bound is that of coordinates and
weights in the precision of the dtype and of a sum of products (`running_error`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate, Terms, output, term, total, unit_of
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Random
from epcheck.generators.declaration.undefined_sample import (
    FLOATS,
    NOWHERE,
    Answer,
    UndefinedSample,
    UndefinedSamples,
    ramp,
    strange_positions,
)
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("DeformConv",)

ESTABLISHED = 22
WEIGHT_ROUNDINGS = 4
"""Of a coordinate, of its distance to the next element, of one less it, and of the product with another axis's."""


@dataclass(frozen=True, kw_only=True)
class DeformSample(Sample):
    """size: of the spatial axes of X. channels: of X and of the output. offsets: see `_offsets`. named: kernel_shape is
    there; the other attributes are left out where they are None. They are small: ReferenceEvaluator samples one tap of
    one channel at a time."""

    batch: int = 1
    channels: tuple[int, int] = (2, 2)
    size: tuple[int, ...] = (5, 6)
    kernel: tuple[int, ...] = (3, 2)
    strides: tuple[int, ...] | None = None
    pads: tuple[int, ...] | None = None
    dilations: tuple[int, ...] | None = None
    group: int | None = None
    offset_group: int | None = None
    offsets: str = "fractions"
    bias: bool = False
    mask: bool = False
    named: bool = True
    broken: str = ""


def samples() -> Iterator[DeformSample]:
    yield DeformSample(name="defaults", named=False, every_dtype=True)
    yield DeformSample(name="bias", bias=True, every_dtype=True)
    yield DeformSample(name="mask", mask=True, every_dtype=True)
    yield DeformSample(name="bias_and_mask", bias=True, mask=True)
    for offsets in ("zero", "whole", "halves", "fractions", "far", "border"):
        for pads in (None, (1, 1, 1, 1), (2, 0, 1, 3)):
            place = "" if pads is None else "_pads_" + "_".join(map(str, pads))
            yield DeformSample(name=f"offsets_{offsets}{place}", offsets=offsets, pads=pads,
                               every_dtype=offsets == "far" and pads is None)  # fmt: skip
    for strides in ((2, 2), (1, 3), (3, 1)):
        yield DeformSample(name=f"strides_{strides[0]}_{strides[1]}", strides=strides, pads=(1, 1, 1, 1))
    for dilations in ((2, 2), (1, 3), (2, 1)):
        yield DeformSample(name=f"dilations_{dilations[0]}_{dilations[1]}", dilations=dilations)
    yield DeformSample(name="strides_pads_dilations", strides=(2, 1), pads=(2, 1, 0, 3), dilations=(2, 3), mask=True)
    yield from _groups()
    yield from _shapes()
    for broken in ("offset_channels", "mask_channels", "weight_channels", "bias_length", "output_size", "batch"):
        yield expect_refusal(DeformSample(name=broken, batch=2, bias=True, mask=True, broken=broken))
    yield expect_refusal(DeformSample(name="group", channels=(3, 4), group=2))
    yield expect_refusal(DeformSample(name="offset_group", channels=(3, 4), offset_group=2))


def _groups() -> Iterator[DeformSample]:
    for group, offset_group in product((1, 2, 4), (1, 2, 4)):
        for mask in (False, True):
            yield DeformSample(
                name=f"group_{group}_offset_group_{offset_group}{'_mask' if mask else ''}",
                channels=(4, 4),
                group=group,
                offset_group=offset_group,
                mask=mask,
                every_dtype=(group, offset_group, mask) == (2, 4, True),
            )
    yield DeformSample(name="depthwise", channels=(5, 5), group=5, bias=True)


def _shapes() -> Iterator[DeformSample]:
    yield DeformSample(name="kernel_1_1", kernel=(1, 1))
    yield DeformSample(name="kernel_as_large_as_the_image", size=(3, 4), kernel=(3, 4))
    yield DeformSample(name="one_pixel", size=(1, 1), kernel=(1, 1), channels=(1, 1), offsets="zero")
    yield DeformSample(name="one_pixel_padded", size=(1, 1), kernel=(3, 3), pads=(1, 1, 1, 1))
    yield DeformSample(name="one_row", size=(1, 9), kernel=(1, 3), offsets="whole")
    yield DeformSample(name="batch_0", batch=0)
    yield DeformSample(name="batch_3", batch=3, channels=(2, 3))
    yield DeformSample(name="many_channels", channels=(65, 1), size=(3, 3))
    yield DeformSample(name="many_outputs", channels=(1, 129), size=(3, 3))
    yield DeformSample(name="more_than_a_thread_group", size=(33, 32), kernel=(1, 1), channels=(1, 1))
    for mask in (False, True):
        yield DeformSample(name=f"large_kernel{'_mask' if mask else ''}", size=(8, 11), kernel=(7, 9), mask=mask)
    for size, kernel in (((9,), (3,)), ((4, 5, 6), (2, 3, 2)), ((3, 3, 4, 3), (2, 1, 2, 2))):
        yield DeformSample(name=f"{len(size)}d", size=size, kernel=kernel, channels=(2, 2), bias=True)
        pads = (1,) * 2 * len(size)
        yield DeformSample(name=f"{len(size)}d_pads_groups", size=size, kernel=kernel, pads=pads, channels=(2, 4),
                           group=2, offset_group=2)  # fmt: skip


def bindings(sample: DeformSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=dtypes == ("float32",), newest=since_version == ESTABLISHED)


def node(sample: DeformSample, context: CaseContext) -> Node:
    """X [N, C, D...], W [oC, C / group, k...], offset [N, offset_group * taps * axes, o...], B [oC] and mask
    [N, offset_group * taps, o...], all of the case's dtype."""
    rng, axes = context.rng, len(sample.size)
    groups = sample.offset_group or 1
    settings = {name: getattr(sample, name) for name in ("strides", "pads", "dilations", "group", "offset_group")}
    settings["kernel_shape"] = sample.kernel if sample.named else None
    attributes: dict[str, Attribute] = {name: value for name, value in settings.items() if value is not None}
    shape_in, shape_out = sample.channels
    starts, spans = _grid(sample.size, sample.kernel, attributes)
    out, taps = tuple(len(s) for s in starts), int(np.prod(sample.kernel))
    x = rng.uniform(-2, 2, (sample.batch, shape_in, *sample.size))
    w = rng.uniform(-1, 1, (shape_out, shape_in // (sample.group or 1), *sample.kernel))
    offset = _offsets(sample, starts, spans, (sample.batch, groups, *sample.kernel, axes, *out), context)
    offset = offset.reshape(sample.batch, groups * taps * axes, *out)
    mask = rng.uniform(-1, 1, (sample.batch, groups * taps, *out))
    values = {"X": x, "W": w, "offset": offset, "B": rng.uniform(-1, 1, shape_out) if sample.bias else None,
              "mask": mask if sample.mask else None}  # fmt: skip
    _break(sample.broken, values)
    operands = [
        None if value is None else Operand(name, value.astype(context.dtype), parameter=name in ("W", "B"))
        for name, value in values.items()
    ]
    while operands[-1] is None:
        operands.pop()
    return Node("DeformConv", "", context.since_version, tuple(operands), ("Y",), attributes)


def _break(how: str, values: dict[str, Array | None]) -> None:
    """Make an input not fit the others."""
    name = {"offset_channels": "offset", "mask_channels": "mask", "weight_channels": "W", "output_size": "offset"}
    if how == "bias_length":
        values["B"] = np.resize(values["B"], 7)  # type: ignore[arg-type]
    elif how == "batch":
        values["offset"] = values["offset"][:1]  # type: ignore[index]
    elif how == "output_size":
        values["offset"] = values["offset"][..., :-1]  # type: ignore[index]
    elif how:
        values[name[how]] = values[name[how]][:, :-1]  # type: ignore[index]


def _grid(
    size: tuple[int, ...], kernel: tuple[int, ...], attributes: Mapping[str, Any]
) -> tuple[list[Array], list[Array]]:
    """For each axis where the kernel starts, of each output, and how far each tap is from there; in elements of X."""
    axes = len(size)
    strides, dilations = attributes.get("strides", (1,) * axes), attributes.get("dilations", (1,) * axes)
    pads = attributes.get("pads", (0,) * 2 * axes)
    spans = [np.arange(k) * d for k, d in zip(kernel, dilations, strict=True)]
    starts = []
    for axis, length in enumerate(size):
        count = (length + pads[axis] + pads[axes + axis] - int(spans[axis][-1]) - 1) // strides[axis] + 1
        starts.append(np.arange(count) * strides[axis] - pads[axis])
    return starts, spans


def _places(starts: list[Array], spans: list[Array], axis: int) -> Array:
    """Where the taps are along an axis without an offset, [k..., o...]."""
    axes = len(starts)
    shape = [1] * (2 * axes)
    shape[axis], shape[axes + axis] = len(spans[axis]), len(starts[axis])
    return np.asarray((spans[axis][:, None] + starts[axis][None, :]).reshape(shape))


def _offsets(
    sample: DeformSample, starts: list[Array], spans: list[Array], shape: tuple[int, ...], context: CaseContext
) -> Array:
    """[N, offset_group, k..., axes, o...], multiples of 1/16 that float16 holds; see the module about borders."""
    rng, axes = context.rng, len(starts)
    drawn = {
        "zero": np.zeros(shape),
        "whole": rng.integers(-3, 4, shape),
        "halves": rng.integers(-3, 3, shape) + 0.5,
        "fractions": rng.integers(-40, 41, shape) / 16,
        "far": rng.choice([-100, 100, 0.25, -0.75], shape),
        "border": np.zeros(shape),
    }[sample.offsets]
    pads = sample.pads or (0,) * 2 * axes
    found = np.moveaxis(np.array(drawn, np.float64), 2 + axes, 0)
    for axis, length in enumerate(sample.size):
        place = np.broadcast_to(_places(starts, spans, axis), found[axis].shape).astype(np.float64)
        low, high = -float(pads[axis]), length - 1.0 + pads[axes + axis]
        moved = rng.choice([low, high, low + 0.5 * (low < high)], place.shape) if sample.offsets == "border" else (
            place + found[axis])  # fmt: skip
        moved = np.where((moved < low) & (moved > low - 1), low, moved)
        moved = np.where((moved > high) & (moved < high + 1), high, moved)
        found[axis] = moved - place
    return np.moveaxis(found, 0, 2 + axes)


def _broken_rule(node: Node) -> str | None:
    """The rule that the node breaks."""
    x, w, offset = node.array("X"), node.array("W"), node.array("offset")
    group, offset_group = node.integer("group", 1), node.integer("offset_group", 1)
    taps, mask, bias = int(np.prod(w.shape[2:])), node.value("mask"), node.value("B")
    if w.shape[1] * group != x.shape[1] or w.shape[0] % group:
        return f"X of {x.shape[1]} channels and W of shape {w.shape} do not fit {group} groups"
    if x.shape[1] % offset_group:
        return f"{x.shape[1]} channels are not divisible by offset_group {offset_group}"
    starts, _ = _grid(x.shape[2:], w.shape[2:], node.attributes)
    out = tuple(len(s) for s in starts)
    if offset.shape != (x.shape[0], offset_group * taps * (x.ndim - 2), *out):
        return f"offset of shape {offset.shape} does not fit an output of {out} and offset_group {offset_group}"
    if mask is not None and mask.shape != (x.shape[0], offset_group * taps, *out):
        return f"mask of shape {mask.shape} does not fit an output of {out} and offset_group {offset_group}"
    if bias is not None and bias.shape != (w.shape[0],):
        return f"B must have {w.shape[0]} elements, not {bias.size}"
    return None


def _sample_taps(node: Node) -> Approximate:
    """What each tap reads: [N, C, k..., o...]."""
    x, offset, kernel = node.array("X"), node.array("offset"), node.array("W").shape[2:]
    axes, unit = len(kernel), unit_of(x.dtype)
    groups, (batch, channels) = node.integer("offset_group", 1), x.shape[:2]
    starts, spans = _grid(x.shape[2:], kernel, node.attributes)
    wide = offset.astype(np.float64).reshape(batch, groups, *kernel, axes, *offset.shape[2:])
    moved = np.repeat(np.moveaxis(wide, 2 + axes, 0), channels // groups, axis=2)
    value, error = np.zeros(moved.shape[1:]), np.zeros(moved.shape[1:])
    places = [_places(starts, spans, axis) + moved[axis] for axis in range(axes)]
    below = [np.floor(place) for place in places]
    lost = [WEIGHT_ROUNDINGS * unit * (np.abs(place) + 1) for place in places]
    at = np.ix_(range(batch), range(channels))
    index = tuple(part.reshape(*part.shape, *(1,) * (2 * axes)) for part in at)
    for corner in product((0, 1), repeat=axes):
        taps = [b.astype(np.int64) + side for b, side in zip(below, corner, strict=True)]
        weights = [p - b if side else 1 - (p - b) for p, b, side in zip(places, below, corner, strict=True)]
        inside = reduce(np.logical_and, [(t >= 0) & (t < n) for t, n in zip(taps, x.shape[2:], strict=True)])
        clipped = [np.clip(t, 0, max(0, n - 1)) for t, n in zip(taps, x.shape[2:], strict=True)]
        read = np.where(inside, x.astype(np.float64)[(*index, *clipped)], 0.0)
        share = reduce(np.multiply, weights)
        widest = reduce(np.multiply, [w + e for w, e in zip(weights, lost, strict=True)])
        value += read * share
        error += np.abs(read) * ((widest - share) + (len(corner) + 2**axes) * unit * widest)
    return Approximate(value, error)


def truth(node: Node) -> Truth:
    if (reason := _broken_rule(node)) is not None:
        return Refusal(reason)
    x, w = node.array("X"), node.array("W").astype(np.float64)
    group, offset_group, axes = node.integer("group", 1), node.integer("offset_group", 1), w.ndim - 2
    if not x.size:
        shape = (x.shape[0], w.shape[0], *node.array("offset").shape[2:])
        return Outputs((Output("Y", np.zeros(shape, x.dtype)),))
    read, unit = _sample_taps(node), unit_of(x.dtype)
    mask = node.value("mask")
    if mask is not None:
        factor = mask.astype(np.float64).reshape(x.shape[0], offset_group, *w.shape[2:], *mask.shape[2:])
        factor = np.repeat(factor, x.shape[1] // offset_group, axis=1)
        masked = read.value * factor
        read = Approximate(masked, read.error * np.abs(factor) + unit * np.abs(masked))
    sums = [
        _contract(part, w_part, axes)
        for part, w_part in zip(_split_groups(read, group), np.split(w, group), strict=True)
    ]
    terms = Terms(
        np.concatenate([s.value for s in sums], 1),
        np.concatenate([s.error for s in sums], 1),
        np.concatenate([s.magnitude for s in sums], 1),
        sums[0].count,
    )
    bias = node.value("B")
    if bias is None:
        return Outputs((output("Y", total(unit, terms), x.dtype),))
    added = np.broadcast_to(bias.astype(np.float64).reshape(1, -1, *(1,) * axes), terms.value.shape)
    return Outputs((output("Y", total(unit, terms, term(Approximate.exact(added))), x.dtype),))


def _split_groups(read: Approximate, group: int) -> list[Approximate]:
    pairs = zip(np.split(read.value, group, 1), np.split(read.error, group, 1), strict=True)
    return [Approximate(value, error) for value, error in pairs]


def _contract(read: Approximate, w: Array, axes: int) -> Terms:
    """The sums over channels and taps: read [N, c, k..., o...], w [oC, c, k...] -> [N, oC, o...]."""
    summed = list(range(1, axes + 2))

    def apply(values: Array, weights: Array) -> Array:
        return np.moveaxis(np.tensordot(weights, values, axes=(summed, summed)), 1, 0)

    magnitude = np.abs(read.value) + read.error
    return Terms(
        apply(read.value, w), apply(read.error, np.abs(w)), apply(magnitude, np.abs(w)), int(np.prod(w.shape[1:]))
    )


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "DeformConv": (
        Interaction("masks_of_a_batch",
                (Random((2, 1, 4, 4)), Random((1, 1, 2, 2)), Random((2, 8, 3, 3), -0.9, 0.9), None, Random((2, 4, 3, 3),
                0, 1)),
                {"kernel_shape": (2, 2)}),
        Interaction("offset_groups_of_a_batch",
                (Random((2, 2, 4, 4)), Random((1, 2, 2, 2)), Random((2, 16, 3, 3), -0.9, 0.9)),
                {"kernel_shape": (2, 2), "offset_group": 2}),
    ),
}  # fmt: skip


def _undefined_offsets() -> UndefinedSamples:
    for dtype in FLOATS:
        offset = np.zeros((1, 8, 2, 2), dtype)
        offset.reshape(-1)[:8] = strange_positions(dtype)
        inputs = (ramp((1, 1, 3, 3), dtype), np.ones((1, 1, 2, 2), dtype), offset)
        answer = Answer(np.zeros((1, 1, 2, 2), dtype))
        yield UndefinedSample("offset_nowhere", dtype, NOWHERE, inputs, (answer,))


UNDEFINED = {"DeformConv": _undefined_offsets}

OPERATORS = declare(
    (Operator("DeformConv", samples, bindings, node, truth, NO_KERNEL),), interactions=INTERACTIONS, undefined=UNDEFINED
)
