"""com.microsoft::QEmbedLayerNormalization: EmbedLayerNormalization of quantised tables.

Source: ONNX Runtime's ContribOperators.md. A level stands for (level - zero point) * scale, a float32. mask_index_out
counts the ones of a row of the mask, whose padding is at the right; without a mask it has no defined value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.estimate import Estimate, Precision, exact
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Node
from epcheck.generators.operators.attention.embed_layer_normalization import normalise_rows
from epcheck.generators.oracle_math import quantization
from epcheck.generators.truth import Output, Outputs, Refusal, Truth, Undefined

DECLARES = ("com.microsoft::QEmbedLayerNormalization",)

SINGLE = Precision(np.dtype(np.float32))
TABLES = ("word_embedding", "position_embedding", "segment_embedding", "gamma", "beta")
LEVELS = {name: name if name == "segment_embedding" else f"{name}_quant" for name in TABLES}
SEGMENTS = ("segment_ids", "segment_embedding", "segment_embedding_scale", "segment_embedding_zero_point")
BY_TOKEN = "ids have 2 dimensions"
WORDS = 11


@dataclass(frozen=True, kw_only=True)
class QuantizedEmbedSample(DrawnSample):
    """B = batch, S = sequence, W = hidden. zero: of all tables, from the middle of the type, which is 0 of
    int8. word: the last one. spare: positions beyond the sequence."""

    batch: int = 3
    sequence: int = 5
    hidden: int = 8
    zero: int = 3
    word: int | None = None
    spare: int = 2


def samples() -> Iterator[QuantizedEmbedSample]:
    for present, name in (((*SEGMENTS, "mask"), "defaults"), (SEGMENTS, "no_mask"), (("mask",), "no_segments"),
                          ((), "neither")):  # fmt: skip
        yield QuantizedEmbedSample(name=name, present=present, attributes={"epsilon": 1e-12}, every_dtype=True)
    whole = (*SEGMENTS, "mask")
    for epsilon, name in ((1.0, "1"), (1e-3, "small")):
        yield QuantizedEmbedSample(name=f"epsilon_{name}", present=whole, attributes={"epsilon": epsilon})
    for zero, name in ((0, "middle"), (100, "high"), (-100, "low")):
        yield QuantizedEmbedSample(name=f"zero_point_{name}", present=whole, zero=zero, every_dtype=True,
                                   attributes={"epsilon": 1e-12})  # fmt: skip
    for batch, sequence, hidden in ((1, 1, 8), (1, 4, 2), (2, 3, 65), (1, 2, 1030), (65, 1, 4), (2, 257, 4)):
        yield QuantizedEmbedSample(name=f"shape_{batch}_{sequence}_{hidden}", present=whole, batch=batch,
                                   sequence=sequence, hidden=hidden, attributes={"epsilon": 1e-12})  # fmt: skip
    yield QuantizedEmbedSample(name="no_spare_position", present=whole, spare=0, attributes={"epsilon": 1e-12})
    for word, name in ((WORDS, "at_words"), (-1, "minus_1")):
        yield expect_refusal(QuantizedEmbedSample(name=f"word_{name}", present=whole, word=word))


def draw(sample: QuantizedEmbedSample, context: CaseContext) -> Mapping[str, Array]:
    rng, dtype, shape = context.rng, context.dtype, (sample.batch, sample.sequence)
    middle = 128 if dtype == np.uint8 else 0
    rows = {
        "word_embedding": (WORDS,),
        "position_embedding": (sample.sequence + sample.spare,),
        "segment_embedding": (2,),
    }
    found: dict[str, Array] = {}
    for place, name in enumerate(TABLES):
        table = (*rows.get(name, ()), sample.hidden)
        found[LEVELS[name]] = quantization.random_levels(table, dtype, rng)
        found[f"{name}_scale"] = np.array(0.01 * (1 + place), np.float32)
        found[f"{name}_zero_point"] = np.array(middle + sample.zero + place, dtype)
    ids = rng.integers(0, WORDS, shape, dtype=np.int32)
    if sample.word is not None:
        ids[-1, -1] = sample.word
    lengths = rng.integers(1, sample.sequence, sample.batch, endpoint=True)
    lengths[0] = max(1, sample.sequence - 1)
    mask = (np.arange(sample.sequence) < lengths[:, None]).astype(np.int32)
    return {**found, "input_ids": ids, "segment_ids": rng.integers(0, 2, shape, dtype=np.int32), "mask": mask}


def _dequantise(node: Node, name: str, rows: Array | None = None) -> Estimate:
    """What the levels stand for, of the rows."""
    levels = node.array(LEVELS[name]) if rows is None else node.array(LEVELS[name])[rows]
    away = levels.astype(np.float64) - float(node.array(f"{name}_zero_point"))
    return SINGLE.multiply(exact(away), exact(node.array(f"{name}_scale")))


def truth(node: Node) -> Truth:
    """The sum of the embeddings of word, position and segment, normalised over its last axis, by gamma, plus beta."""
    ids, segments, mask = node.array("input_ids"), node.value("segment_ids"), node.value("mask")
    if ((ids < 0) | (ids >= len(node.array(LEVELS["word_embedding"])))).any():
        return Refusal("a word is beyond the table of words")
    positions = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    parts = [_dequantise(node, "word_embedding", ids), _dequantise(node, "position_embedding", positions)]
    if segments is not None:
        parts.append(_dequantise(node, "segment_embedding", segments))
    normal = normalise_rows(SINGLE, SINGLE.total(*parts), node.number("epsilon", 1e-12))
    made = SINGLE.add(SINGLE.multiply(normal, _dequantise(node, "gamma")), _dequantise(node, "beta"))
    counts = np.zeros(len(ids), np.int32) if mask is None else (mask == 1).sum(1).astype(np.int32)
    is_open = Undefined(np.ones(counts.shape, bool)) if mask is None else None
    return Outputs((SINGLE.output("layernorm_out", made), Output("mask_index_out", counts, undefined=is_open)))


PARAMETERS = tuple(f"{name}{part}" for name in TABLES
                   for part in ("_scale", "_zero_point")) + tuple(LEVELS.values())  # fmt: skip
EMBEDDING = Drawn("QEmbedLayerNormalization", samples, draw, truth, PARAMETERS, ("T2",), ("uint8",))

OPERATORS = (EMBEDDING.declare(without_rank_dtypes=BY_TOKEN),)
