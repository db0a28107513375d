"""Faults of Resize, Upsample and GridSample."""

from __future__ import annotations

from dataclasses import replace

import fault
import numpy as np

from epcheck.generators.node import Node

Array = fault.Array


def axes_sorted(node: Node) -> Node:
    """scales and sizes taken for the axes in ascending order."""
    axes = node.attributes.get("axes")
    return replace(node, attributes={**node.attributes, "axes": tuple(sorted(axes))}) if axes else node  # type: ignore[type-var,arg-type]


def roi_interleaved(name: str, value: Array) -> Array:
    """roi read as start, end, start, end instead of all starts first."""
    return value.reshape(-1, 2).T.reshape(-1) if name == "roi" else value


def as_resize(node: Node) -> Node:
    """Upsample taken for the newest Resize, whose default transformation is half_pixel."""
    return replace(node, since_version=13, op_type="Resize")


def grid_reversed(name: str, value: Array) -> Array:
    return value[..., ::-1] if name == "grid" else value


def grid_clamped(name: str, value: Array) -> Array:
    return np.clip(value, -1, 1) if name == "grid" else value


FAULTS = (
    fault.attribute("Resize", "coordinate_transformation_mode", None),
    fault.attribute("Resize", "coordinate_transformation_mode", "pytorch_half_pixel"),
    fault.attribute("Resize", "nearest_mode", None),
    fault.attribute("Resize", "nearest_mode", "round_prefer_ceil"),
    fault.attribute("Resize", "mode", None),
    fault.attribute("Resize", "cubic_coeff_a", None),
    fault.attribute("Resize", "exclude_outside", None),
    fault.attribute("Resize", "antialias", None),
    fault.attribute("Resize", "extrapolation_value", None),
    fault.attribute("Resize", "keep_aspect_ratio_policy", None),
    fault.misread("Resize", "axes are sorted", axes_sorted),
    fault.inputs("Resize", "roi is interleaved", roi_interleaved),
    fault.attribute("Upsample", "mode", None),
    fault.misread("Upsample", "pixels have their centres at one half", as_resize),
    fault.attribute("GridSample", "mode", None),
    fault.attribute("GridSample", "padding_mode", None),
    fault.attribute("GridSample", "padding_mode", "border"),
    fault.attribute("GridSample", "align_corners", None),
    fault.inputs("GridSample", "the grid lists the outermost dimension first", grid_reversed),
    fault.inputs("GridSample", "the grid is clamped to [-1, 1]", grid_clamped),
)
