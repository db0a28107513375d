"""com.microsoft::CDist: the distance of each row of A from each row of B.

Source: ONNX Runtime's ContribOperators.md, which names metrics and gives no formula; of those that scipy's page of
`cdist` defines without parameters, four have cases. Bound: the squares may be taken apart, |a|^2 + |b|^2 - 2 a b, as a
matrix product computes them, which loses what cancels (Higham, 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::CDist",)

ONLY_MATRICES = "a matrix has 2 dimensions"


@dataclass(frozen=True, kw_only=True)
class DistanceSample(DrawnSample):
    """shapes: of A and B. values: `plain`; `far`, all far from 0; `integers`; `same`, B begins with the rows of A;
    `nan`, one element of A is NaN; `large`, whose squares leave float16."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((3, 5), (4, 5))
    values: str = "plain"


def samples() -> Iterator[DistanceSample]:
    yield DistanceSample(name="defaults", every_dtype=True)
    for metric in ("sqeuclidean", "euclidean", "cityblock", "chebyshev"):
        own: Mapping[str, Attribute] = {"metric": metric}
        yield DistanceSample(name=metric, attributes=own, every_dtype=True)
        if metric in ("cityblock", "chebyshev"):
            continue
        for values in ("far", "integers", "same", "nan", "large"):
            yield DistanceSample(name=f"{metric}_{values}", attributes=own, values=values, every_dtype=True)
        for m, k, n in ((1, 1, 1), (1, 17, 33), (17, 1, 2), (2, 257, 3), (1025, 3, 2), (2, 3, 1025), (33, 65, 31)):
            yield DistanceSample(name=f"{metric}_{m}_by_{k}_by_{n}", attributes=own, shapes=((m, k), (n, k)))
        yield DistanceSample(name=f"{metric}_no_rows_of_a", attributes=own, shapes=((0, 3), (2, 3)))
        yield DistanceSample(name=f"{metric}_no_rows_of_b", attributes=own, shapes=((2, 3), (0, 3)))
    yield expect_refusal(DistanceSample(name="columns_differ", shapes=((3, 5), (4, 6))))
    yield expect_refusal(DistanceSample(name="a_of_rank_1", shapes=((5,), (4, 5))))
    yield expect_refusal(DistanceSample(name="b_of_rank_3", shapes=((3, 5), (1, 4, 5))))
    yield expect_refusal(DistanceSample(name="unknown_metric", attributes={"metric": "taxicab"}))


def draw(sample: DistanceSample, context: CaseContext) -> Mapping[str, Array]:
    a, b = (context.rng.uniform(-2, 2, shape) for shape in sample.shapes)
    match sample.values:
        case "far":
            a, b = a + 50, b + 50
        case "integers":
            a, b = np.rint(4 * a), np.rint(4 * b)
        case "same":
            b[: len(a)] = a
        case "nan":
            a[1, 2] = np.nan
        case "large":
            a, b = a * 300, b * 300
    return {"A": a.astype(context.dtype), "B": b.astype(context.dtype)}


def truth(node: Node) -> Truth:
    a, b, metric = node.array("A"), node.array("B"), node.text("metric", "sqeuclidean")
    if metric not in ("sqeuclidean", "euclidean", "cityblock", "chebyshev"):
        return Refusal(f"there is no metric '{metric}'")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        return Refusal(f"A and B must be matrices with as many columns, not of shape {a.shape} and {b.shape}")
    wide_a, wide_b = a.astype(np.float64)[:, None], b.astype(np.float64)[None]
    apart = np.abs(wide_a - wide_b)
    gamma = propagation.gamma(a.shape[1] + 4, a.dtype)
    if metric in ("cityblock", "chebyshev"):
        exact = apart.sum(-1) if metric == "cityblock" else apart.max(-1, initial=0)
        error = gamma * exact
    else:
        exact = (apart**2).sum(-1)
        error = gamma * ((np.abs(wide_a) + np.abs(wide_b)) ** 2).sum(-1)
        if metric == "euclidean":
            exact, error = np.sqrt(exact), _move_root(exact, error)
    bound = bounds.ulp(4.0, (bounds.cite_sum(a.shape[1]), bounds.OPENCL), a.dtype, np.nan_to_num(error))
    return Outputs((bounds.round_output("C", exact, a.dtype, bound),))


def _move_root(square: Array, error: Array) -> Array:
    """How far the root of a square with such an error may be; of one below 0 the magnitude may be taken."""
    root = np.sqrt(square)
    moved: Array = np.maximum(np.sqrt(square + error) - root, root - np.sqrt(np.maximum(square - error, 0)))
    return moved


OPERATORS = (Drawn("CDist", samples, draw, truth).declare(without_rank_dtypes=ONLY_MATRICES, propagates=("NaN",)),)
