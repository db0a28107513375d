"""com.microsoft::CropAndResize: boxes of images, resized to one size.

Source: ONNX Runtime's ContribOperators.md, and for the formula, which it names as "corner aligned", that of
TensorFlow's `tf.image.crop_and_resize`, whose operator it is: row i of a crop of height h > 1 samples the image of
height H at y1 (H - 1) + i (y2 - y1) (H - 1) / (h - 1), and of h = 1 in the middle of the box; what lies outside
[0, H - 1] is extrapolation_value. Which neighbour of a half is the nearest, the pages do not say, and no case asks.
Boxes whose samples stand at the edges of the image have coordinates that float32 holds exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Attribute, Node
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("com.microsoft::CropAndResize",)

Box = tuple[float, float, float, float]
FOUR = "X has 4 dimensions"
MIXED: tuple[Box, ...] = (
    (0.0, 0.0, 1.0, 1.0), (0.25, 0.125, 0.75, 1.0), (0.125, 0.25, 0.625, 0.5), (-0.5, 0.25, 0.5, 1.5),
    (0.75, 1.0, 0.25, 0.0), (0.5, 0.5, 0.5, 0.5), (1.25, 0.0, 1.5, 1.0),
)  # fmt: skip
"""Whole, parts, partly outside, turned, a point, and all outside; eighths, which products of few bits keep exact."""


@dataclass(frozen=True, kw_only=True)
class CropSample(DrawnSample):
    """x: of X. boxes: y1, x1, y2, x2 of each; empty for random ones within the image. crop: height and width.
    images: of each box, in turn.
    count: of random boxes."""

    x: tuple[int, ...] = (3, 2, 9, 17)
    boxes: tuple[Box, ...] = MIXED
    crop: tuple[int, ...] = (5, 3)
    images: tuple[int, ...] = (2, 0, 1)
    count: int = 0


def samples() -> Iterator[CropSample]:
    for mode in ("bilinear", "nearest"):
        own: Mapping[str, Attribute] = {"mode": mode}
        yield CropSample(name=mode, attributes=own, every_dtype=True)
        for crop in ((1, 1), (1, 5), (3, 1), (9, 17), (17, 33), (2, 2)):
            yield CropSample(name=f"{mode}_crop_{crop[0]}_by_{crop[1]}", attributes=own, crop=crop,
                             every_dtype=crop == (1, 5))  # fmt: skip
        for value, name in ((-3.5, "minus_3_5"), (100.0, "100")):
            yield CropSample(name=f"{mode}_extrapolation_{name}", attributes={**own, "extrapolation_value": value},
                             every_dtype=value < 0)  # fmt: skip
        yield CropSample(name=f"{mode}_turned", attributes=own, boxes=((1.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0)))
        yield CropSample(name=f"{mode}_one_pixel", attributes=own, x=(2, 3, 1, 1), images=(1, 0))
        yield CropSample(name=f"{mode}_one_row", attributes=own, x=(2, 3, 1, 9), images=(1, 0))
        yield CropSample(name=f"{mode}_channels_5", attributes=own, x=(1, 5, 5, 9), images=(0,))
        yield CropSample(name=f"{mode}_no_boxes", attributes=own, boxes=(), images=())
        yield CropSample(name=f"{mode}_last_image_alone", attributes=own, boxes=MIXED[1:3], images=(2,))
    yield CropSample(name="defaults", every_dtype=True)
    for crop in ((4, 7), (6, 6), (13, 10)):
        yield CropSample(
            name=f"random_{crop[0]}_by_{crop[1]}", boxes=(), count=5, crop=crop, every_dtype=crop == (6, 6)
        )
    yield CropSample(name="boxes_257", boxes=(), count=257, crop=(3, 2))
    yield CropSample(name="crop_33_by_35", boxes=(), count=2, crop=(33, 35))
    yield expect_refusal(CropSample(name="image_at_batch", images=(3, 0)))
    yield expect_refusal(CropSample(name="image_minus_1", images=(-1, 0)))
    yield expect_refusal(CropSample(name="crop_height_0", crop=(0, 3)))
    yield expect_refusal(CropSample(name="crop_width_minus_1", crop=(3, -1)))
    yield expect_refusal(CropSample(name="crop_of_three", crop=(3, 3, 3)))
    yield expect_refusal(CropSample(name="x_of_rank_3", x=(2, 9, 17)))
    yield expect_refusal(CropSample(name="unknown_mode", attributes={"mode": "cubic"}))


def draw(sample: CropSample, context: CaseContext) -> Mapping[str, Array]:
    rng, dtype = context.rng, context.dtype
    boxes = np.array(sample.boxes).reshape(-1, 4)
    if sample.count:
        boxes = rng.uniform(0.01, 0.99, (sample.count, 4))
    return {
        "X": rng.uniform(-4, 4, sample.x).astype(dtype),
        "rois": boxes.astype(dtype),
        "batch_indices": np.resize(np.array(sample.images, np.int32), len(boxes)),
        "crop_size": np.array(sample.crop, np.int32),
    }


def _place(first: float, last: float, size: int, count: int) -> Array:
    """Where the samples of a crop stand along an axis of the image."""
    if count == 1:
        return np.array([0.5 * (first + last) * (size - 1)])
    return first * (size - 1) + np.arange(count) * ((last - first) * (size - 1) / (count - 1))


def _is_exact(box: Array, crop: tuple[int, int]) -> bool:
    """Whether the coordinates have few bits: of a box in eighths, divided by a power of two."""
    eighths = box.astype(np.float64) * 8
    return bool((eighths == np.rint(eighths)).all()) and not any((size - 1) & (size - 2) for size in crop if size > 1)


def _break_rule(node: Node) -> str:
    x, rois = node.array("X"), node.array("rois")
    images, crop = node.array("batch_indices"), node.array("crop_size")
    mode = node.text("mode", "bilinear")
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or images.shape != rois.shape[:1]:
        return f"X must have 4 dimensions, not {x.ndim}, and rois a row of 4 for each of batch_indices"
    if crop.shape != (2,) or min(crop.tolist()) < 1:
        return f"crop_size must be two positive sizes, not {crop.tolist()}"
    if ((images < 0) | (images >= x.shape[0])).any():
        return f"batch_indices must be in [0, {x.shape[0] - 1}]"
    return "" if mode in ("bilinear", "nearest") else f"mode must be bilinear or nearest, not '{mode}'"


def truth(node: Node) -> Truth:
    """The formula of the page, in float64."""
    if why := _break_rule(node):
        return Refusal(why)
    x, dtype = node.array("X").astype(np.float64), node.array("X").dtype
    high, wide = x.shape[2:]
    rows, across = map(int, node.array("crop_size"))
    nearest = node.text("mode", "bilinear") == "nearest"
    outside = float(np.asarray(node.number("extrapolation_value", 0.0)).astype(dtype))
    found = np.full((len(node.array("rois")), x.shape[1], rows, across), outside)
    error = np.zeros(found.shape)
    unit = float(bounds.finfo(dtype).eps) / 2
    for place, (box, image) in enumerate(zip(node.array("rois"), node.array("batch_indices"), strict=True)):
        y1, x1, y2, x2 = box.astype(np.float64).tolist()
        ys, xs = _place(y1, y2, high, rows), _place(x1, x2, wide, across)
        inside_y, inside_x = ((at >= 0) & (at <= size - 1) for at, size in ((ys, high), (xs, wide)))
        inside = np.ix_(inside_y, inside_x)
        ys, xs = ys[inside_y], xs[inside_x]
        source = x[int(image)]
        if nearest:
            picked = source[:, np.floor(ys + 0.5).astype(int)][:, :, np.floor(xs + 0.5).astype(int)]
            found[place][:, *inside] = picked
            continue
        down, right = np.floor(ys).astype(int), np.floor(xs).astype(int)
        lower, further = np.ceil(ys).astype(int), np.ceil(xs).astype(int)
        along_y, along_x = (ys - down)[:, None], (xs - right)[None]
        corners = [source[:, r][:, :, c] for r in (down, lower) for c in (right, further)]
        top = corners[0] + (corners[1] - corners[0]) * along_x
        bottom = corners[2] + (corners[3] - corners[2]) * along_x
        found[place][:, *inside] = top + (bottom - top) * along_y
        most = np.max(np.abs(corners), axis=0)
        # The coordinates have four roundings and stand between -size and size; a step moves a value by its difference.
        moved = 0 if _is_exact(box, (rows, across)) else 5 * unit * (high + wide) * 2 * most
        error[place][:, *inside] = 8 * unit * most + moved
    if nearest:
        return Outputs((Output("Y", found.astype(dtype)),))
    bound = bounds.ulp(2.0, (bounds.D3D, bounds.HIGHAM), dtype, error)
    return Outputs((bounds.round_output("Y", found, dtype, bound),))


OPERATORS = (
    Drawn("CropAndResize", samples, draw, truth, ("rois", "batch_indices", "crop_size"), ("T1",)).declare(
        without_rank_dtypes=FOUR
    ),
)
