"""DynamicQuantizeLinear-11 -> DML_DYNAMIC_QUANTIZE_LINEAR_OPERATOR_DESC.

Source: the page DynamicQuantizeLinear-11. Nothing but zeros divides by 0, and a range beyond float32 is infinite: no
sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.declaration.undefined_sample import NAN_LEVEL, Answer, UndefinedSample, UndefinedSamples
from epcheck.generators.directml import lowering
from epcheck.generators.directml.descriptions.quantized.linear_quantization import DynamicQuantizeLinear
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import Operator, declare
from epcheck.generators.oracle_math import quantization
from epcheck.generators.truth import Output, Outputs, Truth

DECLARES = ("DynamicQuantizeLinear",)


@dataclass(frozen=True, kw_only=True)
class DynamicSample(Sample):
    """x: shape. values: `random` over [low, high], or `steps`: whole and half steps of a scale that is 2^-6."""

    x: tuple[int, ...] = (3, 7)
    low: float = -2.0
    high: float = 3.0
    values: str = "random"


def samples() -> Iterator[DynamicSample]:
    for name, low, high in (
        ("both_signs", -2, 3), ("positive", 0.5, 3), ("negative", -3, -0.5), ("from_zero", 0, 2), ("to_zero", -2, 0),
        ("mostly_negative", -5, 0.1), ("small", -1e-30, 2e-30), ("large", -1e37, 2e37), ("symmetric", -1, 1),
    ):  # fmt: skip
        yield DynamicSample(name=name, low=low, high=high)
    for zero in (0, 1, 100, 127, 128, 254, 255):
        yield DynamicSample(name=f"whole_steps_zero_point_{zero}", x=(520,), low=-zero, high=255 - zero, values="steps")
        yield DynamicSample(name=f"half_steps_zero_point_{zero}", x=(520,), low=-zero, high=255 - zero, values="halves")
    for rank in (0, 1, 2, 3, 4, 5, 6, 7, 8):
        yield DynamicSample(name=f"rank_{rank}", rank=rank, x=tuple(2 + axis % 2 for axis in range(rank)))
    for length in (1, 31, 257, 1025, 4097):
        yield DynamicSample(name=f"length_{length}", x=(length,))
    yield DynamicSample(name="one_negative", x=(1,), low=-2, high=-2)
    yield DynamicSample(name="all_equal", x=(9,), low=1.5, high=1.5)


def bindings(sample: DynamicSample, _since_version: int, _dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT) if sample.x else (graph.RUNTIME, graph.CONSTANT)


def node(sample: DynamicSample, context: CaseContext) -> Node:
    """x float32, whose least and greatest element are `low` and `high` from two elements on."""
    count = int(np.prod(sample.x, dtype=np.int64))
    if sample.values == "random":
        flat = context.rng.uniform(sample.low, sample.high, count)
        unit = 1.0
    else:
        unit = 2.0**-6
        flat = context.rng.integers(2 * int(sample.low), 2 * int(sample.high) + 1, count).astype(np.float64)
        flat = flat / 2 if sample.values == "halves" else flat // 2
    if count > 1:
        flat[0], flat[-1] = sample.low, sample.high
    x = (flat * unit).astype(np.float32).reshape(sample.x)
    names = ("y", "y_scale", "y_zero_point")
    return Node("DynamicQuantizeLinear", "", context.since_version, (Operand("x", x),), names)


@dataclass(frozen=True)
class Quantised:
    """x quantised as DynamicQuantizeLinear says: y and y_zero_point as they come out, y_scale float64."""

    y: Output
    y_scale: float
    y_zero_point: Output


SCALE_ROUNDINGS = 3
"""Of y_scale in float32: the difference, a reciprocal of 255 within 1 ULP."""


def quantise(x: Array) -> Quantised:
    low, high = (float(np.float64(end)) for end in (min(0.0, x.min(initial=0.0)), max(0.0, x.max(initial=0.0))))
    scale = (high - low) / 255
    # Where float32 has the scale exactly and it is a power of two, all that follows is exact.
    is_exact = float(np.float32(scale)) == scale and bool(quantization.is_power_of_two(np.array(scale)))
    roundings = SCALE_ROUNDINGS + quantization.ROUNDINGS
    used = float(np.float32(scale))
    real_zero = np.array(np.clip(0 - low / used, 0, 255))
    error = -1.0 if is_exact else float(real_zero) * roundings * quantization.SINGLE
    dtype = np.dtype(np.uint8)
    zero_point = quantization.quantise("y_zero_point", real_zero, 0, dtype, error)
    real = x.astype(np.float64) / used
    errors = np.where(is_exact, -1.0, abs(real) * roundings * quantization.SINGLE)
    if bool(zero_point.bound.allowed):  # type: ignore[union-attr]
        errors = np.ones(x.shape)  # another zero point moves every level by one
    y = quantization.quantise("y", real, zero_point.value.astype(np.int64), dtype, errors)
    return Quantised(y, scale, zero_point)


def truth(node: Node) -> Truth:
    """y, y_scale, y_zero_point: the range of x, with 0 in it, in 255 steps."""
    x = node.array("x")
    found = quantise(x)
    scale = np.array(found.y_scale)
    citation = bounds.D3D.add_remark("a difference and a quotient within 1 ULP each")
    bound = bounds.ulp(2, (citation,), np.dtype(np.float32))
    return Outputs((found.y, bounds.round_output("y_scale", scale, np.dtype(np.float32), bound), found.y_zero_point))


def lower(node: Node) -> Lowering:
    """DML_DYNAMIC_QUANTIZE_LINEAR; its outputs of one element have as many dimensions as the input."""
    desc, view = lowering.broadcast(node.array("x"))
    levels, scalar = np.dtype(np.uint8), (1,) * view.ndim
    outputs = (
        lowering.result(t, s) for t, s in ((levels, view.shape), (np.dtype(np.float32), scalar), (levels, scalar))
    )
    return Lowering(DynamicQuantizeLinear(desc, *outputs), (view,))


def _undefined_levels() -> UndefinedSamples:
    for name, bad in (("nan", np.nan), ("infinity", np.inf)):
        data = np.array([1.0, bad, -2.0], np.float32)
        answers = tuple(
            Answer(np.zeros(shape, dtype)) for dtype, shape in (("uint8", (3,)), ("float32", ()), ("uint8", ()))
        )
        yield UndefinedSample(name, "float32", NAN_LEVEL, (data,), answers)


UNDEFINED = {"DynamicQuantizeLinear": _undefined_levels}

OPERATORS = declare(
    (Operator("DynamicQuantizeLinear", samples, bindings, node, truth, lower, varied=("T1",)),), undefined=UNDEFINED
)
