"""TensorScatter-24: new positions written into a cache of keys or values, for each sample of a batch where it ends.

Source: the TensorScatter page. past_cache and update differ in the sequence dimension alone, `axis`, by default -2 and
never 0; write_indices [batch] is zero where it is left out. In `linear` mode what is written has to fit, in `circular`
mode indices are taken modulo the cache's length. An index below 0 the page does not exclude in circular mode: no case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import expect_refusal
from epcheck.generators.families.movement import (
    Argument,
    Drawn,
    MovementSample,
    RefusedError,
    axis_of,
    first_input,
    movement,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import NO_KERNEL

DECLARES = ("TensorScatter",)

Shape = tuple[int, ...]


def _scatter(name: str, cache: Shape, update: Shape, indices: Shape | None = None, *, mode: str | None = None,
             axis: int | None = None, every_dtype: bool = False, special: bool = False) -> MovementSample:  # fmt: skip
    """indices: None leaves write_indices out, as None leaves out the attributes."""
    arguments: dict[str, Argument] = {"update": Drawn(update, special=special)}
    if indices is not None:
        arguments["write_indices"] = np.array(indices, np.int64)
    arguments |= {key: value for key, value in (("mode", mode), ("axis", axis)) if value is not None}
    return MovementSample(name=name, shape=cache, arguments=arguments, every_dtype=every_dtype, special=special)


def samples() -> Iterator[MovementSample]:
    cache, update = (2, 3, 8, 4), (2, 3, 2, 4)
    yield _scatter("defaults", cache, update, every_dtype=True)
    yield _scatter("write_indices", cache, update, (1, 5), every_dtype=True)
    yield _scatter("every_value", (1, 4, 16), (1, 2, 16), (1,), every_dtype=True, special=True)
    yield _scatter("up_to_the_end", cache, update, (6, 0))
    yield _scatter("one_token", cache, (2, 3, 1, 4), (7, 3), every_dtype=True)
    yield _scatter("whole_cache", cache, cache, (0, 0))
    for mode in ("linear", "circular"):
        yield _scatter(f"mode_{mode}", cache, update, (2, 4), mode=mode, every_dtype=mode == "circular")
    for name, indices in (("wraps", (7, 6)), ("beyond", (8, 23)), ("far_beyond", (2**40, 2**40 + 7))):
        yield _scatter(f"circular_{name}", cache, (2, 3, 3, 4), indices, mode="circular", every_dtype=name == "wraps")
    yield _scatter("circular_whole_cache", cache, cache, (3, 5), mode="circular")
    for axis, size in ((1, (2, 2, 8, 4)), (2, update), (3, (2, 3, 8, 2)), (-1, (2, 3, 8, 2)), (-3, (2, 2, 8, 4))):
        yield _scatter(f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}", cache, size, (1, 0), axis=axis)
    for rank in range(2, 9):
        shape = (2, *(2 + at % 2 for at in range(rank - 1)))
        yield replace(_scatter(f"rank_{rank}_axis_1", shape, (2, 1, *shape[2:]), (1, 0), axis=1), rank=rank)
        yield replace(_scatter(f"rank_{rank}_last_axis", shape, (*shape[:-1], 1), (0, 1), axis=-1), rank=rank)
    yield replace(_scatter("rank_3_default_axis", (2, 5, 3), (2, 2, 3), (3, 0)), rank=3)
    yield _scatter("one_sample", (1, 1, 1, 1), (1, 1, 1, 1), (0,))
    yield _scatter("size_0_update", cache, (2, 3, 0, 4), (1, 2))
    yield _scatter("size_0_batch", (0, 3, 8, 4), (0, 3, 2, 4), ())
    yield _scatter("size_0_beside", (2, 0, 8, 4), (2, 0, 2, 4), (1, 2))
    yield _scatter("length_1025", (1, 2, 1025, 3), (1, 2, 600, 3), (400,))
    yield _scatter("many_samples", (67, 1, 4, 2), (67, 1, 1, 2), tuple(at % 4 for at in range(67)))
    yield from map(expect_refusal, _list_refused(cache, update))


def _list_refused(cache: Shape, update: Shape) -> Iterator[MovementSample]:
    yield _scatter("beyond_the_end", cache, update, (7, 0))
    yield _scatter("beyond_the_end_of_one_sample", cache, (2, 3, 3, 4), (0, 6), mode="linear")
    yield _scatter("negative_index", cache, update, (-1, 0))
    yield _scatter("update_longer_than_cache", cache, (2, 3, 9, 4), (0, 0))
    yield _scatter("update_of_other_heads", cache, (2, 2, 2, 4), (0, 0))
    yield _scatter("update_of_other_rank", cache, (2, 3, 2), (0, 0))
    yield _scatter("axis_0", cache, (1, 3, 8, 4), (0, 0), axis=0)
    yield _scatter("axis_minus_rank", cache, (1, 3, 8, 4), (0, 0), axis=-4)
    yield _scatter("axis_at_rank", cache, update, (0, 0), axis=4)
    yield _scatter("indices_of_other_batch", cache, update, (0, 0, 0))
    yield _scatter("mode", cache, update, (0, 0), mode="mirror")


def scatter_update(node: Node) -> Array:
    """The cache with the update written where each sample's index says."""
    cache, update = first_input(node), node.array("update")
    axis = axis_of(node, cache.ndim, -2)
    if axis == 0:
        raise RefusedError("axis 0 is the batch, not the sequence")
    mode = node.text("mode", "linear")
    if mode not in ("linear", "circular"):
        raise RefusedError(f"there is no mode '{mode}'")
    if update.ndim != cache.ndim or any(size != cache.shape[at] for at, size in enumerate(update.shape) if at != axis):
        raise RefusedError(f"update has the shape {update.shape}, the cache {cache.shape}; only axis {axis} may differ")
    most, length = cache.shape[axis], update.shape[axis]
    if length > most:
        raise RefusedError(f"update has {length} positions, the cache {most}")
    indices = node.value("write_indices")
    if indices is None:
        indices = np.zeros(cache.shape[0], np.int64)
    if indices.shape != cache.shape[:1]:
        raise RefusedError(f"write_indices has the shape {indices.shape} instead of {cache.shape[:1]}")
    if mode == "linear" and bool(((indices < 0) | (indices + length > most)).any()):
        raise RefusedError(f"{length} positions from {indices.tolist()} on do not fit into {most}")
    present = cache.copy()
    for sample, index in enumerate(indices.tolist()):
        places = [(index + at) % most for at in range(length)]
        np.moveaxis(present[sample], axis - 1, 0)[places] = np.moveaxis(update[sample], axis - 1, 0)
    return present


OPERATORS = (
    movement(
        "TensorScatter", samples, scatter_update, NO_KERNEL, parameters=frozenset({"write_indices"}), established=24
    ),
)
