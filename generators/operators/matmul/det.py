"""Det-11 and Det-22: determinants of square matrices.

Source: the operator's page. The truth is exact: rational numbers, rounded once. The bound is that of Gaussian
elimination with partial pivoting, the product of the pivots being the determinant of A + E with |E| at most gamma(n)
times |L| |U|, row by row, and that product having n roundings of its own (Higham, 9.3 and 14.6). What E can change
follows from Hadamard's inequality, of which the determinant of every choice of rows of A and E is a case: the product
of |a_i| + |e_i| less that of |a_i|, |.| being the Euclidean norm of a row. Cofactors for up to 4 rows, which have no
pivots, stay within it. The page does not say what the determinant of a matrix without elements is, nor of one with NaN
or infinities: they have no case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.citation import Citation, CitationKind, Publisher
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("Det",)

ESTABLISHED = 22
SOURCE = Citation(
    CitationKind.DERIVED,
    f"{bounds.ACCURACY_AND_STABILITY}, 9.3 and 14.6, and Hadamard",
    Publisher.HIGHAM,
    "9.3 and 14.6",
)


@dataclass(frozen=True, kw_only=True)
class DetSample(Sample):
    """shape: of X. values: what the matrices are, see `_matrices`. wide: float16 cannot hold the values."""

    shape: tuple[int, ...] = (3, 3)
    values: str = "distinct"
    wide: bool = False


def samples() -> Iterator[DetSample]:
    for size in range(1, 9):
        yield DetSample(name=f"size_{size}", shape=(size, size), every_dtype=size in (2, 3, 4, 5))
    yield DetSample(name="size_17", shape=(17, 17), values="near_identity")
    yield DetSample(name="size_33", shape=(33, 33), values="near_identity")
    for rank in range(3, 9):
        yield DetSample(name=f"rank_{rank}", rank=rank, shape=(*(2 + i % 2 for i in range(rank - 2)), 2, 2))
    yield DetSample(name="batches", shape=(5, 3, 3), every_dtype=True)
    yield DetSample(name="more_than_a_thread_group", shape=(1031, 2, 2))
    yield DetSample(name="large_batches", shape=(41, 27, 3, 3))
    yield DetSample(name="batch_of_0", shape=(0, 3, 3))
    yield DetSample(name="batch_of_2_by_0", shape=(2, 0, 2, 2))
    yield DetSample(name="batch_of_1", shape=(1, 1, 4, 4))
    for values in ("identity", "diagonal", "lower", "upper", "exchanged", "turned", "zero", "zero_pivot", "singular",
                   "integers", "nearly_singular", "hilbert"):  # fmt: skip
        for size in (3, 6):
            yield DetSample(name=f"{values}_{size}", shape=(2, size, size), values=values, every_dtype=size == 3)
    yield DetSample(name="overflows", shape=(2, 2), values="huge", wide=True)
    yield DetSample(name="underflows", shape=(2, 2), values="tiny", wide=True)
    yield expect_refusal(DetSample(name="not_square", shape=(2, 3)))
    yield expect_refusal(DetSample(name="batches_not_square", shape=(2, 3, 2)))
    yield expect_refusal(DetSample(name="rank_1", shape=(3,)))
    yield expect_refusal(DetSample(name="rank_0", rank=0, shape=()))


def bindings(sample: DetSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if sample.wide and dtypes != ("float32",):
        return ()
    known = spread(sample, first=dtypes == ("float32",), newest=since_version == ESTABLISHED, scalar=not sample.shape)
    return tuple(dict.fromkeys("runtime" if way == "initializer" else way for way in known))


def node(sample: DetSample, context: CaseContext) -> Node:
    """X [*, M, M] of the case's dtype."""
    x = Operand("X", _matrices(sample, context).astype(context.dtype).reshape(sample.shape))
    return Node("Det", "", context.since_version, (x,), ("Y",))


def _matrices(sample: DetSample, context: CaseContext) -> Array:
    rng, shape = context.rng, sample.shape
    size = shape[-1] if shape else 1
    found = rng.uniform(-2, 2, shape)
    match sample.values:
        case "near_identity":  # elimination loses less than its pivots have
            found = np.eye(size) + found / (4 * size)
        case "identity":
            found = np.broadcast_to(np.eye(size), shape)
        case "diagonal":
            found = found * np.eye(size)
        case "lower":
            found = np.tril(found)
        case "upper":
            found = np.triu(found)
        case "exchanged":
            found = np.broadcast_to(np.eye(size)[::-1], shape)
        case "turned":
            found = np.broadcast_to(np.roll(np.eye(size), 1, axis=0), shape)
        case "zero":
            found = np.zeros(shape)
        case "zero_pivot":
            found = np.where(np.eye(size, dtype=bool) & (np.arange(size) < 2), 0.0, rng.integers(1, 5, shape))
        case "singular":
            found = rng.integers(-3, 4, shape).astype(np.float64)
            found[..., -1, :] = found[..., 0, :] * 2
        case "integers":
            found = rng.integers(-3, 4, shape).astype(np.float64)
        case "nearly_singular":
            found = np.ones(shape) + np.eye(size) / 64
        case "hilbert":
            found = np.broadcast_to(1 / (np.arange(size)[:, None] + np.arange(size) + 1), shape)
        case "huge":
            found = np.diag([-3e30, 2e30])
        case "tiny":
            found = np.diag([3e-30, 2e-30])
    return np.asarray(found)


def determinant(matrix: Array) -> float:
    """The exact one, rounded to float64: rows as integers times powers of two, and elimination without fractions, in
    which every division is exact (E. H. Bareiss, Sylvester's identity and multistep integer-preserving Gaussian
    elimination, 1968), with the first pivot that is not zero."""
    scaled = [scale_to_integers(row) for row in matrix]
    rows, exponent = [integers for integers, _ in scaled], sum(exponent for _, exponent in scaled)
    sign, previous = 1, 1
    for column in range(len(rows)):
        pivot = next((r for r in range(column, len(rows)) if rows[r][column]), None)
        if pivot is None:
            return 0.0
        if pivot != column:
            rows[column], rows[pivot] = rows[pivot], rows[column]
            sign = -sign
        top = rows[column]
        for r in range(column + 1, len(rows)):
            row, factor = rows[r], rows[r][column]
            for c in range(column + 1, len(rows)):
                row[c] = (row[c] * top[column] - factor * top[c]) // previous
        previous = top[column]
    return float(sign * previous * Fraction(2) ** exponent)


def scale_to_integers(row: Array) -> tuple[list[int], int]:
    """The integers that are the row, times 2 to the exponent that comes with them."""
    ratios = [float(value).as_integer_ratio() for value in row]
    denominator = max(d for _, d in ratios)  # each is a power of two
    return [n * (denominator // d) for n, d in ratios], 1 - denominator.bit_length()


def multiply_factors(matrix: Array) -> Array:
    """|L| |U| of an elimination that takes the largest pivot of a column: float64, its rows in the order of those of
    the matrix."""
    upper, size = matrix.astype(np.float64), len(matrix)
    lower, order = np.zeros((size, size)), np.arange(size)
    for column in range(size):
        pivot = column + int(np.argmax(np.abs(upper[column:, column])))
        for table in (upper, lower, order):
            table[[column, pivot]] = table[[pivot, column]]
        lower[column, column] = 1
        if upper[column, column]:
            lower[column + 1 :, column] = upper[column + 1 :, column] / upper[column, column]
            upper[column + 1 :] -= np.outer(lower[column + 1 :, column], upper[column])
    product = np.empty((size, size))
    product[order] = np.abs(lower) @ np.abs(np.triu(upper))
    return product


def _error(matrix: Array, value: float) -> float:
    """How far from the determinant an elimination may end."""
    gamma = propagation.gamma(max(len(matrix), 4), matrix.dtype)
    rows = np.linalg.norm(matrix.astype(np.float64), axis=1)
    moved = np.prod(rows + gamma * np.linalg.norm(multiply_factors(matrix), axis=1)) - np.prod(rows)
    return float(moved * (1 + gamma) + gamma * abs(value))


def truth(node: Node) -> Truth:
    x = node.array("X")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        return Refusal(f"the last two dimensions of X must be equal; its shape is {x.shape}")
    matrices = x.reshape(-1, *x.shape[-2:]) if x.size else np.zeros((0, *x.shape[-2:]), x.dtype)
    exact = np.array([determinant(matrix) for matrix in matrices]).reshape(x.shape[:-2])
    error = np.array([_error(m, v) for m, v in zip(matrices, exact.ravel(), strict=True)]).reshape(x.shape[:-2])
    bound = bounds.ulp(1.0 + (x.dtype == np.float64), (SOURCE,), x.dtype, error)
    found = bounds.round_output("Y", exact, x.dtype, bound)
    return Outputs((Output("Y", np.asarray(found.value), found.bound, found.exact),))


OPERATORS = (Operator("Det", samples, bindings, node, truth, NO_KERNEL, propagates=("NaN",)),)
