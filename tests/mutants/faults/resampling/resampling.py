"""Faults of Resize, Upsample and GridSample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from tests.mutants.mutant import attribute, inputs, misread


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


def _floor_of_corners(node: Node) -> Node:
    corners = node.text("coordinate_transformation_mode", "") == "align_corners"
    if not corners or node.text("nearest_mode", "") != "ceil":
        return node
    return replace(node, attributes={**node.attributes, "nearest_mode": "floor"})


MUTANTS = (
    attribute("Resize", "coordinate_transformation_mode", None),
    attribute("Resize", "coordinate_transformation_mode", "pytorch_half_pixel"),
    attribute("Resize", "nearest_mode", None),
    misread("Resize", "align_corners rounds down where it is to round up", _floor_of_corners),
    attribute("Resize", "nearest_mode", "round_prefer_ceil"),
    attribute("Resize", "mode", None),
    attribute("Resize", "cubic_coeff_a", None),
    attribute("Resize", "exclude_outside", None),
    attribute("Resize", "antialias", None),
    attribute("Resize", "extrapolation_value", None),
    attribute("Resize", "keep_aspect_ratio_policy", None),
    misread("Resize", "axes are sorted", axes_sorted),
    inputs("Resize", "roi is interleaved", roi_interleaved),
    attribute("Upsample", "mode", None),
    misread("Upsample", "pixels have their centres at one half", as_resize),
    attribute("GridSample", "mode", None),
    attribute("GridSample", "padding_mode", None),
    attribute("GridSample", "padding_mode", "border"),
    attribute("GridSample", "align_corners", None),
    inputs("GridSample", "the grid lists the outermost dimension first", grid_reversed),
    inputs("GridSample", "the grid is clamped to [-1, 1]", grid_clamped),
)
