"""What the pages of Resize and Upsample say of a node.

Each axis is resampled for itself: a matrix of weights in float64; the bound is what float32 coordinates, weights and
sums may lose (`interpolation`). `nearest` only moves data, so it is exact.

A scale is the one given: the page derives it from the lengths, too, which the node tests contradict.
Upsample and Resize-10 say nothing of coordinates; their node tests and the version converter of onnx take them for
`asymmetric` with `floor`, as here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate, output, unit_of
from epcheck.generators.node import Node
from epcheck.generators.oracle_math.coordinates import Axis
from epcheck.generators.oracle_math.interpolation import LINEAR, Kernel, Weights, along, cubic, weights
from epcheck.generators.truth import Exact, Output, Outputs, Refusal, Truth

TRANSFORMS = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
              "tf_half_pixel_for_nn", "tf_crop_and_resize")  # fmt: skip
NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MODES = ("nearest", "linear", "cubic")


@dataclass(frozen=True)
class Plan:
    """A valid node in plain terms: one Axis for each dimension, and what is done with them."""

    axes: tuple[Axis, ...]
    mode: str
    nearest_mode: str
    antialias: bool
    exclude_outside: bool
    extrapolation: float
    cubic_a: float

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.resized for axis in self.axes)


def make_plan(node: Node) -> Plan | str:
    x = node.array("X")
    oldest = "coordinate_transformation_mode" not in schema.schema(node.op_type, node.since_version).attributes
    transform = node.text("coordinate_transformation_mode", "asymmetric" if oldest else "half_pixel")
    mode, nearest = node.text("mode", "nearest"), node.text("nearest_mode", "floor" if oldest else NEAREST_MODES[0])
    for what, value, known in (("mode", mode, MODES), ("nearest_mode", nearest, NEAREST_MODES),
                               ("coordinate_transformation_mode", transform, TRANSFORMS)):  # fmt: skip
        if value not in known:
            return f"{what} '{value}' is none of {', '.join(known)}"
    chosen = node.integers("axes", tuple(range(x.ndim)))
    if not all(-x.ndim <= axis < x.ndim for axis in chosen):
        return f"axes {chosen} must be within [{-x.ndim}, {x.ndim - 1}]"
    chosen = tuple(axis % x.ndim for axis in chosen)
    lengths = tuple(x.shape[axis] for axis in chosen)
    resized = _resize_axes(node, lengths)
    if isinstance(resized, str):
        return resized
    roi = node.value("roi")
    region = [0.0] * len(chosen) + [1.0] * len(chosen)
    if transform == "tf_crop_and_resize":
        if roi is None or roi.size != 2 * len(chosen):
            return f"roi must have {2 * len(chosen)} elements"
        region = [float(value) for value in roi]
    axes = [Axis(length, length, Fraction(1), transform, (0.0, 1.0)) for length in x.shape]
    for index, (axis, (size, scale)) in enumerate(zip(chosen, resized, strict=True)):
        axes[axis] = Axis(x.shape[axis], size, scale, transform, (region[index], region[index + len(chosen)]))
    return Plan(
        tuple(axes),
        mode,
        nearest,
        bool(node.integer("antialias", 0)),
        bool(node.integer("exclude_outside", 0)),
        node.number("extrapolation_value", 0.0),
        node.number("cubic_coeff_a", -0.75),
    )


def _resize_axes(node: Node, lengths: tuple[int, ...]) -> list[tuple[int, Fraction]] | str:
    """(output size, scale) of each chosen axis, or the rule that is broken."""
    scales, sizes = (None if v is None or v.size == 0 else v for v in (_scales(node), node.value("sizes")))
    if (scales is None) == (sizes is None):
        return "one of scales and sizes must be given, and not both"
    if sizes is not None:
        if len(sizes) != len(lengths):
            return f"sizes must have {len(lengths)} elements, not {len(sizes)}"
        return _fit_policy(node.text("keep_aspect_ratio_policy", "stretch"), lengths, tuple(map(int, sizes)))
    assert scales is not None
    if len(scales) != len(lengths):
        return f"scales must have {len(lengths)} elements, not {len(scales)}"
    least = 1 if node.op_type == "Upsample" else 0
    if (scales < least).any() or (scales <= 0).any():
        return f"scales {scales.tolist()} must be {'at least 1' if least else 'greater than 0'}"
    exact = [Fraction(float(scale)) for scale in scales]
    return [(int(length * scale), scale) for length, scale in zip(lengths, exact, strict=True)]


def _scales(node: Node) -> Array | None:
    scales = node.attributes.get("scales")
    return node.value("scales") if scales is None else np.array(scales, np.float32)


def _fit_policy(policy: str, lengths: tuple[int, ...], sizes: tuple[int, ...]) -> list[tuple[int, Fraction]] | str:
    """keep_aspect_ratio_policy: one scale for all axes, the least or the greatest; half-way sizes are rounded up."""
    scales = [Fraction(size, length) if length else Fraction(1) for size, length in zip(sizes, lengths, strict=True)]
    if policy == "stretch":
        return list(zip(sizes, scales, strict=True))
    common = min(scales) if policy == "not_larger" else max(scales)
    return [(int(common * length + Fraction(1, 2)), common) for length in lengths]


def truth(node: Node) -> Truth:
    """Axis after axis in float64; outside the region of interest the extrapolation value, whatever the axis."""
    plan = make_plan(node)
    if isinstance(plan, str):
        return Refusal(plan)
    x = node.array("X")
    if plan.mode == "nearest" or not np.prod(plan.shape):
        return Outputs((Output("Y", _extrapolate(plan, _take_nearest(plan, x), x.dtype), Exact()),))
    unit = unit_of(x.dtype) if x.dtype.kind == "f" else 2.0**-24
    kernel = LINEAR if plan.mode == "linear" else cubic(plan.cubic_a)
    found = Approximate.exact(x)
    for index, axis in enumerate(plan.axes):
        if not axis.is_identity:
            found = along(index, _weights(plan, axis, kernel, unit), found, unit)
    found = Approximate(_extrapolate(plan, found.value, np.dtype(np.float64)), found.error)
    if x.dtype.kind == "f":
        return Outputs((output("Y", found, x.dtype),))
    whole = np.rint(found.value)
    assert np.abs(whole - found.value).max() < 1e-9, "an integer result must be whole"
    return Outputs((Output("Y", whole.astype(x.dtype), Exact()),))


def _weights(plan: Plan, axis: Axis, kernel: Kernel, unit: float) -> Weights:
    at = np.array([float(axis.original(position)) for position in range(axis.resized)])
    shrink = min(1.0, float(axis.scale)) if plan.antialias else 1.0
    return weights(kernel, at, axis.length, unit, shrink=shrink, exclude_outside=plan.exclude_outside)


def _take_nearest(plan: Plan, x: Array) -> Array:
    for index, axis in enumerate(plan.axes):
        if axis.is_identity or not axis.length:
            continue
        nearest = [axis.find_nearest(position, plan.nearest_mode) for position in range(axis.resized)]
        x = np.take(x, np.clip(np.array(nearest, np.int64), 0, axis.length - 1), axis=index)
    return x


def _extrapolate(plan: Plan, values: Array, dtype: np.dtype[np.float64]) -> Array:
    outside = np.zeros(plan.shape, bool)
    for index, axis in enumerate(plan.axes):
        if axis.transform == "tf_crop_and_resize":
            positions = [axis.original(position) for position in range(axis.resized)]
            beyond = np.array([x < 0 or x > axis.length - 1 for x in positions], bool)
            outside |= beyond.reshape((-1,) + (1,) * (len(plan.axes) - index - 1))
    return np.where(outside, dtype.type(plan.extrapolation), values)
