"""TfIdfVectorizer-9: how often each n-gram of a pool occurs in a row of integers.

Source: the operator's page, and its examples for what the text leaves open: an n-gram of one element is counted once
whatever is skipped, and n-grams with 0, 1, ... skips add up. The weights of the cases are such that
products are exact, and positive, since the sign of a 0 is left open. Strings, which numpy cannot hold, have no cases,
nor have two n-grams with one place in the output, of which the page says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("TfIdfVectorizer",)

INT32 = np.iinfo(np.int32)
ROW = (1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8, 2, 4, 5)


@dataclass(frozen=True, kw_only=True)
class NgramSample(Sample):
    """row: X, repeated to `shape`; None for the row as it is. lengths: the shortest and the longest n-gram that counts.

    pool: n-grams of 1, 2, ... elements. changed: attributes that differ from those that follow.
    """

    row: tuple[int, ...] = ROW
    shape: tuple[int, ...] | None = None
    mode: str = "TF"
    lengths: tuple[int, int] = (1, 2)
    skips: int = 0
    pool: tuple[tuple[tuple[int, ...], ...], ...] = (((2,), (3,), (5,)), ((4, 5), (6, 7), (8, 6), (3, 3)))
    order: str = "rising"
    weights: bool = False
    changed: Mapping[str, Attribute | None] = field(default_factory=dict)


THREE = (((2,), (3,)), ((3, 3), (6, 7)), ((3, 3, 3), (7, 8, 6), (8, 6, 7)))


def samples() -> Iterator[NgramSample]:
    for mode in ("TF", "IDF", "TFIDF"):
        for weights in (False, True):
            name = f"{mode.lower()}{'_weights' if weights else ''}"
            yield NgramSample(name=name, mode=mode, weights=weights, every_dtype=weights)
            yield NgramSample(name=f"{name}_batches", mode=mode, weights=weights, shape=(3, 7), every_dtype=True)
            yield NgramSample(name=f"{name}_skips", mode=mode, weights=weights, skips=5, shape=(2, 9))
    for lengths in ((1, 1), (2, 2), (1, 2)):
        for skips in (0, 1, 2, 5)[lengths == (1, 2) :]:
            yield NgramSample(name=f"lengths_{lengths[0]}_to_{lengths[1]}_skips_{skips}", lengths=lengths, skips=skips)
    for lengths in ((1, 3), (2, 3), (3, 3), (1, 2)):
        for skips in (0, 2):
            name = f"three_lengths_{lengths[0]}_to_{lengths[1]}_skips_{skips}"
            yield NgramSample(name=name, lengths=lengths, pool=THREE, skips=skips)
    for order in ("falling", "sparse"):
        yield NgramSample(name=f"places_{order}", order=order, shape=(2, 9), every_dtype=order == "sparse")
        yield NgramSample(name=f"places_{order}_weights", order=order, weights=True, mode="TFIDF", shape=(2, 9))
    yield NgramSample(name="places_with_gaps_skips", order="sparse", skips=3)
    yield NgramSample(name="skips_beyond_the_row", skips=40)
    yield NgramSample(name="row_as_long_as_the_ngram", row=(6, 7), lengths=(2, 2))
    yield NgramSample(name="row_shorter_than_the_ngram", row=(6,), lengths=(2, 2))
    yield NgramSample(name="nothing_found", row=(100, 101, 102))
    yield NgramSample(name="ngrams_do_not_cross_rows", row=(6, 1, 7, 6, 7, 1), shape=(3, 2), lengths=(2, 2))
    yield NgramSample(name="overlapping_ngrams", row=(3,) * 6, pool=THREE, lengths=(1, 3), skips=1)
    yield NgramSample(name="no_ngrams_of_one", pool=((), ((6, 7), (7, 6))), lengths=(2, 2))
    values = ((INT32.min,), (INT32.max,), (-1,), (0,))
    row = (INT32.min, 0, INT32.max, -1, INT32.max)
    yield NgramSample(name="ends_of_int32", row=row, pool=(values, ((-1, INT32.max),)), every_dtype=True)
    yield NgramSample(name="long_row", row=(*ROW, *range(9)) * 43, skips=1)
    yield NgramSample(name="many_rows", shape=(1031, 3))
    yield NgramSample(name="large_pool", pool=(tuple((n,) for n in range(1031)), ()), row=(1030, 5, 5, 1029))
    yield NgramSample(name="size_1", row=(3,))
    yield NgramSample(name="no_elements", row=(), shape=(0,))
    yield NgramSample(name="rows_without_elements", row=(), shape=(3, 0))
    yield expect_refusal(NgramSample(name="rank_3", rank=3, shape=(1, 2, 3)))
    yield expect_refusal(NgramSample(name="unknown_mode", mode="BM25"))
    yield expect_refusal(NgramSample(name="fewer_weights", mode="IDF", changed={"weights": (1.0, 2.0)}))
    yield expect_refusal(NgramSample(name="no_pool", changed={"pool_int64s": None}))
    yield expect_refusal(NgramSample(name="two_pools", changed={"pool_strings": ("a", "b")}))


def bindings(sample: NgramSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes != ("int32",):
        return (graph.RUNTIME,) if sample.every_dtype else ()
    return (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT)


def node(sample: NgramSample, context: CaseContext) -> Node:
    """X int32 or int64, [C] or [N, C]."""
    x = np.array(sample.row, context.dtype)
    if sample.shape is not None:
        x = np.resize(x, sample.shape)
    starts = np.cumsum([0, *(sum(map(len, grams)) for grams in sample.pool[:-1])]).tolist()
    count = sum(map(len, sample.pool))
    places = {"rising": np.arange(count), "falling": np.arange(count)[::-1], "sparse": np.arange(count)[::-1] * 3 + 2}
    attributes: dict[str, Attribute | None] = {
        "mode": sample.mode,
        "min_gram_length": sample.lengths[0],
        "max_gram_length": sample.lengths[1],
        "max_skip_count": sample.skips,
        "ngram_counts": tuple(starts),
        "ngram_indexes": tuple(places[sample.order].tolist()),
        "pool_int64s": tuple(item for grams in sample.pool for gram in grams for item in gram),
    }
    if sample.weights:
        attributes["weights"] = tuple(0.5 + i for i in range(count))
    attributes |= sample.changed
    present = {name: value for name, value in attributes.items() if value is not None}
    return Node("TfIdfVectorizer", "", context.since_version, (Operand("X", x),), ("Y",), present)


def _pool(node: Node) -> list[tuple[int, ...]]:
    """The n-grams, in the order of `ngram_indexes`."""
    items, starts = node.integers("pool_int64s", ()), node.integers("ngram_counts", ())
    grams: list[tuple[int, ...]] = []
    for length, (start, end) in enumerate(zip(starts, (*starts[1:], len(items)), strict=True), 1):
        grams += [tuple(items[at : at + length]) for at in range(start, end, length)]
    return grams


def counts_of(row: Array, grams: list[tuple[int, ...]], lengths: range, skips: int) -> Array:
    """How often each n-gram occurs in the row, int64: its elements stand 1, 2, ... or skips + 1 apart."""
    known = {gram: place for place, gram in enumerate(grams)}
    found, values = np.zeros(len(grams), np.int64), row.tolist()
    for length in lengths:
        for apart in range(1, skips + 2 if length > 1 else 2):
            for start in range(len(values) - (length - 1) * apart):
                place = known.get(tuple(values[start + k * apart] for k in range(length)))
                if place is not None:
                    found[place] += 1
    return found


def truth(node: Node) -> Truth:
    x, mode = node.array("X"), node.text("mode", "")
    places = np.array(node.integers("ngram_indexes", ()))
    if x.ndim not in (1, 2):
        return Refusal(f"X must have one or two dimensions, not {x.ndim}")
    if mode not in ("TF", "IDF", "TFIDF"):
        return Refusal(f"mode '{mode}' is none of TF, IDF, TFIDF")
    if ("pool_int64s" in node.attributes) == ("pool_strings" in node.attributes):
        return Refusal("one of pool_int64s and pool_strings must be there, and not both")
    weights = np.array(node.attributes.get("weights", np.ones(len(places))), np.float32)
    if len(weights) != len(places):
        return Refusal(f"there must be as many weights as ngram_indexes, {len(places)}, not {len(weights)}")
    grams = _pool(node)
    lengths = range(node.integer("min_gram_length", 1), node.integer("max_gram_length", 1) + 1)
    y = np.zeros((*x.shape[:-1], int(places.max()) + 1), np.float32)
    for index in np.ndindex(x.shape[:-1]):
        counts = counts_of(x[index], grams, lengths, node.integer("max_skip_count", 0))
        if mode == "IDF":
            counts = np.minimum(counts, 1)
        y[index][places] = counts if mode == "TF" else counts * weights
    return Outputs((Output("Y", y),))


OPERATORS = (Operator("TfIdfVectorizer", samples, bindings, node, truth, NO_KERNEL),)
