"""com.microsoft::DynamicTimeWarping: the cheapest path through a matrix of costs.

Source: ONNX Runtime's ContribOperators.md. Of paths that cost the same it names none, so that the costs are random and
the second cheapest step of each point is dearer by more than float32 rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Node
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("com.microsoft::DynamicTimeWarping",)

TRIES, MOST_COSTS = 300, 400_000
"""Matrices that are drawn until one has a clear path, and costs in all of them, at most."""
MATRIX = "the input has 2 dimensions, or 3 with a first one of size 1"


@dataclass(frozen=True, kw_only=True)
class WarpingSample(DrawnSample):
    """shape: of the input. values: `random`, `negative`, all below 0, `diagonal`, cheap near the diagonal, or
    `near`, -1 and some 2^-13."""

    shape: tuple[int, ...] = (5, 7)
    values: str = "random"


def samples() -> Iterator[WarpingSample]:
    yield WarpingSample(name="defaults", every_dtype=True)
    for rows, columns in (
        (1, 1),
        (1, 9),
        (9, 1),
        (2, 2),
        (7, 5),
        (6, 6),
        (3, 33),
        (33, 65),
        (257, 2),
        (2, 1025),
        (100, 120),
    ):
        for values in ("random", "negative", "diagonal")[: 2 if rows == columns == 1 else 3]:
            yield WarpingSample(name=f"{values}_{rows}_by_{columns}", shape=(rows, columns), values=values)
    for rows, columns in ((8, 8), (5, 9), (12, 12), (7, 20), (16, 16), (10, 11)):
        yield WarpingSample(name=f"near_{rows}_by_{columns}", shape=(rows, columns), values="near")
    yield WarpingSample(name="rank_3", shape=(1, 5, 7), every_dtype=True)
    yield expect_refusal(WarpingSample(name="batch_of_2", shape=(2, 5, 7)))
    yield expect_refusal(WarpingSample(name="rank_1", shape=(5,)))
    yield expect_refusal(WarpingSample(name="rank_4", shape=(1, 1, 5, 7)))


def draw(sample: WarpingSample, context: CaseContext) -> Mapping[str, Array]:
    """Costs drawn again until no step is a matter of rounding."""
    shape = sample.shape
    for _ in range(max(1, min(TRIES, MOST_COSTS // max(prod(shape), 1)))):
        costs = context.rng.uniform(0, 1, shape)
        if sample.values == "negative":
            costs = costs - 2
        if sample.values == "diagonal":
            apart = np.arange(shape[0])[:, None] / shape[0] - np.arange(shape[1]) / shape[1]
            costs = costs + 4 * np.abs(apart)
        if sample.values == "near":
            costs = context.rng.integers(0, 5, shape) / 2**13 - 1
        costs = costs.astype(np.float32)
        if sample.refused or find_path(costs.reshape(shape[-2:]))[1]:
            break
    return {"input": costs}


def find_path(costs: Array) -> tuple[Array, bool]:
    """(the path, int32 [2, x]; whether every step on it is cheaper than the others by more than rounding)."""
    rows, columns = costs.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0
    for r in range(rows):
        for c in range(columns):
            total[r + 1, c + 1] = costs[r, c] + min(total[r, c], total[r, c + 1], total[r + 1, c])
    place, path, certain = (rows - 1, columns - 1), [], True
    unit = 2.0**-23 * (rows + columns) * float(np.abs(costs).sum(axis=-1).max())
    while True:
        path.append(place)
        if place == (0, 0):
            break
        r, c = place
        steps = sorted((float(total[at[0] + 1, at[1] + 1]), at) for at in ((r - 1, c - 1), (r - 1, c), (r, c - 1))
                       if min(at) >= 0)  # fmt: skip
        certain &= len(steps) == 1 or steps[1][0] - steps[0][0] > min(unit, 1e-3)
        place = steps[0][1]
    return np.array(path[::-1], np.int32).T, certain


def truth(node: Node) -> Truth:
    costs = node.array("input")
    if costs.ndim not in (2, 3) or (costs.ndim == 3 and len(costs) != 1):
        return Refusal(f"the input must have the shape [M, N] or [1, M, N], not {costs.shape}")
    path, certain = find_path(costs.reshape(costs.shape[-2:]))
    assert certain, "another path costs as much"
    return Outputs((Output("output", np.ascontiguousarray(path)),))


OPERATORS = (Drawn("DynamicTimeWarping", samples, draw, truth, varied=("F",)).declare(without_rank_dtypes=MATRIX),)
