"""NonMaxSuppression-10 and NonMaxSuppression-11: the boxes that no better one covers.

Source: the operator's page. Of each batch and class the boxes are taken by falling score; one is left out if its
intersection over union with one taken before is greater than the threshold. Scores less than `score_threshold` do not
count; equal ones do. The page calls the output a set; its own examples and every implementation list it by batch, by
class and by falling score, which is what the truth is. It does not say which of two equal scores goes first, what the
overlap of two boxes without an area is, nor what a negative number of boxes means: no case has them. The coordinates
are multiples of 1/8, so that intersections are exact, and no overlap is near the threshold unless it is the threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("NonMaxSuppression",)

NEAR = 2e-7
"""An overlap within this of the threshold without being it would be decided by a rounding: areas are exact in float32,
and a division is off by 2.5 ULP (OpenCL C), 1.5e-7 below 1."""

PAGE = ((0, 0, 8, 8), (0, 1, 8, 9), (0, -1, 8, 7), (0, 80, 8, 88), (0, 81, 8, 89), (0, 800, 8, 808))
"""In eighths, y1 x1 y2 x2: two heaps of three and two boxes, and one apart."""

SCORES = (0.875, 0.75, 0.625, 0.9375, 0.5, 0.25)
INT64_MAX = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, kw_only=True)
class BoxesSample(Sample):
    """boxes, scores: see `_boxes`; counts: batches, classes, and boxes of a batch.

    most, overlap, least: max_output_boxes_per_class, iou_threshold, score_threshold; None leaves the input out.
    """

    boxes: str = "page"
    counts: tuple[int, int, int] = (1, 1, 6)
    most: int | None = 6
    overlap: float | None = 0.5
    least: float | None = None
    center: int | None = None
    broken: str = ""


def samples() -> Iterator[BoxesSample]:
    yield BoxesSample(name="page")
    yield BoxesSample(name="score_threshold", least=0.4)
    yield BoxesSample(name="score_equals_threshold", least=0.875)
    yield BoxesSample(name="score_threshold_of_many_bits", least=0.87505)
    yield BoxesSample(name="score_threshold_negative", least=-1.0)
    yield BoxesSample(name="score_threshold_above_all", least=2.0)
    yield BoxesSample(name="negative_scores", boxes="negative")
    yield BoxesSample(name="negative_scores_threshold_0", boxes="negative", least=0.0)
    for most in (0, 1, 2, 3, 100, INT64_MAX):
        yield BoxesSample(name=f"at_most_{'int64_max' if most == INT64_MAX else most}", most=most)
    yield BoxesSample(name="max_output_boxes_omitted", most=None)
    yield BoxesSample(name="max_output_boxes_omitted_alone", most=None, least=0.25)
    yield BoxesSample(name="iou_threshold_omitted", overlap=None)
    yield BoxesSample(name="iou_threshold_omitted_alone", overlap=None, least=0.3)
    yield BoxesSample(name="iou_threshold_omitted_little_overlap", boxes="chain", counts=(1, 1, 4), overlap=None)
    for overlap in (0.0, 0.25, 0.75, 1.0):
        yield BoxesSample(name=f"iou_threshold_{overlap:g}".replace(".", "_"), overlap=overlap)
    yield BoxesSample(name="iou_equals_threshold", boxes="half", counts=(1, 1, 3), overlap=0.5)
    yield BoxesSample(name="iou_threshold_of_many_bits", boxes="half", counts=(1, 1, 3), overlap=0.49995)
    yield BoxesSample(name="boxes_and_scores_of_many_bits", boxes="nearly half", counts=(1, 1, 3), overlap=0.50002)
    yield BoxesSample(name="iou_equals_threshold_1", boxes="same", counts=(1, 1, 3), overlap=1.0)
    yield BoxesSample(name="iou_above_threshold", boxes="half", counts=(1, 1, 3), overlap=0.4375)
    yield BoxesSample(name="the_same_box", boxes="same", counts=(1, 1, 3))
    yield BoxesSample(name="boxes_that_touch", boxes="touching", counts=(1, 1, 4), overlap=0.0)
    yield BoxesSample(name="a_box_within_another", boxes="within", counts=(1, 1, 3), overlap=0.25)
    yield BoxesSample(name="suppressed_by_a_suppressed_box", boxes="chain", counts=(1, 1, 4), overlap=0.3)
    yield BoxesSample(name="a_box_without_area", boxes="flat", counts=(1, 1, 3))
    yield BoxesSample(name="flipped_corners", boxes="flipped")
    yield BoxesSample(name="negative_coordinates", boxes="moved")
    yield BoxesSample(name="large_coordinates", boxes="far")
    for center in (0, 1):
        yield BoxesSample(name=f"center_point_box_{center}", center=center)
        yield BoxesSample(name=f"center_point_box_{center}_moved", center=center, boxes="moved")
        yield BoxesSample(name=f"center_point_box_{center}_random", center=center, boxes="random", counts=(2, 3, 40))
    for batches, classes in ((1, 3), (3, 1), (2, 2), (5, 7)):
        yield BoxesSample(name=f"batches_{batches}_classes_{classes}", counts=(batches, classes, 6), boxes="shuffled")
        yield BoxesSample(
            name=f"batches_{batches}_classes_{classes}_two_each", counts=(batches, classes, 6), boxes="shuffled", most=2
        )
    for count in (1, 257, 1025):
        yield BoxesSample(name=f"boxes_{count}", boxes="random", counts=(1, 1, count), most=count, overlap=0.3017)
    yield BoxesSample(name="boxes_1025_apart", boxes="apart", counts=(1, 1, 1025), most=2000)
    yield BoxesSample(name="classes_of_80", boxes="random", counts=(1, 80, 30), most=5, overlap=0.3, least=0.5)
    yield BoxesSample(name="no_boxes", counts=(1, 2, 0))
    yield BoxesSample(name="no_classes", counts=(1, 0, 6))
    for broken in ("box_of_3", "boxes_of_rank_2", "scores_of_rank_2", "batches", "fewer_scores"):
        yield expect_refusal(BoxesSample(name=broken, broken=broken))
    yield expect_refusal(BoxesSample(name="iou_threshold_above_1", overlap=1.5))
    yield expect_refusal(BoxesSample(name="iou_threshold_below_0", overlap=-0.5))


def bindings(sample: BoxesSample, since_version: int, _dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return spread(sample, first=True, newest=since_version == 11)


def node(sample: BoxesSample, context: CaseContext) -> Node:
    """boxes float32 [B, S, 4], scores float32 [B, C, S], and scalars: int64, float32, float32."""
    corners = _boxes(sample, context) / 8
    if sample.center:
        low, high = np.minimum(corners[..., :2], corners[..., 2:]), np.maximum(corners[..., :2], corners[..., 2:])
        corners = np.concatenate([((low + high) / 2)[..., ::-1], (high - low)[..., ::-1]], -1)
    boxes, scores = _broken(sample.broken, corners.astype(np.float32), _scores(sample, context).astype(np.float32))
    operands: list[Operand | None] = [Operand("boxes", boxes), Operand("scores", scores)]
    for name, value, dtype in (
        ("max_output_boxes_per_class", sample.most, np.int64),
        ("iou_threshold", sample.overlap, np.float32),
        ("score_threshold", sample.least, np.float32),
    ):
        operands.append(None if value is None else Operand(name, np.array(value, dtype), parameter=True))
    while operands[-1] is None:
        operands.pop()
    attributes: dict[str, Attribute] = {} if sample.center is None else {"center_point_box": sample.center}
    return Node("NonMaxSuppression", "", context.since_version, tuple(operands), ("selected_indices",), attributes)


def _broken(how: str, boxes: Array, scores: Array) -> tuple[Array, Array]:
    match how:
        case "box_of_3":
            return boxes[..., :3], scores
        case "boxes_of_rank_2":
            return boxes[0], scores
        case "scores_of_rank_2":
            return boxes, scores[0]
        case "batches":
            return np.concatenate([boxes, boxes]), scores
        case "fewer_scores":
            return boxes, scores[..., :-1]
    return boxes, scores


def _boxes(sample: BoxesSample, context: CaseContext) -> Array:
    """[batches, boxes, 4] in eighths."""
    batches, _, count = sample.counts
    page = np.array(PAGE)[:count]
    match sample.boxes:
        case "half":  # an intersection of 64 by 64 in a union of 128 by 64
            page = np.array([(0, 0, 64, 64), (0, 0, 64, 128), (200, 200, 264, 264)])
        case "nearly half":  # 127.99 is 128 in float16
            page = np.array([(0, 0, 64, 64), (0, 0, 64, 127.99), (200, 200, 264, 264)])
        case "same":
            page = np.array([(8, 8, 24, 24)] * 3)
        case "touching":
            page = np.array([(0, 0, 8, 8), (0, 8, 8, 16), (8, 0, 16, 8), (8, 8, 16, 16)])
        case "within":
            page = np.array([(0, 0, 64, 64), (16, 16, 24, 24), (8, 0, 56, 64)])
        case "chain":
            page = np.array([(0, 0, 16, 16), (0, 6, 16, 22), (0, 12, 16, 28), (0, 18, 16, 34)])
        case "flat":
            page = np.array([(0, 0, 16, 16), (4, 4, 4, 12), (40, 40, 48, 48)])
        case "flipped":
            page = np.array([box[[2, 1, 0, 3]] if i % 2 else box[[2, 3, 0, 1]] for i, box in enumerate(page)])
        case "moved":
            page = page - np.array([4000, 500, 4000, 500])
        case "far":
            page = page * 1024
        case "random":
            low = context.rng.integers(0, 200 if count < 100 else 1000, (batches, count, 2))
            return np.concatenate([low, low + context.rng.integers(8, 90, (batches, count, 2))], -1)
        case "apart":
            page = np.array([(0, 16 * i, 8, 16 * i + 8) for i in range(count)])
        case "shuffled":
            return np.stack([context.rng.permutation(page) for _ in range(batches)])
    return np.broadcast_to(page, (batches, *page.shape))


def _scores(sample: BoxesSample, context: CaseContext) -> Array:
    """[batches, classes, boxes], no two of a class equal."""
    batches, classes, count = sample.counts
    if sample.boxes in ("random", "apart", "shuffled"):
        drawn = [context.rng.permutation(count) for _ in range(batches * classes)]
        return (np.array(drawn).reshape(sample.counts) + 1) / (count + 1)
    row = np.array((0.7, 0.70005, 0.1) if sample.boxes == "nearly half" else SCORES)[:count]
    return np.broadcast_to(-row if sample.boxes == "negative" else row, sample.counts)


def covers(boxes: Array, center: bool, threshold: float) -> Array:
    """Whether the intersection over the union of two boxes [S, 4] is greater than the threshold, bool [S, S].

    Multiples of 1/16 below 2^20 have exact areas in float64. Whether an overlap near the threshold is the threshold is
    decided in rational numbers.
    """
    wide = boxes.astype(np.float64)
    if center:
        half = wide[:, [3, 2]] / 2
        wide = np.concatenate([wide[:, [1, 0]] - half, wide[:, [1, 0]] + half], -1)
    low, high = np.minimum(wide[:, :2], wide[:, 2:]), np.maximum(wide[:, :2], wide[:, 2:])
    shared = np.minimum(high[:, None], high[None]) - np.maximum(low[:, None], low[None])
    inside = np.prod(np.maximum(shared, 0), -1)
    areas = np.prod(high - low, -1)
    union = areas[:, None] + areas[None] - inside
    overlap = np.divide(inside, union, out=np.zeros_like(inside), where=inside > 0)
    above: Array = overlap > threshold
    near = (np.abs(overlap - threshold) <= NEAR) & (inside > 0) & ~np.eye(len(boxes), dtype=bool)
    for i, j in np.argwhere(near):
        above[i, j] = Fraction(float(inside[i, j])) / Fraction(float(union[i, j])) > Fraction(threshold)
    return above


def truth(node: Node) -> Truth:
    boxes, scores = node.array("boxes"), node.array("scores")
    threshold = node.value("iou_threshold")
    overlap = 0.0 if threshold is None else float(threshold.item())
    if boxes.ndim != 3 or scores.ndim != 3 or boxes.shape[2] != 4:
        return Refusal(
            f"boxes of shape {boxes.shape} and scores of shape {scores.shape} must be [B, S, 4] and [B, C, S]"
        )
    if boxes.shape[0] != scores.shape[0] or boxes.shape[1] != scores.shape[2]:
        return Refusal(f"scores of shape {scores.shape} do not fit boxes of shape {boxes.shape}")
    if not 0 <= overlap <= 1:
        return Refusal(f"iou_threshold must be within [0, 1]; it is {overlap}")
    limit, least = node.value("max_output_boxes_per_class"), node.value("score_threshold")
    most = 0 if limit is None else int(limit.item())
    found: list[tuple[int, int, int]] = []
    for batch, of_batch in enumerate(boxes):
        above = covers(of_batch, bool(node.integer("center_point_box", 0)), overlap)
        for kind, row in enumerate(scores[batch]):
            taken: list[int] = []
            for place in np.argsort(-row.astype(np.float64), kind="stable").tolist():
                if len(taken) >= most or (least is not None and row[place] < least.item()):
                    break
                if not above[place, taken].any():
                    taken.append(place)
            found += [(batch, kind, place) for place in taken]
    return Outputs((Output("selected_indices", np.array(found, np.int64).reshape(-1, 3)),))


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "NonMaxSuppression": (
        OptionalIO(
            "score_threshold",
            inputs=each_alone("max_output_boxes_per_class", "iou_threshold", "score_threshold"),
        ),
    ),
}

OPERATORS = declare(
    (Operator("NonMaxSuppression", samples, bindings, node, truth, NO_KERNEL, varied=("tensor(float)",)),),
    optional_io=OPTIONAL_IO,
)
