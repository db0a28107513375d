"""com.microsoft::QGemm: A B + C of quantised matrices, as floats or quantised.

Source: ONNX Runtime's ContribOperators.md. C is an integer whose scale is alpha a_scale b_scale, so that Y stands for
alpha a_scale b_scale ((A - a_zero_point) (B - b_zero_point) + C). The sum is exact in 32 bits; its product with the
scales is a float, rounded to a level where y_scale is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import estimate
from epcheck.generators.bounds.estimate import Precision
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.oracle_math import quantization
from epcheck.generators.oracle_math.quantization import Ends
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("com.microsoft::QGemm",)

Shape = tuple[int, ...]
QUANTISED = ("y_scale", "y_zero_point")
VARIED = ("TA", "TB", "TYZ")
PAIRS = "its dtypes are triples, and a matrix has 2 dimensions"


@dataclass(frozen=True, kw_only=True)
class QGemmSample(DrawnSample):
    """sizes: M, K and N. columns: b_scale and b_zero_point are of each column. c_shape: of C. scales: of A, B and Y.
    zero_points: of A, B and Y; those of columns differ by 1 or 0. fill: of every element of A and B; None is random."""

    sizes: tuple[int, int, int] = (3, 5, 4)
    columns: bool = False
    c_shape: Shape = (4,)
    scales: tuple[float, float, float] = (0.02, 0.03, 0.7)
    zero_points: tuple[Ends, Ends, Ends] = ("middle", "middle", "middle")
    fill: tuple[Ends, Ends] | None = None
    b_shape: Shape = ()


def samples() -> Iterator[QGemmSample]:
    for kind, present in (("float", ()), ("quantised", QUANTISED)):
        for columns in (False, True):
            label = f"{kind}_columns" if columns else kind
            yield QGemmSample(name=label, present=present, columns=columns, every_dtype=True)
            yield QGemmSample(name=f"{label}_bias", present=("C", *present), columns=columns, every_dtype=True)
            for left, right in ((0, 1), (1, 0), (1, 1)):
                turned: Mapping[str, Attribute] = {"transA": left, "transB": right}
                yield QGemmSample(name=f"{label}_trans_{left}_{right}", present=("C", *present), columns=columns,
                                  attributes=turned, every_dtype=left == right)  # fmt: skip
            for alpha, name in ((0.0, "0"), (0.5, "half"), (-2.0, "minus_2"), (0.3, "0_3")):
                yield QGemmSample(name=f"{label}_alpha_{name}", present=("C", *present), columns=columns,
                                  attributes={"alpha": alpha}, every_dtype=alpha == -2.0)  # fmt: skip
        shapes: tuple[Shape, ...] = ((), (1,), (1, 4), (3, 1), (3, 4), (1, 1))
        for shape in shapes:
            name = "_by_".join(map(str, shape)) or "scalar"
            yield QGemmSample(
                name=f"{kind}_c_{name}", present=("C", *present), c_shape=shape, every_dtype=shape == (3, 1)
            )
        for end in ("low", "high"):
            points = (end, end, end)
            yield QGemmSample(name=f"{kind}_zero_points_{end}", present=present, zero_points=points, every_dtype=True)
            for other in ("low", "high"):
                yield QGemmSample(name=f"{kind}_all_{end}_by_{other}", present=present, fill=(end, other),
                                  zero_points=("middle", "low", "low"), every_dtype=True)  # fmt: skip
        yield QGemmSample(
            name=f"{kind}_exact_scales", present=("C", *present), scales=(0.5, 0.25, 64.0), every_dtype=True
        )
        for sizes in ((1, 1, 1), (1, 17, 1), (17, 1, 33), (2, 257, 3), (1025, 2, 3), (2, 3, 1025), (33, 65, 31)):
            name = "_by_".join(map(str, sizes))
            yield QGemmSample(name=f"{kind}_{name}", present=("C", *present), sizes=sizes, c_shape=(1, sizes[2]),
                              columns=True, scales=(0.02, 0.03, 4.0))  # fmt: skip
        for sizes, name in (((0, 5, 4), "no_rows"), ((3, 5, 0), "no_columns"), ((3, 0, 4), "no_inner")):
            yield QGemmSample(name=f"{kind}_{name}", present=present, sizes=sizes)
        yield QGemmSample(name=f"{kind}_no_inner_bias", present=("C", *present), sizes=(3, 0, 4))
    yield expect_refusal(QGemmSample(name="inner_sizes_differ", b_shape=(6, 4)))
    yield expect_refusal(QGemmSample(name="c_of_other_columns", present=("C",), c_shape=(3,)))
    yield expect_refusal(QGemmSample(name="c_of_rank_3", present=("C",), c_shape=(1, 3, 4)))
    yield expect_refusal(QGemmSample(name="a_of_rank_3", present=(), b_shape=(1, 5, 4)))


def draw(sample: QGemmSample, context: CaseContext) -> Mapping[str, Array]:
    """Levels of the whole dtypes; C as large as the sums."""
    rng, (of_a, of_b, of_y) = context.rng, context.dtypes
    rows, inner, columns = sample.sizes
    shapes = [(rows, inner), sample.b_shape or (inner, columns)]
    for place, name in enumerate(("transA", "transB")):
        if sample.attributes.get(name):
            shapes[place] = shapes[place][::-1]
    a, b = (quantization.random_levels(shape, dtype, rng) for shape, dtype in zip(shapes, (of_a, of_b), strict=True))
    if sample.fill is not None:
        a, b = (np.full_like(x, quantization.level(end, x.dtype)) for x, end in zip((a, b), sample.fill, strict=True))
    zero_a, zero_b, zero_y = (
        quantization.level(end, dtype) for end, dtype in zip(sample.zero_points, context.dtypes, strict=True)
    )
    scale_a, scale_b, scale_y = map(np.float32, sample.scales)
    b_scale, b_zero = np.asarray(scale_b), np.array(zero_b, of_b)
    if sample.columns:
        b_scale = (scale_b * (1 + np.arange(columns) % 3)).astype(np.float32)
        b_zero = (zero_b - np.arange(columns) % 2 * (1 if zero_b > 0 else -1)).astype(of_b)
    return {
        "A": a, "a_scale": np.asarray(scale_a), "a_zero_point": np.array(zero_a, of_a), "B": b, "b_scale": b_scale,
        "b_zero_point": b_zero, "C": rng.integers(-20000, 20000, sample.c_shape).astype(np.int32),
        "y_scale": np.asarray(scale_y), "y_zero_point": np.array(zero_y, of_y),
    }  # fmt: skip


def has(sample: QGemmSample, dtypes: tuple[str, ...]) -> bool:
    """Without a zero point of Y nothing has the third type."""
    return "y_zero_point" in sample.present or dtypes[2] == dtypes[0]


def truth(node: Node) -> Truth:
    a, b, c = node.array("A"), node.array("B"), node.value("C")
    if a.ndim != 2 or b.ndim != 2:
        return Refusal(f"A and B must be matrices, not of shape {a.shape} and {b.shape}")
    left = (a.astype(np.int64) - node.array("a_zero_point").astype(np.int64)) if a.size else a.astype(np.int64)
    left = left.T if node.integer("transA", 0) else left
    turned = bool(node.integer("transB", 0))
    right = (b.T if turned else b).astype(np.int64) - node.array("b_zero_point").astype(np.int64)
    if left.shape[1] != right.shape[0]:
        return Refusal(f"A has {left.shape[1]} columns and B {right.shape[0]} rows")
    total = left @ right
    if c is not None:
        try:
            fits = np.broadcast_shapes(c.shape, total.shape) == total.shape
        except ValueError:
            fits = False
        if not fits:
            return Refusal(f"C {c.shape} must be broadcastable to {total.shape}")
        total = total + c
    alpha, a_scale = node.number("alpha", 1.0), float(node.array("a_scale"))
    b_scale = np.broadcast_to(node.array("b_scale").astype(np.float64), total.shape)
    scaled = node.value("y_scale")
    if scaled is None:
        factor = estimate.exact(alpha * a_scale * b_scale)
        single = Precision(np.dtype(np.float32))
        return Outputs((single.output("Y", single.multiply(estimate.exact(total), factor, roundings=4)),))
    return Outputs((_quantise(node, total, alpha * a_scale, b_scale, float(scaled)),))


def _quantise(node: Node, total: Array, factor: float, b_scale: Array, y_scale: float) -> Output:
    """Each column by its own ratio, so that a tie is one only where it is exact."""
    real = np.zeros(total.shape)
    for column in range(total.shape[1]):
        if total.shape[0]:
            ratio = Fraction(factor) * Fraction(float(b_scale[0, column]))
            real[:, column] = quantization.exact_ratio(total[:, column], ratio, Fraction(y_scale))
    exact = quantization.is_power_of_two(np.array([factor, y_scale])).all() & quantization.is_power_of_two(b_scale)
    error = np.where(exact & (np.abs(total) < 2**24), -1.0, abs(real) * 6 * quantization.SINGLE)
    zero_point = node.value("y_zero_point")
    assert zero_point is not None
    return quantization.quantise("Y", real, zero_point, zero_point.dtype, error)


PARAMETERS = ("a_scale", "a_zero_point", "B", "b_scale", "b_zero_point", "C", "y_scale", "y_zero_point")
QGEMM = Drawn("QGemm", samples, draw, truth, PARAMETERS, VARIED, ("uint8", "int8", "uint8"), has=has)

OPERATORS = (QGEMM.declare(without_rank_dtypes=PAIRS),)
