"""Resize (10, 11, 13, 18, 19) and Upsample (7, 9) -> DML_RESAMPLE3_OPERATOR_DESC.

Where the pages are open or contradict themselves there is no sample:
- `nearest` where a coordinate stands on a rounding threshold and the scale is no power of two, since the rounding
  error of the coordinate would decide (`_is_clear` of `samples.py`);
- scales whose product with a length is nearly an integer (floor of it), or fractional with align_corners, where the
  page divides by length_resized - 1 and the node tests by a fractional width;
- align_corners to a length of 1 (0 / 0), roi with scales, exclude_outside with nearest, integers whose result is none.
How the DML EP lowers them: DmlOperatorResize.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.declaration.interaction import Interaction, Literal, Random, int64s
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.directml.descriptions.resampling.resample import lower_resize
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Attribute, Node
from epcheck.generators.operator import Operator, declare
from epcheck.generators.operators.resampling.resize.oracle import make_plan, truth
from epcheck.generators.operators.resampling.resize.samples import (
    ResizeSample,
    resize_bindings,
    resize_node,
    resize_samples,
    upsample_bindings,
    upsample_node,
    upsample_samples,
)

DECLARES = (
    "Resize",
    "Upsample",
)


def lower(node: Node) -> Lowering | None:
    """As the DML EP does it, which knows no coordinates of older versions and no cubic: None there and for refusals."""
    plan = make_plan(node)
    if isinstance(plan, str) or plan.mode == "cubic" or plan.exclude_outside or plan.extrapolation:
        return None
    return lower_resize(node.array("X"), plan.axes, plan.mode, plan.nearest_mode, plan.antialias)


class _Resize(Operator[ResizeSample]):
    """The dtypes are those of X, whose constraint is T in Resize-10 and T1 from Resize-11 on."""

    def dtypes(self, since_version: int) -> Iterator[tuple[str, ...]]:
        constraint = schema.signature(self.name, since_version, self.domain).inputs[0]
        return ((dtype,) for dtype in schema.dtypes(self.name, since_version, constraint, self.domain))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Resize": (
        Interaction("nearest_region_beyond_and_value",
                (Random((1, 1, 3, 3)), Literal([0.0, 0.0, -0.5, -0.5, 1.0, 1.0, 1.5, 1.5]), None, int64s(1, 1, 5, 5)),
                {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5}),
        Interaction("antialias_3d", (Random((1, 1, 4, 4, 4)), None, Literal([1.0, 1.0, 0.5, 0.5, 0.5])),
                {"mode": "linear", "antialias": 1}),
        Interaction("antialias_1d", (Random((1, 1, 8)), None, Literal([1.0, 1.0, 0.5])),
                {"mode": "linear", "antialias": 1}),
        Interaction("cubic_exclude_outside_and_coefficient",
                (Random((1, 1, 4, 4)), None, Literal([1.0, 1.0, 2.0, 2.0])),
                {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5}),
    ),
}  # fmt: skip


WIDTHS = (16, 17, 33, 65, 129, 257, 1025)

NEAREST = ("nearest_round_prefer_floor", "nearest_round_prefer_ceil", "nearest_floor", "nearest_ceil")

CROP = "tf_crop_and_resize"

FACTORS = {"double": (2.0, 2.0), "half": (0.5, 0.5), "one_axis": (1.0, 4.0), "uneven": (1.5, 0.75)}
"""Scales of height and width."""

LENGTHS = {"to_7_5": (7, 5), "not_larger": (8, 9), "not_smaller": (3, 12)}
"""Sizes of height and width; of the last two keep_aspect_ratio_policy makes others."""

REGION = ((-0.25, 0.125), (0.75, 1.375))
"""Of height and width, where it begins and where it ends: partly outside."""


def _is_valid(values: Values) -> bool:
    """Nearest where every coordinate is exact, because rounding decides elsewhere; align_corners with whole sizes, of
    which the page alone says what is divided; a region with sizes; a common scale of chosen axes."""
    mode, transform, target = values["mode"], values["transform"], values["target"]
    if mode in NEAREST and (values["antialias"] or values["exclude_outside"]):
        return False
    if mode in NEAREST and (transform in ("align_corners", CROP) or target not in ("double", "half", "one_axis")):
        return False
    if transform == "align_corners" and target == "uneven":
        return False
    if transform == CROP and (target != "to_7_5" or values["antialias"]):
        return False
    return target not in ("not_larger", "not_smaller") or values["axes"] is not None


def _make_parts(values: Values, rng: np.random.Generator) -> Parts:
    """Data of [batch, 2, height, width]; the numbers of an axis stand in the order of `axes`."""
    mode, transform, target, axes = (values[name] for name in ("mode", "transform", "target", "axes"))
    x = rng.uniform(-1, 1, (values["batch"], 2, values["height"], values["width"])).astype(np.float32)
    attributes: dict[str, Attribute] = {"coordinate_transformation_mode": transform, "mode": mode.partition("_")[0]}
    if mode in NEAREST:
        attributes["nearest_mode"] = mode.removeprefix("nearest_")
    attributes |= {name: 1 for name in ("antialias", "exclude_outside") if values[name]}
    if axes is not None:
        attributes["axes"] = axes
    if target in ("not_larger", "not_smaller"):
        attributes["keep_aspect_ratio_policy"] = target
    scales = np.array(_order(axes, FACTORS[target], (1.0, 1.0)), np.float32) if target in FACTORS else None
    sizes = np.array(_order(axes, LENGTHS[target], x.shape[:2]), np.int64) if target in LENGTHS else None
    region: Array | None = None
    if transform == CROP:
        starts, ends = (_order(axes, REGION[i], (float(i),) * 2) for i in (0, 1))
        region = np.array((*starts, *ends), np.float32)
        attributes["extrapolation_value"] = 2.5
    inputs = (x, region, scales) if sizes is None else (x, region, scales, sizes)
    return Parts(inputs, attributes, (1, 2, 3))


def _order(axes: tuple[int, ...] | None, pair: tuple[float, float], others: tuple[float, ...]) -> tuple[float, ...]:
    """The numbers of height and width in the order of the axes; of all axes where none are chosen."""
    if axes is None:
        return (*others, *pair)
    return tuple(pair[(axis % 4) - 2] for axis in axes)


PARAMETER_SPACES = {
    "Resize": ParameterSpace(
        {"batch": 1, "height": 4, "width": 6},
        _make_parts,
        {
            "mode": ("linear", "cubic", *NEAREST),
            "transform": (
                "half_pixel",
                "align_corners",
                "asymmetric",
                "pytorch_half_pixel",
                "half_pixel_symmetric",
                CROP,
            ),
            "target": (*FACTORS, *LENGTHS),
            "axes": ((2, 3), None, (-1, -2)),
            "antialias": (0, 1),
            "exclude_outside": (0, 1),
        },
        {"width": WIDTHS, "height": WIDTHS[:5]},
        ("batch",),
        _is_valid,
    )
}

OPERATORS = declare(
    (
        _Resize("Resize", resize_samples, resize_bindings, resize_node, truth, lower, varied=("T1",)),
        Operator("Upsample", upsample_samples, upsample_bindings, upsample_node, truth, lower),
    ),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
)
