"""com.microsoft::RotaryEmbedding and ONNX's RotaryEmbedding-23.

The DML EP makes the former a graph of DML_GATHER, DML_ELEMENT_WISE_MULTIPLY, DML_ELEMENT_WISE_ADD and copies; it does
not have the latter.

Sources: ONNX Runtime's docs/ContribOperators.md, its rotary_embedding_helper.h for shapes; the RotaryEmbedding page of
ONNX. Not generated: is_packed_batching and scale, which no page defines. Bounds: `estimate`, two products and a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.estimate import Estimate, Precision, exact
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.declaration.undefined_sample import FLOATS, Answer, UndefinedSample, UndefinedSamples, ramp
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import GRAPH, NO_KERNEL, Operator, declare, spread
from epcheck.generators.truth import Outputs, Truth

DECLARES = (
    "com.microsoft::RotaryEmbedding",
    "RotaryEmbedding",
)

DOMAIN = "com.microsoft"
CACHED = 12
"""Positions that the caches know."""


@dataclass(frozen=True, kw_only=True)
class RotarySample(Sample):
    """B = batch, S = sequence, N = heads, H = head. rank: of the input, 3 or 4. dim: elements of a head that are
    rotated, None leaves the attribute out. positions: offset (contributed operator), each, few (as each, with caches
    shorter than the sequence), or none (ONNX, caches are per token)."""

    batch: int = 2
    sequence: int = 3
    heads: int = 3
    head: int = 8
    dim: int | None = None
    interleaved: int | None = None
    positions: str = "each"
    start: int = 0


def samples(domain: str) -> Iterator[RotarySample]:
    for rank in (3, 4):
        for interleaved in (None, 0, 1):
            name = f"rank_{rank}_" + {None: "interleaved_omitted", 0: "halves", 1: "interleaved"}[interleaved]
            yield RotarySample(name=name, rank=rank, interleaved=interleaved, every_dtype=interleaved != 0)
            yield RotarySample(name=f"{name}_part", rank=rank, interleaved=interleaved, dim=4)
        yield RotarySample(name=f"rank_{rank}_dim_0", rank=rank, dim=0)
        yield RotarySample(name=f"rank_{rank}_dim_of_head", rank=rank, dim=8)
        yield RotarySample(name=f"rank_{rank}_one_head", rank=rank, heads=1)
        yield RotarySample(name=f"rank_{rank}_head_2", rank=rank, head=2)
        yield RotarySample(name=f"rank_{rank}_head_64", rank=rank, head=64)
        yield RotarySample(name=f"rank_{rank}_sequence_1", rank=rank, sequence=1)
        yield RotarySample(name=f"rank_{rank}_batch_1", rank=rank, batch=1)
        yield RotarySample(name=f"rank_{rank}_more_than_a_thread_group", rank=rank, batch=3, sequence=11, head=34)
        if not domain:
            yield RotarySample(name=f"rank_{rank}_few_positions", rank=rank, positions="few")
            yield RotarySample(name=f"rank_{rank}_no_positions", rank=rank, positions="none", every_dtype=True)
            yield RotarySample(
                name=f"rank_{rank}_no_positions_interleaved", rank=rank, positions="none", interleaved=1, dim=4
            )
            continue
        for start in (0, 1, 9):
            yield RotarySample(name=f"rank_{rank}_offset_{start}", rank=rank, positions="offset", start=start)
        yield RotarySample(
            name=f"rank_{rank}_offset_5_interleaved", rank=rank, positions="offset", start=5, interleaved=1
        )


def bindings(sample: RotarySample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=dtypes == ("float32",), newest=True)


def node(domain: str, sample: RotarySample, context: CaseContext) -> Node:
    """The input [B, S, N H] or [B, N, S, H]; position_ids int64 [B, S] or the first position [1]; cos_cache and
    sin_cache [positions, dim / 2], or [B, S, dim / 2] without positions."""
    batch, sequence, dtype = sample.batch, sample.sequence, context.dtype
    shape: tuple[int, ...] = (batch, sequence, sample.heads * sample.head)
    if sample.rank == 4:
        shape = (batch, sample.heads, sequence, sample.head)
    half = (sample.dim or sample.head) // 2
    cached = sequence - 1 if sample.positions == "few" else CACHED
    angle = context.rng.uniform(0, 2 * np.pi, (batch, sequence, half) if sample.positions == "none" else (cached, half))
    each = sample.positions in ("each", "few")
    ids = context.rng.integers(0, cached, (batch, sequence)) if each else np.array([sample.start])
    values = {
        "X" if not domain else "input": Operand(
            "X" if not domain else "input", context.rng.standard_normal(shape).astype(dtype)
        ),
        "position_ids": Operand("position_ids", ids.astype(np.int64)) if sample.positions != "none" else None,
        "cos_cache": Operand("cos_cache", np.cos(angle).astype(dtype), parameter=True),
        "sin_cache": Operand("sin_cache", np.sin(angle).astype(dtype), parameter=True),
    }
    order = (
        ("input", "position_ids", "cos_cache", "sin_cache")
        if domain
        else ("X", "cos_cache", "sin_cache", "position_ids")
    )
    operands = [values[name] for name in order]
    if operands[-1] is None:
        operands.pop()
    attributes: dict[str, Attribute] = {}
    if sample.rank == 3 and (not domain or sample.dim):
        attributes["num_heads"] = sample.heads
    if domain and sample.rank == 4 and sample.dim:
        attributes["num_heads"] = sample.heads
    if sample.dim is not None:
        attributes["rotary_embedding_dim"] = sample.dim
    if sample.interleaved is not None:
        attributes["interleaved"] = sample.interleaved
    output = "output" if domain else "Y"
    return Node("RotaryEmbedding", domain, context.since_version, tuple(operands), (output,), attributes)


def truth(node: Node) -> Truth:
    """The first elements of each head as pairs, each turned by the angle of its token's position; the rest as it is."""
    x = node.value("X") if node.value("input") is None else node.array("input")
    assert x is not None
    precision = Precision(x.dtype)
    cos, sin = (_gather_tokens(node, name, x.shape[0], x.shape[1] if x.ndim == 3 else x.shape[2]) for name in
                ("cos_cache", "sin_cache"))  # fmt: skip
    values = exact(x)
    if x.ndim == 3:
        heads = node.integer("num_heads", 0) or x.shape[2] // (2 * cos.shape[-1])
        values = values.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)
    turned = rotate_heads(
        precision, values, exact(cos[:, None]), exact(sin[:, None]), bool(node.integer("interleaved", 0))
    )
    if x.ndim == 3:
        turned = turned.transpose(0, 2, 1, 3).reshape(*x.shape)
    return Outputs((precision.output(node.outputs[0], turned),))


def _gather_tokens(node: Node, name: str, batch: int, sequence: int) -> Array:
    """The cache's rows [B, S, dim / 2] of the tokens."""
    cache, ids = node.array(name), node.value("position_ids")
    if ids is None:
        return cache
    if ids.ndim == 1:
        ids = np.broadcast_to(ids[0] + np.arange(sequence), (batch, sequence))
    return np.asarray(cache[ids])


def rotate_heads(precision: Precision, x: Estimate, cos: Estimate, sin: Estimate, interleaved: bool) -> Estimate:
    """x [B, N, S, H] with its first elements rotated by cos and sin, [B or 1, 1, S, dim / 2] or [S, dim / 2].

    A pair are elements i and i + dim / 2, or 2 i and 2 i + 1 where they are interleaved.
    """
    half = cos.value.shape[-1]
    at = (np.arange(half) * 2, np.arange(half) * 2 + 1) if interleaved else (np.arange(half), np.arange(half) + half)
    low, high = x[..., at[0]], x[..., at[1]]
    minus = Estimate(-high.value, high.error)
    value, error = x.value.copy(), x.error.copy()
    for index, (first, second) in zip(at, (((low, cos), (minus, sin)), ((low, sin), (high, cos))), strict=True):
        result = precision.add(precision.multiply(*first), precision.multiply(*second))
        value[..., index], error[..., index] = result.value, result.error
    return Estimate(value, error)


POSITION = "a position beyond the cosines that are given"


def _undefined_positions(positions_first: bool) -> UndefinedSamples:
    for dtype in FLOATS:
        x, cosines = ramp((1, 1, 2, 4), dtype), np.ones((3, 2), dtype)
        answer = Answer(np.zeros(x.shape, dtype))
        for name, position in (
            ("position_beyond_the_cosines", 3),
            ("position_far_beyond", 2**40),
            ("position_below_0", -1),
        ):
            positions = np.array([[0, position]], np.int64)
            inputs = (x, positions, cosines, cosines) if positions_first else (x, cosines, cosines, positions)
            yield UndefinedSample(name, dtype, POSITION, inputs, (answer,))


UNDEFINED = {
    "com.microsoft::RotaryEmbedding": partial(_undefined_positions, True),
    "RotaryEmbedding": partial(_undefined_positions, False),
}

OPERATORS = declare(
    tuple(
        Operator(
            "RotaryEmbedding",
            partial(samples, domain),
            bindings,
            partial(node, domain),
            truth,
            GRAPH if domain else NO_KERNEL,
            ("T",),
            domain,
        )
        for domain in (DOMAIN, "")
    ),
    undefined=UNDEFINED,
)
