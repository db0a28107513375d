"""com.microsoft::DecoderMaskedMultiHeadAttention: one token's attention, with a cache of keys and values, or across.

Source: ONNX Runtime's ContribOperators.md. The cache of keys is as wide as the longest sequence, and each 16 bytes of a
head stand together: [B, N, H / x, S, x] with x = 16 / sizeof(T). Heads of 16 bytes are as they would be without that,
and most samples have such. What stands in a present cache behind the last token no page says. The output qk is called
normalized on one line of the page and a product on another: no case asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.estimate import Estimate, Precision, attention, concatenate, exact, join_heads
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.operators.attention.attention.oracle import MASK_FILTER_VALUE
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Undefined

DECLARES = ("com.microsoft::DecoderMaskedMultiHeadAttention",)

WHOLE = 16
"""Bytes of a head that stand together in the cache of keys."""
ALWAYS_3 = "a query has 3 dimensions"


@dataclass(frozen=True, kw_only=True)
class DecoderSample(DrawnSample):
    """past: the tokens in the cache, of `room`; None for cross attention, over `room` tokens. parts: how many times 16
    bytes a head has. beams: rows of the batch that may read each other's tokens. masked: tokens that the mask leaves
    out, other ones in each row. bias_shape: of attention_bias. sequence: of the query, which must be 1."""

    batch: int = 2
    heads: int = 3
    past: int | None = 4
    room: int = 7
    parts: int = 1
    beams: int = 1
    masked: int = 1
    packed: bool = False
    bias_shape: tuple[int, int] = (2, 3)
    sequence: int = 1


SHARED: Mapping[str, Attribute] = {"num_heads": 3, "past_present_share_buffer": 1}
CACHE = ("key", "value", "past_key", "past_value", "past_sequence_length")


def samples() -> Iterator[DecoderSample]:
    base: Mapping[str, Attribute] = SHARED
    for name, more in (("", ()), ("_masked", ("mask_index",)), ("_bias", ("bias",)), ("_added", ("attention_bias",)),
                       ("_all", ("mask_index", "bias", "attention_bias"))):  # fmt: skip
        yield DecoderSample(name=f"cache{name}", attributes=base, present=(*CACHE, *more), outputs=3, every_dtype=True)
    masked = (*CACHE, "mask_index")
    for past, room in ((0, 1), (0, 5), (1, 2), (16, 17), (33, 64), (255, 300)):
        yield DecoderSample(name=f"past_{past}_of_{room}", attributes=base, present=masked, outputs=3, past=past,
                            room=room, masked=min(past, 1))  # fmt: skip
    for batch, heads in ((1, 1), (5, 2), (1, 8), (65, 1)):
        yield DecoderSample(name=f"batch_{batch}_heads_{heads}", attributes={**base, "num_heads": heads}, batch=batch,
                            heads=heads, present=masked, outputs=3)  # fmt: skip
    for scale, name in ((1.0, "1"), (0.25, "quarter"), (-0.5, "minus_half")):
        yield DecoderSample(name=f"scale_{name}", attributes={**base, "scale": scale}, present=CACHE, outputs=3)
    weak: Mapping[str, Attribute] = {**base, "mask_filter_value": -1.5}
    yield DecoderSample(name="mask_filter_value", attributes=weak, present=masked, outputs=3, every_dtype=True)
    added = (*CACHE, "attention_bias")
    for shape in ((1, 1), (1, 3), (2, 1)):
        yield DecoderSample(name=f"added_{shape[0]}_by_{shape[1]}", attributes=base, present=added, outputs=3,
                            bias_shape=shape)  # fmt: skip
    for parts in (2, 4):
        yield DecoderSample(name=f"keys_in_{parts}_parts", attributes=base, present=masked, outputs=3, parts=parts,
                            every_dtype=parts == 2)  # fmt: skip
    yield DecoderSample(name="packed", attributes=base, present=CACHE[2:], outputs=3, packed=True)
    beams = (*CACHE, "beam_width", "cache_indirection")
    yield DecoderSample(name="beams_2", attributes=base, present=beams, outputs=3, batch=4, beams=2)
    across: Mapping[str, Attribute] = {"num_heads": 3}
    for parts in (1, 2, 3):
        for more in ((), ("mask_index",), ("bias",)):
            name = f"across_{parts}_parts" + "".join(f"_{each}" for each in more)
            yield DecoderSample(name=name, attributes=across, present=("key", "value", *more), outputs=1, past=None,
                                room=6, parts=parts, every_dtype=parts == 2)  # fmt: skip
    for room in (1, 33, 257):
        yield DecoderSample(name=f"across_{room}", attributes=across, present=("key", "value"), outputs=1, past=None,
                            room=room)  # fmt: skip
    yield expect_refusal(DecoderSample(name="two_tokens", attributes=base, present=CACHE, outputs=3, sequence=2))


def draw(sample: DecoderSample, context: CaseContext) -> Mapping[str, Array]:
    """Unlike numbers everywhere, also in the cache behind the last token."""
    rng, dtype = context.rng, context.dtype
    size = sample.parts * WHOLE // dtype.itemsize
    batch, heads, room, width = sample.batch, sample.heads, sample.room, sample.heads * size
    total = room if sample.past is None else sample.past + 1
    cache = (batch, heads, room, size)
    own = cache if sample.past is None else (batch, sample.sequence, width)
    mask = np.ones((batch, total), np.int32)
    for row in range(batch):
        mask[row, rng.permutation(total)[: (sample.masked + row % 2) if total > 2 else 0]] = 0
    shapes = {
        "query": (batch, sample.sequence, 3 * width if sample.packed else width), "key": own, "value": own,
        "attention_bias": (*sample.bias_shape, 1, total), "past_key": cache, "past_value": cache, "bias": (3 * width,),
    }  # fmt: skip
    values = {name: rng.uniform(-2, 2, shape).astype(dtype) for name, shape in shapes.items()}
    beams = (batch // sample.beams, sample.beams, room)
    return {
        **values,
        "mask_index": mask,
        "past_sequence_length": np.array([sample.past or 0], np.int32),
        "beam_width": np.array([sample.beams], np.int32),
        "cache_indirection": rng.integers(0, sample.beams, beams).astype(np.int32),
    }


def read_keys(cache: Array) -> Array:
    """[B, N, S, H] of a buffer in which 16 bytes of each head stand together."""
    batch, heads, room, size = cache.shape
    whole = WHOLE // cache.dtype.itemsize
    return cache.reshape(batch, heads, size // whole, room, whole).transpose(0, 1, 3, 2, 4).reshape(cache.shape)


def write_keys(keys: Array, itemsize: int) -> Array:
    """The reverse of `read_keys`."""
    batch, heads, room, size = keys.shape
    whole = WHOLE // itemsize
    return keys.reshape(batch, heads, room, size // whole, whole).transpose(0, 1, 3, 2, 4).reshape(keys.shape)


def _split(node: Node, precision: Precision) -> tuple[Estimate, ...]:
    """query, key and value of the token with their parts of the bias, [B, N, 1, H]; of a key across all of it."""
    heads, query = node.integer("num_heads", 1), node.array("query")
    is_packed = node.value("key") is None
    tensors = np.split(query, 3, axis=-1) if is_packed else [query, node.array("key"), node.array("value")]
    bias, parts = node.value("bias"), []
    for place, tensor in enumerate(tensors):
        if tensor.ndim == 4:
            parts.append(exact(tensor))
            continue
        part = exact(tensor)
        if bias is not None:
            part = precision.add(part, exact(np.split(bias, 3)[place]))
        batch, _, width = tensor.shape
        parts.append(part.reshape(batch, heads, 1, width // heads))
    return tuple(parts)


def _gather(cache: Array, node: Node) -> Array:
    """The cache as each row sees it: its tokens may come from other beams."""
    indirection = node.value("cache_indirection")
    if indirection is None:
        return cache
    count, beams, _ = indirection.shape
    rows = np.arange(count)[:, None, None] * beams + indirection
    tokens = np.arange(cache.shape[2])
    taken = cache.transpose(0, 2, 1, 3)[rows.reshape(count * beams, -1), tokens[None]]
    return np.asarray(taken.transpose(0, 2, 1, 3))


def truth(node: Node) -> Truth:
    if node.array("query").shape[1] != 1:
        return Refusal("the query must have one token")
    dtype = node.array("query").dtype
    precision = Precision(dtype)
    query, key, value = _split(node, precision)
    past_key, past_value, length = node.value("past_key"), node.value("past_value"), node.value("past_sequence_length")
    presents: list[Output] = []
    if past_key is not None:
        assert past_value is not None
        assert length is not None
        past = int(length[0])
        keys = read_keys(past_key)
        caches = (("present_key", keys, key), ("present_value", past_value, value))
        presents = [_output(name, precision, cache, part, past) for name, cache, part in caches][
            : len(node.results) - 1
        ]
        key = concatenate((exact(_gather(keys, node)[:, :, :past]), key), 2)
        value = concatenate((exact(_gather(past_value, node)[:, :, :past]), value), 2)
    scale = node.number("scale", 0.0) or query.value.shape[-1] ** -0.5
    added, mask = node.value("attention_bias"), node.value("mask_index")
    bias = exact(np.zeros((1, 1, 1, key.value.shape[2])) if added is None else added)
    if mask is not None:
        filtered = np.where(mask == 0, node.number("mask_filter_value", MASK_FILTER_VALUE), 0.0)
        bias = precision.add(bias, exact(filtered[:, None, None]))
    found, _ = attention(precision, query, key, value, scale=scale, bias=bias)
    return Outputs((precision.output("output", join_heads(found)), *presents))


def _output(name: str, precision: Precision, cache: Array, part: Estimate, past: int) -> Output:
    """The cache with the token behind its past; what is further behind is open."""
    value, error = cache.astype(np.float64), np.zeros(cache.shape)
    value[:, :, past], error[:, :, past] = part.value[:, :, 0], part.error[:, :, 0]
    behind = np.broadcast_to((np.arange(cache.shape[2]) > past)[:, None], cache.shape)
    if name == "present_key":
        value, error, behind = (write_keys(each, cache.dtype.itemsize) for each in (value, error, behind))
    made = precision.output(name, Estimate(value, error))
    return Output(name, made.value, made.bound, made.exact, undefined=Undefined(behind) if behind.any() else None)


OPERATORS = (
    Drawn("DecoderMaskedMultiHeadAttention", samples, draw, truth, ("bias",)).declare(without_rank_dtypes=ALWAYS_3),
)
