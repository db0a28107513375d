"""Nodes whose places or limits their pages leave open: locations on a border, indices into one of two shapes, limits
that exclude each other."""

from __future__ import annotations

import numpy as np

from epcheck.generators.families import narrow
from epcheck.generators.node import Node
from epcheck.generators.operators.convolution_pooling import unpooling

CLIP_BY_PAGE = 13
"""The version of Clip whose page says what comes out where the minimum is above the maximum."""

ROUNDED = 2.0**-23
"""How far the division of float32 may be off, relative to the quotient."""

NEAR = 8.0
"""Units of the grid's dtype, times a location, within which rounding may move it over a threshold."""


def check_grid_sample(node: Node) -> str:
    """GridSample, nearest: a location between two elements, which rounding moves to one or the other."""
    x, grid = node.inputs[0], node.value("grid")
    if x is None or grid is None or node.text("mode", "linear") != "nearest" or grid.dtype.kind != "f":
        return ""
    sizes = np.array(x.value.shape[:1:-1], np.float64)
    if grid.shape[-1:] != sizes.shape:
        return ""
    wide = grid.astype(np.float64)
    aligned = bool(node.integer("align_corners", 0))
    at = (wide + 1) / 2 * (sizes - 1) if aligned else ((wide + 1) * sizes - 1) / 2
    unit = float(np.finfo(grid.dtype).eps)
    near = np.abs(at - np.floor(at) - 0.5) <= NEAR * unit * (np.abs(at) + sizes)
    return "a location is half-way between two elements" if bool(near.any()) else ""


def check_max_unpool(node: Node) -> str:
    """MaxUnpool: two values at one place; an output_shape that is none of X's batch and channels, or one in which the
    indices may count in two ways."""
    places, x, wanted = node.value("I"), node.inputs[0], node.value("output_shape")
    if places is not None and np.unique(places).size < places.size:
        return "two values have one place"
    if wanted is None or x is None:
        return ""
    inferred = unpooling.inferred_shape(node)
    sizes = tuple(map(int, wanted.reshape(-1)))
    if isinstance(inferred, str) or len(sizes) != len(inferred):
        return ""
    if sizes[:2] != inferred[:2]:
        return "output_shape has other batches or channels"
    return "indices may count in output_shape or in the inferred shape" if sizes[3:] != inferred[3:] else ""


def check_float8(node: Node) -> str:
    """QuantizeLinear to 8-bit floating point: a quotient that the rounding of float32 moves over the middle between two
    values of the type."""
    x, scale, zero = node.inputs[0], node.value("y_scale"), node.value("y_zero_point")
    if x is None or scale is None or scale.size != 1 or zero is None or zero.dtype.name not in narrow.FLOAT8:
        return ""
    with np.errstate(all="ignore"):
        exact = x.value.astype(np.float64) / float(scale.reshape(-1)[0])
        low, high = (narrow.round_values(exact * (1 + sign * ROUNDED), zero.dtype.name, node) for sign in (-1, 1))
    return "" if np.array_equal(low, high, equal_nan=True) else "a quotient is beside the middle between two values"


def check_clip(node: Node) -> str:
    """Clip: before version 13 no page says what a minimum above the maximum gives."""
    if node.since_version >= CLIP_BY_PAGE:
        return ""
    limits = [node.value(name) for name in ("min", "max")]
    low, high = (
        node.number(name, default) if limit is None else float(limit.reshape(-1)[0]) if limit.size else default
        for name, limit, default in zip(("min", "max"), limits, (-np.inf, np.inf), strict=True)
    )
    return "the minimum is above the maximum" if low > high else ""


def check_bias(node: Node) -> str:
    """MultiHeadAttention: whether the bias is added to keys and values that are given in four dimensions, which come
    from elsewhere than the input projection, the page does not say."""
    key = node.value("key")
    is_of_heads = node.op_type == "MultiHeadAttention" and key is not None and key.ndim == 4
    return "a bias beside keys of four dimensions" if is_of_heads and node.value("bias") is not None else ""


def check_roi_align(node: Node) -> str:
    """RoiAlign: the page is silent of what lies beyond the image, and of a region without extent."""
    x, rois = node.inputs[0], node.value("rois")
    if x is None or rois is None or rois.ndim != 2 or rois.shape[1] != 4 or x.value.ndim != 4 or not rois.size:
        return ""
    scaled = rois.astype(np.float64) * node.number("spatial_scale", 1.0)
    starts, ends = scaled[:, :2], scaled[:, 2:]
    if bool((ends <= starts).any()):
        return "a region has no extent"
    height, width = x.value.shape[2:]
    return "a region reaches beyond the image" if bool(((starts < 0) | (ends > (width, height))).any()) else ""


def check_mask(node: Node) -> str:
    """com.microsoft::Attention: the shapes of a mask that ContribOperators.md lists begin with the batch."""
    mask, x = node.value("mask_index"), node.inputs[0]
    if mask is None or x is None or mask.ndim < 2:
        return ""
    return "the mask has another batch than the input" if mask.shape[0] != x.value.shape[0] else ""
