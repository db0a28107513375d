"""AffineGrid-20: the sampling grid of a batch of affine transforms.

Source: the operator's page. Positions are evenly spaced from -1 to 1: without `align_corners` these are the outer edges
of the first and the last pixel, (2 i + 1) / n - 1; with it their centers, 2 i / (n - 1) - 1. Of a single pixel with
`align_corners` the page does not say where it is: there is no case. The bound is that of two roundings of a position,
which may be a multiple of a rounded step, and of a sum of three or four products (`running_error`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from epcheck.generators import data
from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate, output, product, term, total, unit_of
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("AffineGrid",)

POSITION_ROUNDINGS = 4
"""Of the step, of its product with the index, of the start and of their sum; each of at most twice the border 1."""


@dataclass(frozen=True, kw_only=True)
class AffineGridSample(Sample):
    """size: of the image, batch and channels first. theta: its values, see `_theta`; its shape follows from the size,
    unless given. align: None leaves the attribute out."""

    size: tuple[int, ...] = (2, 3, 4, 5)
    theta: str = "random"
    theta_shape: tuple[int, ...] | None = None
    align: int | None = None


def samples() -> Iterator[AffineGridSample]:
    yield AffineGridSample(name="defaults", every_dtype=True)
    for align in (0, 1):
        suffix = "corners_aligned" if align else "not_aligned"
        for rank, size in ((2, (2, 3, 4, 5)), (3, (2, 3, 4, 5, 3))):
            for theta in ("identity", "random", "mirrored", "turned", "moved", "zero"):
                yield AffineGridSample(
                    name=f"{rank}d_{theta}_{suffix}",
                    size=size,
                    theta=theta,
                    align=align,
                    every_dtype=theta == "random",
                )
        yield AffineGridSample(name=f"two_pixels_{suffix}", size=(1, 1, 2, 2), align=align)
        yield AffineGridSample(name=f"long_rows_{suffix}", size=(1, 1, 2, 1025), align=align)
        yield AffineGridSample(name=f"long_columns_{suffix}", size=(1, 2, 1031, 3), align=align)
        yield AffineGridSample(name=f"more_than_a_thread_group_{suffix}", size=(1, 1, 33, 37), align=align)
        yield AffineGridSample(name=f"many_batches_{suffix}", size=(65, 1, 2, 3), align=align)
        yield AffineGridSample(name=f"no_channels_{suffix}", size=(2, 0, 3, 4), align=align)
        yield AffineGridSample(name=f"deep_{suffix}", size=(1, 1, 65, 2, 3), align=align)
        yield AffineGridSample(name=f"large_values_{suffix}", theta="large", align=align)
    yield AffineGridSample(name="one_pixel", size=(1, 1, 1, 1))
    yield AffineGridSample(name="one_row", size=(2, 1, 1, 7))
    yield AffineGridSample(name="one_voxel", size=(1, 1, 1, 1, 1))
    yield AffineGridSample(name="one_slice", size=(1, 1, 1, 4, 3))
    yield expect_refusal(AffineGridSample(name="size_of_3", size=(2, 3, 4), theta_shape=(2, 2, 3)))
    yield expect_refusal(AffineGridSample(name="size_of_6", size=(2, 3, 4, 5, 2, 2), theta_shape=(2, 3, 4)))
    yield expect_refusal(AffineGridSample(name="theta_of_3d_for_2d", theta_shape=(2, 3, 4)))
    yield expect_refusal(AffineGridSample(name="theta_of_2d_for_3d", size=(2, 3, 4, 5, 2), theta_shape=(2, 2, 3)))
    yield expect_refusal(AffineGridSample(name="theta_square", theta_shape=(2, 3, 3)))
    yield expect_refusal(AffineGridSample(name="theta_without_batch", theta_shape=(2, 3)))
    yield expect_refusal(AffineGridSample(name="other_batch", theta_shape=(3, 2, 3)))


def bindings(sample: AffineGridSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=dtypes == ("float32",), newest=True)


def node(sample: AffineGridSample, context: CaseContext) -> Node:
    """theta [N, r, r + 1] of the case's dtype, size int64 [r + 2]; r is 2 or 3."""
    rank = len(sample.size) - 2
    theta = Operand("theta", _theta(sample, sample.theta_shape or (sample.size[0], rank, rank + 1), context))
    size = Operand("size", np.array(sample.size, np.int64), parameter=True)
    attributes: dict[str, Attribute] = {} if sample.align is None else {"align_corners": sample.align}
    return Node("AffineGrid", "", context.since_version, (theta, size), ("grid",), attributes)


def _theta(sample: AffineGridSample, shape: tuple[int, ...], context: CaseContext) -> Array:
    random = context.rng.uniform(-2, 2, shape)
    unmoved = np.broadcast_to(np.eye(shape[-2], shape[-1]), shape)
    match sample.theta:
        case "identity":
            random = unmoved
        case "mirrored":
            random = -unmoved
        case "turned":
            random = np.broadcast_to(np.roll(np.eye(shape[-2], shape[-2]), 1, axis=0), (*shape[:-1], shape[-2]))
            random = np.concatenate([random, np.zeros((*shape[:-1], 1))], axis=-1)
        case "moved":
            random = unmoved.copy()
            random[..., -1] = context.rng.uniform(-3, 3, shape[:-1])
        case "zero":
            random = np.zeros(shape)
        case "large":
            return data.distinct(shape, context.dtype, context.rng)
    return random.astype(context.dtype)


def positions(length: int, align: bool) -> Array:
    """The places of the pixels along an axis, float64."""
    index = np.arange(length, dtype=np.float64)
    return 2 * index / (length - 1) - 1 if align else (2 * index + 1) / length - 1


def truth(node: Node) -> Truth:
    """The innermost coordinate first: x along the last axis of the image."""
    theta, size = node.array("theta"), tuple(int(n) for n in node.array("size"))
    spatial = size[2:]
    if len(spatial) not in (2, 3):
        return Refusal(f"size must have 4 or 5 elements, not {len(size)}")
    if theta.shape != (size[0], len(spatial), len(spatial) + 1):
        return Refusal(f"theta must have the shape {(size[0], len(spatial), len(spatial) + 1)}, not {theta.shape}")
    unit = unit_of(theta.dtype)
    align = bool(node.integer("align_corners", 0))
    axes = np.meshgrid(*(positions(length, align) for length in spatial), indexing="ij")
    wide = theta.astype(np.float64)
    coordinates = []
    for row in range(len(spatial)):
        terms = []
        for column, axis in enumerate(reversed(axes)):
            factor = wide[:, row, column].reshape(-1, *(1,) * len(spatial))
            place = np.broadcast_to(axis, (size[0], *spatial))
            moved = Approximate(place, np.full(place.shape, 2 * POSITION_ROUNDINGS * unit))
            terms.append(product(Approximate.exact(np.broadcast_to(factor, place.shape)), moved))
        shift = np.broadcast_to(wide[:, row, -1].reshape(-1, *(1,) * len(spatial)), (size[0], *spatial))
        coordinates.append(total(unit, *terms, term(Approximate.exact(shift))))
    found = Approximate(np.stack([c.value for c in coordinates], -1), np.stack([c.error for c in coordinates], -1))
    return Outputs((output("grid", found, theta.dtype),))


OPERATORS = (Operator("AffineGrid", samples, bindings, node, truth, NO_KERNEL, varied=("T1",)),)
