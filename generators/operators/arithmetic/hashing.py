"""Hashes of com.microsoft: MurmurHash3, NGramHashMapping and VarlenNGramHashMapping.

Sources: ONNX Runtime's ContribOperators.md, and for the hash that it names, MurmurHash3_x86_32 of Austin Appleby, who
made it public domain: the bytes of each element, in little-endian order. Ids, multipliers and products are not negative
and fit their type, since the page does not say what becomes of others. Of present_segment_ids without past_segment_ids
it says nothing, either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.data import boundary
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "com.microsoft::MurmurHash3",
    "com.microsoft::NGramHashMapping",
    "com.microsoft::VarlenNGramHashMapping",
)

WORDS = 0xFFFFFFFF
ROWS_OF_TOKENS = "its ids have the ranks that the page names"


@dataclass(frozen=True, kw_only=True)
class MurmurSample(DrawnSample):
    """shape: of X. boundary: X has the ends of its type and what is beside them."""

    shape: tuple[int, ...] = (3, 5)
    boundary: bool = False


def murmur_samples() -> Iterator[MurmurSample]:
    yield MurmurSample(name="defaults", every_dtype=True)
    for positive in (0, 1):
        yield MurmurSample(name=f"positive_{positive}", attributes={"positive": positive}, every_dtype=True)
        yield MurmurSample(name=f"boundary_positive_{positive}", shape=(64,), attributes={"positive": positive},
                           boundary=True, every_dtype=True)  # fmt: skip
    for seed in (1, 42, 2**31 - 1, 2**31, 2**32 - 1):
        yield MurmurSample(name=f"seed_{seed}", attributes={"seed": seed}, every_dtype=seed == 42)
    for rank in (0, 1, 3, 4, 8):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield MurmurSample(name=f"rank_{rank}", rank=rank, shape=shape)
    yield MurmurSample(name="length_1025", shape=(1025,))
    yield MurmurSample(name="no_elements", shape=(0, 3))


def draw_keys(sample: MurmurSample, context: CaseContext) -> Mapping[str, Array]:
    shape, dtype, rng = sample.shape, context.dtype, context.rng
    if sample.boundary:
        return {"X": np.resize(boundary(dtype), shape)}
    if dtype.kind == "f":
        return {"X": rng.uniform(-1e6, 1e6, shape).astype(dtype)}
    info = np.iinfo(dtype)
    return {"X": rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)}


def _rotate(x: int, bits: int) -> int:
    return (x << bits | x >> 32 - bits) & WORDS


def hash_bytes(key: bytes, seed: int) -> int:
    """MurmurHash3_x86_32 of whole words."""
    value = seed
    for word in np.frombuffer(key, "<u4").tolist():
        value ^= _rotate(word * 0xCC9E2D51 & WORDS, 15) * 0x1B873593 & WORDS
        value = (_rotate(value, 13) * 5 + 0xE6546B64) & WORDS
    value ^= len(key)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        value = (value ^ value >> shift) * factor & WORDS
    return value ^ value >> 16


def murmur_truth(node: Node) -> Truth:
    x, seed = node.array("X"), node.integer("seed", 0)
    raw = np.ascontiguousarray(x).astype(x.dtype.newbyteorder("<")).tobytes()
    size = x.dtype.itemsize
    found = [hash_bytes(raw[at : at + size], seed) for at in range(0, len(raw), size)]
    positive = np.array(found, np.uint32).reshape(x.shape)
    return Outputs((Output("Y", positive if node.integer("positive", 1) else positive.view(np.int32)),))


@dataclass(frozen=True, kw_only=True)
class NGramSample(DrawnSample):
    """lengths: of each request; of NGramHashMapping all are alike. order, heads: max_ngram_size, n_head_per_ngram.
    vocabulary: how many ids there are, 0 being the end of a sequence; few make it frequent. broken: what breaks a rule.
    """

    lengths: tuple[int, ...] = (7, 7)
    order: int = 3
    heads: int = 2
    vocabulary: int = 1000
    attributes: Mapping[str, Attribute]
    broken: str = ""
    capacity: int = 0


def _ngram(name: str, order: int = 3, heads: int = 2, **members: object) -> NGramSample:
    own: Mapping[str, Attribute] = {"max_ngram_size": order, "n_head_per_ngram": heads, "pad_id": 5}
    extra: Mapping[str, Attribute] = members.pop("attributes", {})  # type: ignore[assignment]
    return NGramSample(name=name, order=order, heads=heads, attributes={**own, **extra}, **members)  # type: ignore[arg-type]


def list_ngrams(lengths: tuple[int, ...]) -> Iterator[NGramSample]:
    """lengths: of the requests of most samples."""
    whole = ("past_ids", "head_offsets", "eos_token_id", "segment_ids")
    yield _ngram("defaults", lengths=lengths, outputs=1, every_dtype=True)
    for name in whole[:3]:
        yield _ngram(f"with_{name}", lengths=lengths, present=(name,), outputs=2, every_dtype=True)
    yield _ngram("with_segment_ids", lengths=lengths, present=("segment_ids",), outputs=2, vocabulary=4)
    for present in (("eos_token_id",), ("eos_token_id", "past_ids"), whole):
        for reset in (0, 1):
            yield _ngram(f"{'_and_'.join(present)}_reset_{reset}", lengths=lengths, present=present, outputs=2,
                         vocabulary=3, attributes={"reset_on_eos": reset}, every_dtype=reset == 1)  # fmt: skip
    yield _ngram("reset_without_eos", lengths=lengths, outputs=2, attributes={"reset_on_eos": 1}, vocabulary=3)
    for order, heads in ((2, 1), (2, 3), (4, 1), (5, 2), (9, 1)):
        yield _ngram(f"order_{order}_heads_{heads}", order, heads, lengths=lengths, present=("past_ids",), outputs=2)
        yield _ngram(f"order_{order}_heads_{heads}_no_past", order, heads, lengths=lengths, outputs=2)
    yield _ngram("one_token", lengths=(1,) * len(lengths), present=("past_ids",), outputs=2)
    yield _ngram(
        "one_token_of_order_4", 4, lengths=(1,) * len(lengths), present=("past_ids", "eos_token_id"), outputs=2
    )
    yield _ngram("tokens_1025", lengths=(1025,), outputs=2)
    yield _ngram("requests_65", lengths=(3,) * 65, present=("past_ids",), outputs=2)
    yield expect_refusal(_ngram("order_1", 1, lengths=lengths, outputs=1))
    yield expect_refusal(_ngram("vocabulary_of_0", lengths=lengths, outputs=1, broken="vocabulary"))
    yield expect_refusal(_ngram("few_multipliers", lengths=lengths, outputs=1, broken="multipliers"))
    yield expect_refusal(_ngram("past_too_short", lengths=lengths, outputs=1, present=("past_ids",), broken="past"))


def ngram_samples() -> Iterator[NGramSample]:
    yield from list_ngrams((7, 7))


def varlen_samples() -> Iterator[NGramSample]:
    yield from list_ngrams((5, 1, 8))
    every = ("past_ids", "segment_ids", "past_segment_ids")
    yield _ngram("segments_of_the_past", lengths=(5, 2, 8), present=every, outputs=3, vocabulary=4, every_dtype=True)
    for capacity in (1, 3, 8):
        present = ("past_ids", "segment_ids", "past_segment_ids", "capture_count")
        yield _ngram(f"captures_{capacity}", lengths=(5, 1, 8), present=present, outputs=4, capacity=capacity,
                     attributes={"state_update_capacity": capacity}, every_dtype=capacity == 3)  # fmt: skip
    yield expect_refusal(_ngram("capacity_9", lengths=(5, 1), present=("capture_count",), outputs=1, capacity=9,
                                attributes={"state_update_capacity": 9}))  # fmt: skip


def draw_ids(sample: NGramSample, context: CaseContext, packed: bool) -> Mapping[str, Array]:
    """Ids from 0 on, of which 0 is the end of a sequence; multipliers whose products fit."""
    rng, dtype = context.rng, context.dtype
    batch, total, heads = len(sample.lengths), sum(sample.lengths), max(sample.order - 1, 1) * sample.heads
    shape = (total,) if packed else (batch, sample.lengths[0])
    history = (batch, max(sample.order - 1 - (sample.broken == "past"), 0))
    # primes and their like below 2^10, one for each head
    vocabulary = rng.choice(np.arange(101, 1024, 2), heads, replace=False)
    if sample.broken == "vocabulary":
        vocabulary[-1] = 0
    counts = rng.integers(0, sample.capacity + 2, batch) if sample.capacity else np.zeros(batch)
    return {
        "input_ids": rng.integers(0, sample.vocabulary, shape).astype(dtype),
        "multipliers": rng.integers(1001, 2000000, sample.order - (sample.broken == "multipliers")).astype(dtype),
        "vocab_sizes": vocabulary.astype(dtype),
        "cumulative_sequence_length": np.cumsum((0, *sample.lengths)).astype(np.int32),
        "past_ids": rng.integers(0, sample.vocabulary, history).astype(dtype),
        "head_offsets": rng.integers(0, 100000, heads).astype(dtype),
        "eos_token_id": np.array(0, dtype),
        "segment_ids": np.sort(rng.integers(0, 3, shape), axis=-1).astype(np.int32),
        "past_segment_ids": np.zeros(history, np.int32),
        "capture_count": counts.astype(np.int32),
    }


@dataclass(frozen=True)
class _Hasher:
    """What the node hashes with. fill: stands where there is no history."""

    order: int
    heads: int
    multipliers: list[int]
    vocabulary: list[int]
    offsets: list[int]
    fill: int
    ends_at: int | None

    def hash_row(self, history: list[int], first: int, segments: list[int] | None) -> list[list[int]]:
        """The ids of each position from `first` on. segments: as long as history."""
        rows = []
        for place in range(first, len(history)):
            start = 0
            if self.ends_at is not None:
                start = max((at + 1 for at in range(place) if history[at] == self.ends_at), default=0)
            if segments is not None:
                changes = (at for at in range(1, place + 1) if segments[at] != segments[at - 1])
                start = max(start, *changes, 0)
            tokens = [history[place - s] if place - s >= start else self.fill for s in range(self.order)]
            row, mixed = [], tokens[0] * self.multipliers[0]
            for n in range(1, self.order):
                mixed ^= tokens[n] * self.multipliers[n]
                columns = range((n - 1) * self.heads, n * self.heads)
                row += [mixed % self.vocabulary[c] + self.offsets[c] for c in columns]
            rows.append(row)
        return rows


def _make_hasher(node: Node) -> _Hasher | str:
    order, heads = node.integer("max_ngram_size", 0), node.integer("n_head_per_ngram", 0)
    multipliers, vocabulary = node.array("multipliers").tolist(), node.array("vocab_sizes").tolist()
    past, eos, offsets = node.value("past_ids"), node.value("eos_token_id"), node.value("head_offsets")
    if order < 2:
        return f"max_ngram_size must be at least 2, not {order}"
    if len(multipliers) < order or min(vocabulary) < 1:
        return f"there must be {order} multipliers, and vocab_sizes above 0"
    if past is not None and past.shape[1] != order - 1:
        return f"past_ids must have {order - 1} ids of each request"
    if node.integer("state_update_capacity", 0) > 8:
        return "state_update_capacity must be at most 8"
    fill = node.integer("pad_id", 0) if eos is None else int(eos)
    resets = eos is not None and node.integer("reset_on_eos", 0) != 0
    every = [0] * len(vocabulary) if offsets is None else offsets.tolist()
    return _Hasher(order, heads, multipliers, vocabulary, every, fill, fill if resets else None)


def ngram_truth(node: Node) -> Truth:
    """One request after the other, each with its own history."""
    hasher = _make_hasher(node)
    if isinstance(hasher, str):
        return Refusal(hasher)
    ids, past, segments = node.array("input_ids"), node.value("past_ids"), node.value("segment_ids")
    largest, most = (
        int(max(hasher.multipliers)),
        max(int(part.max(initial=0)) for part in (ids, past) if part is not None),
    )
    least = min(int(part.min(initial=0)) for part in (ids, past) if part is not None)
    fits = least >= 0 <= hasher.fill and largest * max(most, hasher.fill) <= np.iinfo(ids.dtype).max
    fits &= min(hasher.multipliers) >= 0
    assert fits, "the page does not say what becomes of a product that does not fit"
    bounds, before = node.value("cumulative_sequence_length"), node.value("past_segment_ids")
    kept = hasher.order - 1
    ends = None if bounds is None else bounds.tolist()
    spans = [slice(row, row + 1) for row in range(len(ids))] if ends is None else list(map(slice, ends, ends[1:]))
    rows, presents, present_segments, histories = [], [], [], []
    for row, span in enumerate(spans):
        tokens = ids[span].ravel().tolist()
        history = ([hasher.fill] * kept if past is None else past[row].tolist()) + tokens
        own = None
        if segments is not None:
            own = segments[span].ravel().tolist()
            own = (own[:1] * kept if before is None else before[row].tolist()) + own
        rows.append(hasher.hash_row(history, kept, own))
        presents.append(history[-kept:])
        present_segments.append([] if own is None else own[-kept:])
        histories.append(history)
    dtype = ids.dtype
    hashed = np.concatenate([np.array(r).reshape(-1, kept * hasher.heads) for r in rows]).astype(dtype)
    found = {
        "hash_ids": hashed if bounds is not None else hashed.reshape(*ids.shape, kept * hasher.heads),
        "present_ids": np.array(presents).astype(dtype),
        "present_segment_ids": np.array(present_segments, np.int32),
        "state_update": _capture(node, histories, kept).astype(dtype),
    }
    return Outputs(tuple(Output(name, found[name]) for name in node.results))


def _capture(node: Node, histories: list[list[int]], kept: int) -> Array:
    """The last ids after each of the first tokens of a request; pad_id where none is captured."""
    capacity, counts = node.integer("state_update_capacity", 0), node.value("capture_count")
    state = np.full((len(histories), capacity, kept), node.integer("pad_id", 0))
    if counts is not None:
        for row, (history, count) in enumerate(zip(histories, counts.tolist(), strict=True)):
            for slot in range(min(count, capacity, len(history) - kept)):
                state[row, slot] = history[slot + 1 : slot + 1 + kept]
    return state


def _draw_plain(sample: NGramSample, context: CaseContext) -> Mapping[str, Array]:
    return draw_ids(sample, context, packed=False)


def _draw_packed(sample: NGramSample, context: CaseContext) -> Mapping[str, Array]:
    return draw_ids(sample, context, packed=True)


PARAMETERS = ("multipliers", "vocab_sizes", "head_offsets", "eos_token_id")
HASHES = (
    Drawn("NGramHashMapping", ngram_samples, _draw_plain, ngram_truth, PARAMETERS, ("M",), ("int64",)),
    Drawn("VarlenNGramHashMapping", varlen_samples, _draw_packed, ngram_truth, PARAMETERS, ("M",), ("int64",)),
)

OPERATORS = (
    Drawn("MurmurHash3", murmur_samples, draw_keys, murmur_truth, (), ("T1",), ("int32",)).declare(),
    *(each.declare(without_rank_dtypes=ROWS_OF_TOKENS) for each in HASHES),
)
