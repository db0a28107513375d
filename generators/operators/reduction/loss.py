"""NegativeLogLikelihoodLoss (12 to 22) and SoftmaxCrossEntropyLoss (12, 13): functions that sessions inline.

Sources: the operator pages. A mean is the sum divided by the sum of the weights that count, as `reduction` says; where
there are none, a sample that is not ignored has the weight 1 (the function bodies and node tests of both operators).
Where every sample is ignored, that is 0 / 0, which no page defines: no case has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import estimate
from epcheck.generators.bounds.estimate import Estimate, Precision
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import OTHER_RANK
from epcheck.generators.operators.reduction import softmax
from epcheck.generators.truth import Outputs, Refusal, Truth, Ulp

DECLARES = (
    "NegativeLogLikelihoodLoss",
    "SoftmaxCrossEntropyLoss",
)

INPUTS = {
    "NegativeLogLikelihoodLoss": ("input", "target", "weight"),
    "SoftmaxCrossEntropyLoss": ("scores", "labels", "weights"),
}


SHAPES: Mapping[str, tuple[int, ...]] = {"matrix": (4, 5), "one_more": (3, 5, 2), "two_more": (2, 3, 4, 5)}


@dataclass(frozen=True, kw_only=True)
class LossSample(DrawnSample):
    """shape: of the scores. ignored: a label that some samples get, whose loss is 0. labels: those of all samples, in
    turn; empty for random ones. special: the float that stands in one score. size: of the scores."""

    shape: tuple[int, ...] = (4, 5)
    ignored: int | None = None
    labels: tuple[int, ...] = ()
    special: float | None = None
    size: float = 4.0


def list_samples(weight: str) -> Iterator[LossSample]:
    weighted = (weight,)
    for reduction in ("none", "sum", "mean"):
        reduce: Mapping[str, Attribute] = {"reduction": reduction}
        for name, shape in SHAPES.items():
            for present in ((), weighted):
                label = f"{reduction}_{name}" + ("_weighted" if present else "")
                yield LossSample(
                    name=label, shape=shape, attributes=reduce, present=present, every_dtype=name == "matrix"
                )
                for ignored in (1, -1, 100, -100):
                    value = f"minus_{-ignored}" if ignored < 0 else str(ignored)
                    yield LossSample(name=f"{label}_ignored_{value}", shape=shape, present=present, ignored=ignored,
                                     attributes={**reduce, "ignore_index": ignored},
                                     every_dtype=name == "matrix" and ignored == -1)  # fmt: skip
        yield LossSample(name=f"{reduction}_ignored_by_none", shape=(6, 3), labels=(0, 1, 2),
                         attributes={**reduce, "ignore_index": 7}, present=weighted)  # fmt: skip
        yield LossSample(name=f"{reduction}_one_class", shape=(4, 1), attributes=reduce, present=weighted)
        yield LossSample(name=f"{reduction}_one_sample", shape=(1, 7), attributes=reduce, present=weighted)
        yield LossSample(name=f"{reduction}_last_class", shape=(3, 33), labels=(32, 0, 31), attributes=reduce)
        yield LossSample(name=f"{reduction}_1025_classes", shape=(2, 1025), attributes=reduce)
        yield LossSample(name=f"{reduction}_1025_samples", shape=(1025, 3), attributes=reduce, present=weighted)
        yield LossSample(name=f"{reduction}_257_positions", shape=(2, 3, 257), attributes=reduce, present=weighted)
    for rank in range(2, 9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield LossSample(name=f"rank_{rank}", rank=rank, shape=shape, present=weighted)
    yield LossSample(name="default_reduction", present=weighted, every_dtype=True)
    yield LossSample(name="no_samples", shape=(0, 3), attributes={"reduction": "none"})
    yield LossSample(name="no_samples_sum", shape=(0, 3), attributes={"reduction": "sum"})
    yield LossSample(name="far_apart", shape=(5, 4), size=80.0, attributes={"reduction": "none"}, every_dtype=True)
    yield LossSample(name="nan", shape=(4, 3), labels=(0, 1, 2), special=np.nan, attributes={"reduction": "none"},
                     every_dtype=True)  # fmt: skip
    yield LossSample(name="minus_infinity", shape=(4, 3), labels=(0, 1, 2), special=-np.inf, every_dtype=True,
                     attributes={"reduction": "none"})  # fmt: skip
    yield expect_refusal(LossSample(name="label_at_classes", shape=(2, 3), labels=(1, 3)))
    yield expect_refusal(LossSample(name="label_below", shape=(2, 3), labels=(1, -4)))
    yield expect_refusal(LossSample(name="label_minus_1", shape=(2, 3), labels=(1, -1)))
    yield expect_refusal(LossSample(name="unknown_reduction", shape=(2, 3), attributes={"reduction": "max"}))


def draw(operator: str, sample: LossSample, context: CaseContext) -> Mapping[str, Array]:
    """Scores, and labels of which some are ignored, never all; the weights of classes differ."""
    shape, rng = sample.shape, context.rng
    scores = sample.size * rng.uniform(-1, 1, shape)
    if operator == "NegativeLogLikelihoodLoss":
        scores = np.log(rng.uniform(0.01, 1, shape)) * (sample.size / 4)
    if sample.special is not None:
        scores[0, 0] = sample.special
    where = (shape[0], *shape[2:])
    labels = rng.integers(0, shape[1], where)
    if sample.labels:
        labels = np.resize(sample.labels, where)
    if sample.ignored is not None:
        flat = labels.reshape(-1)
        flat[labels.size // 2 :: 2] = sample.ignored
        flat[0] = 0
    weights = rng.uniform(0.25, 2, shape[1])
    values = (scores.astype(context.dtype), labels.astype(context.dtypes[1]), weights.astype(context.dtype))
    return dict(zip(INPUTS[operator], values, strict=True))


def take_log(scores: Array) -> Estimate:
    """The logarithms of the shares of the classes, and how far an implementation may be from them."""
    operand = Operand("input", scores)
    found = softmax.truth(Node("LogSoftmax", "", softmax.PER_AXIS, (operand,), ("output",), {"axis": 1}))
    assert isinstance(found, Outputs)
    (output,) = found.outputs
    if output.exact is None:
        return estimate.exact(output.value)
    assert isinstance(output.bound, Ulp)
    size = np.where(np.isfinite(output.exact), np.abs(output.exact), 0)
    error = output.bound.floor + output.bound.bound * size * np.finfo(scores.dtype).eps
    return Estimate(output.exact, np.broadcast_to(error, scores.shape))


def find_loss(node: Node, precision: Precision, log: Estimate) -> Estimate | str:
    """The formula of the pages."""
    names = INPUTS[node.op_type]
    labels, weights = node.array(names[1]), node.value(names[2])
    ignore = node.integer("ignore_index", 0) if "ignore_index" in node.attributes else None
    reduction, classes = node.text("reduction", "mean"), log.value.shape[1]
    if reduction not in ("none", "sum", "mean"):
        return f"reduction must be none, sum or mean, not '{reduction}'"
    counts = np.ones(labels.shape, bool) if ignore is None else labels != ignore
    if ((labels[counts] < 0) | (labels[counts] >= classes)).any():
        return f"a label must be in [0, {classes - 1}] or equal ignore_index"
    kept = np.where(counts, labels, 0)[:, None]
    taken = Estimate(*(np.take_along_axis(part, kept, 1)[:, 0] for part in (log.value, log.error)))
    weight = counts * (1.0 if weights is None else weights.astype(np.float64)[kept[:, 0]])
    loss = Estimate(np.where(counts, -taken.value, 0), np.where(counts, taken.error, 0))
    loss = precision.multiply(loss, estimate.exact(weight))
    if reduction == "none":
        return loss
    axes = tuple(range(labels.ndim))
    total = precision.sum(loss, axes)
    return total if reduction == "sum" else precision.divide(total, precision.sum(estimate.exact(weight), axes))


def truth(node: Node) -> Truth:
    scores = node.array(INPUTS[node.op_type][0])
    precision = Precision(scores.dtype)
    log = estimate.exact(scores) if node.op_type == "NegativeLogLikelihoodLoss" else take_log(scores)
    with np.errstate(invalid="ignore"):
        loss = find_loss(node, precision, log)
    if isinstance(loss, str):
        return Refusal(loss)
    certain = (Estimate(each.value, np.where(np.isfinite(each.value), each.error, 0)) for each in (loss, log))
    return Outputs(tuple(precision.output(name, result) for name, result in zip(node.results, certain, strict=False)))


def _nll_samples() -> Iterator[LossSample]:
    return list_samples("weight")


def _cross_entropy_samples() -> Iterator[LossSample]:
    yield from list_samples("weights")
    yield LossSample(name="loss_alone", outputs=1, every_dtype=True)
    yield LossSample(name="loss_alone_weighted", outputs=1, present=("weights",))


def _draw_nll(sample: LossSample, context: CaseContext) -> Mapping[str, Array]:
    return draw("NegativeLogLikelihoodLoss", sample, context)


def _draw_cross_entropy(sample: LossSample, context: CaseContext) -> Mapping[str, Array]:
    return draw("SoftmaxCrossEntropyLoss", sample, context)


FIRST = ("float32", "int64")
VARIED = ("T", "Tind")
NLL = Drawn("NegativeLogLikelihoodLoss", _nll_samples, _draw_nll, truth, ("weight",), VARIED, FIRST, "")
CROSS_ENTROPY = Drawn(
    "SoftmaxCrossEntropyLoss", _cross_entropy_samples, _draw_cross_entropy, truth, ("weights",), VARIED, FIRST, ""
)

OPERATORS = tuple(each.declare(without_rank_9=OTHER_RANK, propagates=("NaN",)) for each in (NLL, CROSS_ENTROPY))
