"""com.microsoft::MatMulNBits -> DML_DEQUANTIZE and DML_GEMM_OPERATOR_DESC, in one graph.

Sources: ONNX Runtime's ContribOperators.md; DmlOperatorMatMulNBits.cpp for the lowering. g_idx is deprecated there, and
the page no longer says what it means, so that no case has it; nor has one `accuracy_level` 4, for which A may be
rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators import graph
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import GRAPH, Operator, declare, spread
from epcheck.generators.oracle_math.packing import pack_levels, unpack_levels
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::MatMulNBits",)

MICROSOFT = "com.microsoft"


@dataclass(frozen=True, kw_only=True)
class NBitsSample(Sample):
    """A [..., k] times the transpose of B [n, k], which lies in blocks of `block` along k in `bits` bits each.

    zero_points: `packed` like B, `float` in A's type, None is the middle. flat: scales and zero points are 1-D.
    positive: no number of A is below 0, no level below its zero point, which is 0 or 1: no sum cancels.
    """

    a: tuple[int, ...] = (3, 64)
    n: int = 5
    bits: int = 4
    block: int = 32
    zero_points: str | None = "packed"
    flat: bool = False
    bias: bool = False
    attributes: tuple[tuple[str, Attribute], ...] = ()
    fill: int | None = None
    positive: bool = False


def samples() -> Iterator[NBitsSample]:
    for bits in (4, 8):
        for zero_points in ("packed", "float", None):
            name = f"bits_{bits}_zero_points_{zero_points or 'omitted'}"
            yield NBitsSample(name=name, bits=bits, zero_points=zero_points, every_dtype=True)
            yield NBitsSample(name=f"{name}_flat", bits=bits, zero_points=zero_points, flat=True)
            yield NBitsSample(name=f"{name}_odd_blocks", a=(3, 96), bits=bits, zero_points=zero_points)
            yield NBitsSample(name=f"{name}_one_block", a=(3, 32), bits=bits, zero_points=zero_points)
            yield NBitsSample(name=f"{name}_part_of_a_block", a=(3, 80), bits=bits, zero_points=zero_points)
            yield NBitsSample(name=f"{name}_bias", bits=bits, zero_points=zero_points, bias=True)
        for block in (16, 64, 128, 256):
            yield NBitsSample(name=f"bits_{bits}_block_{block}", a=(3, 256), bits=bits, block=block,
                             every_dtype=block in (16, 128))  # fmt: skip
    for zero_points in ("packed", None):
        kind = zero_points or "omitted"
        yield NBitsSample(name=f"one_row_{kind}", a=(1, 64), zero_points=zero_points)
        yield NBitsSample(name=f"one_column_{kind}", n=1, zero_points=zero_points)
        yield NBitsSample(name=f"batch_{kind}", a=(2, 3, 64), zero_points=zero_points, every_dtype=True)
        yield NBitsSample(name=f"rank_4_{kind}", rank=4, a=(2, 1, 3, 64), zero_points=zero_points)
        yield NBitsSample(name=f"batch_of_one_{kind}", a=(1, 1, 64), zero_points=zero_points)
        yield NBitsSample(name=f"columns_257_{kind}", n=257, zero_points=zero_points)
        yield NBitsSample(name=f"inner_1024_{kind}", a=(2, 1024), zero_points=zero_points, every_dtype=True)
    for bits, blocks in ((4, (16, 32, 64, 128)), (8, (16, 32))):
        for block in blocks:
            yield NBitsSample(name=f"bits_{bits}_block_{block}_positive", a=(3, max(block, 64)), bits=bits, block=block,
                             positive=True, every_dtype=True)  # fmt: skip
    for fill in (0, 7, 8, 15):
        yield NBitsSample(name=f"levels_{fill}", fill=fill, zero_points=None)
    yield NBitsSample(name="bits_default", attributes=(("bits", ()),))
    for accuracy in (0, 1, 2):
        yield NBitsSample(name=f"accuracy_level_{accuracy}", attributes=(("accuracy_level", accuracy),))
    yield NBitsSample(name="no_rows", a=(0, 64))
    for zero_points in ("packed", "float", None):
        name = f"bits_2_zero_points_{zero_points or 'omitted'}"
        yield NBitsSample(name=name, bits=2, zero_points=zero_points, every_dtype=True)
        yield NBitsSample(name=f"{name}_odd_blocks", a=(3, 96), bits=2, zero_points=zero_points)
        yield NBitsSample(name=f"{name}_part_of_a_block", a=(3, 80), bits=2, zero_points=zero_points)
        yield NBitsSample(name=f"{name}_bias", bits=2, zero_points=zero_points, bias=True)
    for block in (16, 64, 128):
        yield NBitsSample(name=f"bits_2_block_{block}", a=(3, 256), bits=2, block=block)
    yield expect_refusal(NBitsSample(name="k_differs", attributes=(("K", 32),)))
    yield expect_refusal(NBitsSample(name="n_differs", attributes=(("N", 4),)))


def bindings(sample: NBitsSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    chosen = spread(sample, first=dtypes == ("float32",), newest=True)
    return tuple(v for v in chosen if v != graph.CONSTANT and (v != graph.RUNTIME or sample.every_dtype))


def node(sample: NBitsSample, context: CaseContext) -> Node:
    """A of T1; B uint8 [n, blocks, block * bits / 8]; scales of T1; zero points; bias of T1 [n]; output Y."""
    rng, dtype = context.rng, context.dtype
    k, bits = sample.a[-1], sample.bits
    blocks = -(-k // sample.block)
    levels = rng.integers(0, 2**bits, (sample.n, k))
    if sample.fill is not None:
        levels[:] = sample.fill
    scales = rng.uniform(0.01, 0.1, (sample.n, blocks)).astype(dtype)
    a = rng.uniform(-1, 1, sample.a)
    if dtype == np.float16:  # of sums of one sign it shows more than it may lose
        a, levels = (
            np.abs(a),
            np.where(rng.random(levels.shape) < 0.75, np.maximum(levels, 2**bits - 1 - levels), levels),
        )
    if sample.positive:
        a, levels = np.abs(a), np.maximum(levels, 2 ** (bits - 1))
    filled = np.zeros((sample.n, blocks * sample.block), np.int64)
    filled[:, :k] = levels
    operands: list[Operand | None] = [
        Operand("A", a.astype(dtype)),
        Operand("B", pack_levels(filled.reshape(sample.n, blocks, sample.block), bits), parameter=True),
        Operand("scales", scales.ravel() if sample.flat else scales, parameter=True),
    ]
    if sample.zero_points is not None:
        zero = rng.integers(0, 2 if sample.positive else 2**bits, (sample.n, blocks))
        value = pack_levels(zero, bits) if sample.zero_points == "packed" else (zero + 0.5).astype(dtype)
        operands.append(Operand("zero_points", value.ravel() if sample.flat else value, parameter=True))
    if sample.bias:
        operands += [None] * (5 - len(operands))
        operands.append(Operand("bias", rng.uniform(-1, 1, sample.n).astype(dtype), parameter=True))
    attributes: dict[str, Attribute] = {"K": k, "N": sample.n, "bits": bits, "block_size": sample.block}
    attributes |= dict(sample.attributes)
    if attributes["bits"] == ():
        del attributes["bits"]
    return Node("MatMulNBits", MICROSOFT, context.since_version, tuple(operands), ("Y",), attributes)


def truth(node: Node) -> Truth:
    """A times the transpose of (level - zero point) * scale, plus bias, in float64."""
    a, b, scales = node.array("A"), node.array("B"), node.array("scales")
    k, n, bits = node.integer("K", 0), node.integer("N", 0), node.integer("bits", 4)
    block = node.integer("block_size", 0)
    blocks = -(-k // block)
    if a.shape[-1] != k:
        return Refusal(f"K is {k}; A has {a.shape[-1]} columns")
    if b.shape[:2] != (n, blocks):
        return Refusal(f"B has shape {b.shape}; N is {n}, K is {k}")
    levels = unpack_levels(b, bits).reshape(n, blocks * block)[:, :k].astype(np.float64)
    zero_points = node.value("zero_points")
    if zero_points is None:
        zero = np.full((n, blocks), 2.0 ** (bits - 1))
    elif zero_points.dtype == np.uint8:
        zero = unpack_levels(zero_points.reshape(n, -1), bits)[:, :blocks].astype(np.float64)
    else:
        zero = zero_points.reshape(n, blocks).astype(np.float64)
    spread_zero, spread_scale = (np.repeat(v, block, 1)[:, :k] for v in (zero, scales.reshape(n, blocks)))
    weights = (levels - spread_zero) * spread_scale.astype(np.float64)
    wide = a.astype(np.float64)
    # level * scale - zero point * scale is as good as their difference times the scale.
    steps = (levels + spread_zero) * spread_scale.astype(np.float64)
    exact, magnitude = wide @ weights.T, abs(wide) @ steps.T
    bias = node.value("bias")
    if bias is not None:
        exact, magnitude = exact + bias.astype(np.float64), magnitude + abs(bias.astype(np.float64))
    bound = bounds.bound_sum(k + 1, a.dtype, magnitude, roundings=4)
    return Outputs((bounds.round_output("Y", exact, a.dtype, bound),))


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::MatMulNBits": (
        OptionalIO("bits_4_zero_points_packed_bias", inputs=each_alone("zero_points", "bias")),
    ),
}

OPERATORS = declare(
    (Operator("MatMulNBits", samples, bindings, node, truth, GRAPH, varied=("T1",), domain=MICROSOFT),),
    optional_io=OPTIONAL_IO,
)
