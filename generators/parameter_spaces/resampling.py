"""Resize: modes, coordinate transformations, sizes or scales of some axes, antialias, what lies outside."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.node import Attribute

WIDTHS = (16, 17, 33, 65, 129, 257, 1025)

NEAREST = ("nearest_round_prefer_floor", "nearest_round_prefer_ceil", "nearest_floor", "nearest_ceil")

CROP = "tf_crop_and_resize"

FACTORS = {"double": (2.0, 2.0), "half": (0.5, 0.5), "one_axis": (1.0, 4.0), "uneven": (1.5, 0.75)}
"""Scales of height and width."""

SIZES = {"to_7_5": (7, 5), "not_larger": (8, 9), "not_smaller": (3, 12)}
"""Sizes of height and width; of the last two keep_aspect_ratio_policy makes others."""

REGION = ((-0.25, 0.125), (0.75, 1.375))
"""Of height and width, where it begins and where it ends: partly outside."""


def spaces() -> Iterator[ParameterSpace]:
    """In a stable order."""
    yield ParameterSpace(
        "Resize",
        {"batch": 1, "height": 4, "width": 6},
        _resized,
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
            "target": (*FACTORS, *SIZES),
            "axes": ((2, 3), None, (-1, -2)),
            "antialias": (0, 1),
            "exclude_outside": (0, 1),
        },
        {"width": WIDTHS, "height": WIDTHS[:5]},
        ("batch",),
        _is_resize,
    )


def _is_resize(values: Values) -> bool:
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


def _resized(values: Values, rng: np.random.Generator) -> Parts:
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
    scales = np.array(_of_axes(axes, FACTORS[target], (1.0, 1.0)), np.float32) if target in FACTORS else None
    sizes = np.array(_of_axes(axes, SIZES[target], x.shape[:2]), np.int64) if target in SIZES else None
    region: Array | None = None
    if transform == CROP:
        starts, ends = (_of_axes(axes, REGION[i], (float(i),) * 2) for i in (0, 1))
        region = np.array((*starts, *ends), np.float32)
        attributes["extrapolation_value"] = 2.5
    inputs = (x, region, scales) if sizes is None else (x, region, scales, sizes)
    return Parts(inputs, attributes, (1, 2, 3))


def _of_axes(axes: tuple[int, ...] | None, pair: tuple[float, float], others: tuple[float, ...]) -> tuple[float, ...]:
    """The numbers of height and width in the order of the axes; of all axes where none are chosen."""
    if axes is None:
        return (*others, *pair)
    return tuple(pair[(axis % 4) - 2] for axis in axes)
