"""com.microsoft::EmbedLayerNormalization.

The DML EP makes it a graph of DML_GATHER, DML_ELEMENT_WISE_ADD, DML_MEAN_VARIANCE_NORMALIZATION1 and, for the mask,
DML_REDUCE.

Source: ONNX Runtime's docs/ContribOperators.md; for shapes its embed_layer_norm_helper.cc. mask_index counts the ones
of a row of the mask, whose padding is at the right; without a mask it has no defined value and is left out. Not
generated: mask_index_type other than its default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.bounds.estimate import Estimate, Precision, exact
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.declaration.optional_io import OptionalIO
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import GRAPH, Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Truth

DECLARES = ("com.microsoft::EmbedLayerNormalization",)

DOMAIN = "com.microsoft"
EPSILON = 1e-12
"""The default of the attribute, in its documentation."""


@dataclass(frozen=True, kw_only=True)
class EmbedSample(Sample):
    """B = batch, S = sequence, W = hidden. positions: the first dimension of position_ids, 0 leaves it out.
    epsilon: None leaves it out. outputs: how many of the three there are."""

    batch: int = 2
    sequence: int = 4
    hidden: int = 8
    segments: bool = True
    mask: bool = True
    positions: int = 0
    epsilon: float | None = None
    outputs: int = 2


def samples() -> Iterator[EmbedSample]:
    yield EmbedSample(name="defaults", every_dtype=True)
    yield EmbedSample(name="no_segments", segments=False, every_dtype=True)
    yield EmbedSample(name="no_mask", mask=False, outputs=3, every_dtype=True)
    yield EmbedSample(name="no_segments_no_mask", segments=False, mask=False, outputs=3)
    yield EmbedSample(name="mask_index_omitted", outputs=1)
    yield EmbedSample(name="embedding_sum", outputs=3, every_dtype=True)
    yield EmbedSample(name="embedding_sum_no_segments", outputs=3, segments=False)
    yield EmbedSample(name="positions_of_all", positions=1)
    yield EmbedSample(name="positions_of_each", positions=2, every_dtype=True)
    yield EmbedSample(name="epsilon_1", epsilon=1.0)
    yield EmbedSample(name="epsilon_small", epsilon=1e-5)
    yield EmbedSample(name="hidden_2", hidden=2)
    yield EmbedSample(name="hidden_65", hidden=65)
    yield EmbedSample(name="hidden_1030", hidden=1030, batch=1, sequence=2)
    yield EmbedSample(name="sequence_1", sequence=1)
    yield EmbedSample(name="batch_1", batch=1)


def bindings(sample: EmbedSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=dtypes == ("float32",), newest=True)


def node(sample: EmbedSample, context: CaseContext) -> Node:
    """input_ids, segment_ids, mask int32 [B, S]; embeddings [., W]; gamma, beta [W]; position_ids int32 [B or 1, S]."""
    rng, dtype, shape = context.rng, context.dtype, (sample.batch, sample.sequence)

    def table(name: str, rows: tuple[int, ...]) -> Operand:
        return Operand(name, rng.standard_normal((*rows, sample.hidden)).astype(dtype), parameter=True)

    lengths = rng.integers(1, sample.sequence, sample.batch, endpoint=True)
    lengths[0] = max(1, sample.sequence - 1)
    mask = (np.arange(sample.sequence) < lengths[:, None]).astype(np.int32)
    positions = (sample.batch if sample.positions == 2 else 1, sample.sequence)
    operands: list[Operand | None] = [
        Operand("input_ids", rng.integers(0, 11, shape, dtype=np.int32)),
        Operand("segment_ids", rng.integers(0, 2, shape, dtype=np.int32)) if sample.segments else None,
        table("word_embedding", (11,)),
        table("position_embedding", (sample.sequence + 2,)),
        table("segment_embedding", (2,)) if sample.segments else None,
        table("gamma", ()),
        table("beta", ()),
        Operand("mask", mask) if sample.mask else None,
        Operand("position_ids", rng.integers(0, sample.sequence + 2, positions, dtype=np.int32))
        if sample.positions
        else None,
    ]
    while operands[-1] is None:
        operands.pop()
    attributes: dict[str, Attribute] = {} if sample.epsilon is None else {"epsilon": sample.epsilon}
    outputs = ("output", "mask_index" if sample.mask else "", "embedding_sum")[: sample.outputs]
    return Node("EmbedLayerNormalization", DOMAIN, 1, tuple(operands), outputs, attributes)


def truth(node: Node) -> Truth:
    """The sum of the embeddings of word, position and segment, normalised over its last axis, by gamma, plus beta."""
    ids, segments, mask = node.array("input_ids"), node.value("segment_ids"), node.value("mask")
    precision = Precision(node.array("gamma").dtype)
    positions = node.value("position_ids")
    positions = np.arange(ids.shape[1])[None] if positions is None else positions
    position = np.broadcast_to(node.array("position_embedding")[positions], (*ids.shape, node.array("gamma").size))
    parts = [exact(node.array("word_embedding")[ids]), exact(position)]
    if segments is not None:
        parts.append(exact(node.array("segment_embedding")[segments]))
    total = precision.total(*parts)
    normal = normalise_rows(precision, total, node.number("epsilon", EPSILON))
    output = precision.add(precision.multiply(normal, exact(node.array("gamma"))), exact(node.array("beta")))
    found = {
        "output": precision.output("output", output),
        "embedding_sum": precision.output("embedding_sum", total),
    }
    if mask is not None:
        found["mask_index"] = Output("mask_index", (mask == 1).sum(1).astype(np.int32))
    return Outputs(tuple(found[name] for name in node.results))


def normalise_rows(precision: Precision, total: Estimate, epsilon: float) -> Estimate:
    """(x - mean) / sqrt(variance + epsilon) over the last axis.

    The mean's error is that of its sum over the length, the deviation's that of x and the mean; the variance, a mean of
    squares, adds theirs twice. sqrt halves relative errors; it and the division are correctly rounded or within 3 ULP.
    """
    length = total.value.shape[-1]
    gamma = (length + 2) * precision.unit / (1 - (length + 2) * precision.unit)
    mean = total.value.mean(-1, keepdims=True)
    mean_error = total.error.mean(-1, keepdims=True) + gamma * np.abs(total.value).mean(-1, keepdims=True)
    away = precision.add(total, Estimate(-mean, mean_error))
    square = precision.multiply(away, away)
    variance = square.value.mean(-1, keepdims=True) + epsilon
    variance_error = square.error.mean(-1, keepdims=True) + gamma * variance
    relative = np.minimum(variance_error / variance, 0.5)
    inverse = variance**-0.5
    return precision.multiply(away, Estimate(inverse, inverse * (relative + 6 * precision.unit)))


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::EmbedLayerNormalization": (
        OptionalIO(
            "positions_of_each",
            inputs=(("segment_ids", "segment_embedding"), ("mask",), ("position_ids",)),
            fields_without={
                "segment_ids": {"segments": False},
                "mask": {"mask": False, "outputs": 3},
                "position_ids": {"positions": 0},
            },
        ),
    ),
}

OPERATORS = declare(
    (Operator("EmbedLayerNormalization", samples, bindings, node, truth, GRAPH, ("T",), DOMAIN),),
    optional_io=OPTIONAL_IO,
)
