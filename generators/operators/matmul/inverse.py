"""com.microsoft::Inverse: of each square matrix of a batch.

Source: ONNX Runtime's ContribOperators.md. The truth is exact: elimination in integers, rounded once. The bound is that
of elimination with partial pivoting and two triangular solutions, |X - A^-1| <= E |A^-1| / (1 - |E|), where E is
gamma(4 n) |A^-1| |L| |U| (Higham, 14.3); where |E| is 1 or more, nothing can be said of X. "Every matrix in the batch
must be invertible"; what becomes of one that is not, a provider cannot tell from rounding, and no case asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.citation import Citation, CitationKind, Publisher
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Node
from epcheck.generators.operators.matmul.det import multiply_factors, scale_to_integers
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::Inverse",)

SOURCE = Citation(CitationKind.DERIVED, f"{bounds.ACCURACY_AND_STABILITY}, 14.3", Publisher.HIGHAM, "14.3")
NO_SCALARS = "a matrix has 2 dimensions"


@dataclass(frozen=True, kw_only=True)
class InverseSample(DrawnSample):
    """shape: of X. values: what the matrices are, see `draw`."""

    shape: tuple[int, ...] = (3, 3)
    values: str = "dominant"


def samples() -> Iterator[InverseSample]:
    for size in (1, 2, 3, 4, 5, 6, 8, 17, 33):
        yield InverseSample(name=f"size_{size}", shape=(size, size), every_dtype=size in (2, 3, 4, 5))
    for rank in range(3, 9):
        shape = (*(2 + i % 2 for i in range(rank - 2)), 2, 2)
        yield InverseSample(name=f"rank_{rank}", rank=rank, shape=shape)
    for values in ("diagonal", "lower", "upper", "exchanged", "turned", "zero_pivot", "small", "large", "symmetric"):
        for size in (3, 6):
            yield InverseSample(name=f"{values}_{size}", shape=(2, size, size), values=values, every_dtype=size == 3)
    yield InverseSample(name="batches", shape=(5, 3, 3), every_dtype=True)
    yield InverseSample(name="batches_of_batches", shape=(2, 3, 4, 4))
    yield InverseSample(name="more_than_a_thread_group", shape=(1031, 2, 2))
    yield InverseSample(name="batch_of_0", shape=(0, 3, 3))
    yield InverseSample(name="batch_of_2_by_0", shape=(2, 0, 2, 2))
    yield InverseSample(name="batch_of_1", shape=(1, 1, 4, 4))
    yield expect_refusal(InverseSample(name="not_square", shape=(2, 3)))
    yield expect_refusal(InverseSample(name="batches_not_square", shape=(2, 3, 2)))
    yield expect_refusal(InverseSample(name="rank_1", shape=(3,)))
    yield expect_refusal(InverseSample(name="rank_0", shape=()))


def draw(sample: InverseSample, context: CaseContext) -> Mapping[str, Array]:
    """Matrices whose condition is small, so that a bound tells what is wrong."""
    shape, rng = sample.shape, context.rng
    size = shape[-1] if shape else 1
    found = rng.uniform(-1, 1, shape)
    if sample.refused:
        return {"X": found.astype(context.dtype)}
    identity = np.eye(size)
    found = found / size + identity * rng.uniform(1, 2, (*shape[:-1], 1))
    match sample.values:
        case "diagonal":
            found = found * identity
        case "lower":
            found = np.tril(found)
        case "upper":
            found = np.triu(found)
        case "exchanged":
            found = found[..., ::-1, :]
        case "turned":
            found = np.roll(found, 1, axis=-2)
        case "zero_pivot":
            found = np.where(np.eye(size, dtype=bool) & (np.arange(size) < 2), 0.0, np.roll(found, 1, axis=-2))
        case "small":
            found = found / 256
        case "large":
            found = found * 256
        case "symmetric":
            found = (found + np.swapaxes(found, -1, -2)) / 2
    return {"X": found.astype(context.dtype)}


def invert(matrix: Array) -> Array:
    """The exact inverse, rounded to float64: elimination of the matrix beside the identity, in integers, in which every
    division is exact (E. H. Bareiss, 1968). Raises ZeroDivisionError for a singular matrix."""
    size = len(matrix)
    scaled = [scale_to_integers(row) for row in matrix]
    rows = [integers + [int(i == j) for j in range(size)] for i, (integers, _) in enumerate(scaled)]
    previous = 1
    for column in range(size):
        pivot = next((r for r in range(column, size) if rows[r][column]), None)
        if pivot is None:
            raise ZeroDivisionError("the matrix is singular")
        rows[column], rows[pivot] = rows[pivot], rows[column]
        top = rows[column]
        for r in range(size):
            if r != column:
                factor = rows[r][column]
                rows[r] = [(x * top[column] - factor * t) // previous for x, t in zip(rows[r], top, strict=True)]
        previous = top[column]
    powers = [Fraction(2) ** -exponent for _, exponent in scaled]
    return np.array(
        [[float(Fraction(rows[i][size + j], previous) * powers[j]) for j in range(size)] for i in range(size)]
    ).reshape(size, size)


def find_error(matrix: Array, inverse: Array) -> Array:
    """The bound of the module's docstring, of any elimination that takes the largest pivot of a column."""
    size_of = np.abs(inverse)
    first = propagation.gamma(4 * len(matrix), matrix.dtype) * (size_of @ multiply_factors(matrix))
    growth = float(first.sum(axis=1).max(initial=0))
    error: Array = first @ size_of / (1 - growth) if growth < 1 else np.full(matrix.shape, np.inf)
    return error + float(bounds.finfo(matrix.dtype).tiny)


def truth(node: Node) -> Truth:
    x = node.array("X")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return Refusal(f"the last two dimensions of X must be equal; its shape is {x.shape}")
    matrices = x.reshape(-1, *x.shape[-2:]) if x.size else np.zeros((0, *x.shape[-2:]), x.dtype)
    inverses = [invert(matrix) for matrix in matrices]
    errors = [find_error(m, i) for m, i in zip(matrices, inverses, strict=True)]
    exact, error = (np.array(each, np.float64).reshape(x.shape) for each in (inverses, errors))
    return Outputs((bounds.round_output("Y", exact, x.dtype, bounds.ulp(2.0, (SOURCE,), x.dtype, error)),))


OPERATORS = (Drawn("Inverse", samples, draw, truth).declare(without_rank_dtypes=NO_SCALARS),)
