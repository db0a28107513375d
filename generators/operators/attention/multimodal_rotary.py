"""com.microsoft::MRotaryEmbedding: rotary positions of three streams, time, height and width, for each token.

Source: ONNX Runtime's ContribOperators.md, of release 1.32: half of the rotated elements is divided among the streams,
in chunks (`mrope_layout` 0) or by turns (1), and the rotation is that of RotaryEmbedding. The page does not say what
`scale` multiplies, nor what packed batches are, so that no case has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.estimate import Precision, exact
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.operators.attention.rotary import rotate_heads
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::MRotaryEmbedding",)

MICROSOFT = "com.microsoft"
CACHED = 19


@dataclass(frozen=True, kw_only=True)
class StreamsSample(Sample):
    """rank: of input, 3 or 4. dim: rotary_embedding_dim, None for the whole head. positions: `each` has three that
    differ, `text` the same for all streams. with_heads: num_heads is there. sections, attributes: of the node."""

    batch: int = 2
    sequence: int = 5
    heads: int = 3
    head: int = 16
    dim: int | None = None
    layout: int | None = 0
    sections: tuple[int, ...] = (4, 2, 2)
    positions: str = "each"
    with_heads: bool = True
    attributes: dict[str, Attribute] = field(default_factory=dict)


def samples() -> Iterator[StreamsSample]:
    for rank in (3, 4):
        for layout in (0, 1):
            name = f"rank_{rank}_layout_{layout}"
            yield StreamsSample(name=name, rank=rank, layout=layout, every_dtype=True)
            yield StreamsSample(name=f"{name}_text", rank=rank, layout=layout, positions="text")
            yield StreamsSample(name=f"{name}_interleaved", rank=rank, layout=layout, attributes={"interleaved": 1},
                                every_dtype=rank == 3)  # fmt: skip
            yield StreamsSample(name=f"{name}_part", rank=rank, layout=layout, head=24, dim=16)
            yield StreamsSample(name=f"{name}_equal_sections", rank=rank, layout=layout, head=24, sections=(4, 4, 4))
            yield StreamsSample(name=f"{name}_one_token", rank=rank, layout=layout, batch=1, sequence=1)
            yield StreamsSample(name=f"{name}_head_128", rank=rank, layout=layout, head=128, sections=(24, 20, 20))
        yield StreamsSample(name=f"rank_{rank}_layout_default", rank=rank, layout=None)
        yield StreamsSample(name=f"rank_{rank}_only_time", rank=rank, sections=(8, 0, 0))
        yield StreamsSample(name=f"rank_{rank}_no_time", rank=rank, sections=(0, 5, 3))
        yield StreamsSample(name=f"rank_{rank}_one_head", rank=rank, heads=1)
        yield StreamsSample(name=f"rank_{rank}_sequence_129", rank=rank, batch=1, sequence=129)
    yield StreamsSample(name="num_heads_omitted", rank=3, with_heads=False)
    yield expect_refusal(StreamsSample(name="sections_of_wrong_sum", sections=(4, 2, 1)))
    yield expect_refusal(StreamsSample(name="two_sections", sections=(4, 4)))


def bindings(sample: StreamsSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=dtypes == ("float32",), newest=True)


def node(sample: StreamsSample, context: CaseContext) -> Node:
    """input [B, S, N H] or [B, N, S, H]; position_ids int64 [3, B, S]; cos_cache and sin_cache [., dim / 2]."""
    rng, dtype = context.rng, context.dtype
    batch, sequence, heads, head = sample.batch, sample.sequence, sample.heads, sample.head
    shape: tuple[int, ...] = (batch, sequence, heads * head)
    if sample.rank == 4:
        shape = (batch, heads, sequence, head)
    cached = max(CACHED, sequence + 2)
    angle = rng.uniform(0, 2 * np.pi, (cached, (sample.dim or head) // 2))
    positions = rng.integers(0, cached, (3, batch, sequence))
    if sample.positions == "text":
        positions[:] = positions[:1]
    operands = (
        Operand("input", rng.standard_normal(shape).astype(dtype)),
        Operand("position_ids", positions.astype(np.int64)),
        Operand("cos_cache", np.cos(angle).astype(dtype), parameter=True),
        Operand("sin_cache", np.sin(angle).astype(dtype), parameter=True),
    )
    attributes: dict[str, Attribute] = {"mrope_section": sample.sections, **sample.attributes}
    if sample.layout is not None:
        attributes["mrope_layout"] = sample.layout
    if sample.dim is not None:
        attributes["rotary_embedding_dim"] = sample.dim
    if sample.with_heads and (sample.dim is not None or sample.rank != 4):
        attributes["num_heads"] = heads
    return Node("MRotaryEmbedding", MICROSOFT, context.since_version, operands, ("output",), attributes)


def assign_streams(sections: tuple[int, ...], layout: int) -> Array:
    """The stream, 0 to 2, of each element of half the rotated ones."""
    if layout == 0:
        return np.repeat(np.arange(3), sections)
    found = np.zeros(sum(sections), np.int64)
    for stream in (1, 2):
        found[stream : sections[stream] * 3 : 3] = stream
    return found


def truth(node: Node) -> Truth:
    """Each pair of elements turned by the angle of the position that its stream has."""
    x, sections = node.array("input"), node.integers("mrope_section", ())
    half = node.array("cos_cache").shape[1]
    if len(sections) != 3 or sum(sections) != half:
        return Refusal(f"mrope_section must have 3 integers whose sum is {half}, not {sections}")
    streams = assign_streams(sections, node.integer("mrope_layout", 0))
    positions = node.array("position_ids")[streams]  # [half, B, S]
    cos, sin = (
        np.moveaxis(node.array(name)[positions, np.arange(half)[:, None, None]], 0, -1)
        for name in ("cos_cache", "sin_cache")
    )
    precision, values = Precision(x.dtype), exact(x)
    if x.ndim == 3:
        heads = node.integer("num_heads", 0) or x.shape[2] // (2 * half)
        values = values.reshape(*x.shape[:2], heads, x.shape[2] // heads).transpose(0, 2, 1, 3)
    interleaved = bool(node.integer("interleaved", 0))
    turned = rotate_heads(precision, values, exact(cos[:, None]), exact(sin[:, None]), interleaved)
    if x.ndim == 3:
        turned = turned.transpose(0, 2, 1, 3).reshape(*x.shape)
    return Outputs((precision.output("output", turned),))


OPERATORS = (Operator("MRotaryEmbedding", samples, bindings, node, truth, NO_KERNEL, domain=MICROSOFT),)
