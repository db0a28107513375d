"""Regions of interest: MaxRoiPool-1, 22 -> DML_ROI_POOLING; RoiAlign-10, 16, 22 -> DML_ROI_ALIGN1.

Sources: the operator pages; Mask R-CNN (arXiv 1703.06870), to which RoiAlign refers; Fast R-CNN (arXiv 1504.08083) and
its published layer for MaxRoiPool, whose page defines neither rounding nor bins. How the DML EP lowers them:
DmlOperatorRoiPooling.cpp, DmlOperatorRoiAlign.cpp.

RoiAlign's page is silent beyond the image's edge: as in its node tests, a sample up to one pixel outside takes the
edge, one farther out is 0; none lies exactly there. Mode max is the greatest *interpolated* value, as the text says;
the node test of onnx has the greatest weighted corner instead. Regions without extent, and of less than a pixel without
the half-pixel shift, have no sample, nor have MaxRoiPool's coordinates that lie between two roundings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor

import numpy as np

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Literal, Random, int64s
from epcheck.generators.declaration.undefined_sample import (
    FLOATS,
    NOWHERE,
    Answer,
    UndefinedSample,
    UndefinedSamples,
    ramp,
    strange_positions,
)
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.convolution_pooling.roi import (
    InterpolationMode,
    ReduceFunction,
    RoiAlign1,
    RoiPooling,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "RoiAlign",
    "MaxRoiPool",
)

Attributes = tuple[tuple[str, Attribute], ...]
Regions = tuple[tuple[float, ...], ...]
HALF_PIXEL = ("coordinate_transformation_mode", "half_pixel")
OUTPUT_HALF_PIXEL = ("coordinate_transformation_mode", "output_half_pixel")


@dataclass(frozen=True, kw_only=True)
class RoiSample(Sample):
    """x: [N, C, H, W]. rois: x1, y1, x2, y2 of each; batch: the image of each, 0 where it is shorter."""

    x: tuple[int, ...] = (1, 2, 8, 10)
    rois: Regions = ((1.0, 1.0, 7.0, 5.0),)
    batch: tuple[int, ...] = ()
    attributes: Attributes = ()
    values: str = "random"


INNER: Regions = ((0.0, 0.0, 9.0, 7.0), (1.0, 1.0, 7.0, 5.0), (2.5, 0.75, 6.25, 4.5))
SIZE: Attributes = (("output_height", 3), ("output_width", 4))


def align_samples() -> Iterator[RoiSample]:
    yield RoiSample(name="defaults", rois=INNER, every_dtype=True)
    yield RoiSample(name="positions_of_many_bits", rois=((1.1003, 0.7007, 7.3011, 5.9013),), every_dtype=True)
    yield RoiSample(name="all_attributes_at_their_defaults", rois=INNER, attributes=(
        ("mode", "avg"), ("output_height", 1), ("output_width", 1), ("sampling_ratio", 0), ("spatial_scale", 1.0),
    ))  # fmt: skip
    modes: dict[str, Attributes] = {
        "": (), "half_pixel_": (HALF_PIXEL,), "output_half_pixel_": (OUTPUT_HALF_PIXEL,),
    }  # fmt: skip
    for prefix, mode in modes.items():
        for ratio in (0, 1, 2, 3):
            attributes: Attributes = (*mode, *SIZE, ("sampling_ratio", ratio))
            yield RoiSample(
                name=f"{prefix}avg_ratio_{ratio}", rois=INNER, attributes=attributes, every_dtype=ratio in (0, 2)
            )
            yield RoiSample(name=f"{prefix}max_ratio_{ratio}", rois=INNER, attributes=(*attributes, ("mode", "max")),
                            every_dtype=ratio in (0, 2))  # fmt: skip
        for name, scale in (("half", 0.5), ("quarter", 0.25), ("2", 2.0)):
            rois = tuple(tuple(coordinate / scale for coordinate in roi) for roi in INNER)
            yield RoiSample(
                name=f"{prefix}scale_{name}", rois=rois, attributes=(*mode, *SIZE, ("spatial_scale", scale))
            )
        two: Attributes = (*mode, *SIZE, ("sampling_ratio", 2))
        yield RoiSample(name=f"{prefix}roi_partly_outside", rois=((-3.25, -2.25, 5.0, 4.0), (6.25, 5.25, 14.0, 11.0)),
                        attributes=two)  # fmt: skip
        yield RoiSample(name=f"{prefix}roi_outside", rois=((-20.0, -20.0, -10.0, -12.0), (30.0, 2.0, 36.0, 5.0)),
                        attributes=two)  # fmt: skip
        yield RoiSample(name=f"{prefix}roi_to_the_edges", rois=((0.0, 0.0, 10.0, 8.0),), attributes=two)
        yield RoiSample(name=f"{prefix}several_images", x=(3, 2, 6, 6), rois=INNER, batch=(2, 0, 1), attributes=two,
                        every_dtype=True)  # fmt: skip
        yield RoiSample(name=f"{prefix}size_1_image", x=(1, 2, 1, 1), rois=((0.0, 0.0, 1.0, 1.0),), attributes=two)
    yield RoiSample(name="adaptive_unequal", rois=((0.0, 0.0, 9.0, 3.0),), attributes=SIZE)
    yield RoiSample(name="one_row", x=(1, 2, 1, 10), rois=((1.0, 0.0, 7.0, 1.0),), attributes=SIZE)
    yield RoiSample(name="negative_values_max", rois=INNER, values="negative", attributes=(*SIZE, ("mode", "max"),
                    ("sampling_ratio", 2)))  # fmt: skip
    yield RoiSample(name="many_rois", x=(2, 3, 8, 10), rois=INNER * 40, batch=(0, 1) * 60, attributes=SIZE)
    yield RoiSample(name="no_rois", rois=())
    yield expect_refusal(RoiSample(name="rois_of_5_values", rois=((0.0, 1.0, 1.0, 7.0, 5.0),)))
    yield expect_refusal(RoiSample(name="batch_indices_too_many", batch=(0, 0)))
    yield expect_refusal(RoiSample(name="rank_3", rank=3, x=(2, 8, 10)))
    yield expect_refusal(RoiSample(name="unknown_mode", attributes=(("mode", "median"),)))


def align_bindings(sample: RoiSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The rois enter at run time, as they do behind a region proposal, or are symbolic in their number."""
    if not dict(sample.attributes).keys() <= schema.schema("RoiAlign", since_version).attributes.keys():
        return ()
    if dtypes[0] != "float32":
        return (graph.RUNTIME,) if sample.every_dtype else ()
    return (graph.RUNTIME, graph.SYMBOLIC) if sample.every_dtype else (graph.RUNTIME,)


def align_node(sample: RoiSample, context: CaseContext) -> Node:
    """X [N, C, H, W] and rois [R, 4] of one float dtype, batch_indices int64 [R]; Y [R, C, height, width]."""
    rois = np.array(sample.rois, context.dtype).reshape(len(sample.rois), -1 if sample.rois else 4)
    batch = np.array(sample.batch or (0,) * len(sample.rois), np.int64)
    operands = (Operand("X", _image(sample, context)), Operand("rois", rois), Operand("batch_indices", batch))
    return Node("RoiAlign", "", context.since_version, operands, ("Y",), dict(sample.attributes))


def _image(sample: RoiSample, context: CaseContext) -> Array:
    x = context.rng.uniform(-1, 1, sample.x)
    return (x - 2 if sample.values == "negative" else x).astype(context.dtype)


@dataclass(frozen=True)
class _Align:
    """A valid RoiAlign in plain terms."""

    x: Array
    rois: Array  # float64, scaled and shifted
    batch: Array
    size: tuple[int, int]
    ratio: int
    maximum: bool
    half_pixel: bool
    scale: float


def _parse_align(node: Node) -> _Align | str:
    x, rois, batch = (node.array(name) for name in ("X", "rois", "batch_indices"))
    if x.ndim != 4:
        return f"X must have 4 dimensions, not {x.ndim}"
    if rois.ndim != 2 or rois.shape[1] != 4:
        return f"rois of shape {rois.shape} must have 4 values each"
    if batch.shape != (rois.shape[0],):
        return f"batch_indices of shape {batch.shape} must have one value for each of {rois.shape[0]} rois"
    mode = node.text("mode", "avg")
    if mode not in ("avg", "max"):
        return f"mode '{mode}' is neither 'avg' nor 'max'"
    shifts = "coordinate_transformation_mode" in schema.schema("RoiAlign", node.since_version).attributes
    default = "half_pixel" if shifts else "output_half_pixel"
    half_pixel = node.text("coordinate_transformation_mode", default) == "half_pixel"
    scale = node.number("spatial_scale", 1.0)
    size = (node.integer("output_height", 1), node.integer("output_width", 1))
    placed = rois.astype(np.float64) * scale - (0.5 if half_pixel else 0.0)
    return _Align(x, placed, batch, size, node.integer("sampling_ratio", 0), mode == "max", half_pixel, scale)


def align_truth(node: Node) -> Truth:
    """The average, or the maximum, of bilinear samples on a regular grid in each bin of each region, in float64.

    The bound: `samples` terms of four products, and coordinates that are computed in the dtype, 8 roundings each.
    """
    align = _parse_align(node)
    if isinstance(align, str):
        return Refusal(align)
    x = align.x.astype(np.float64)
    height, width = align.size
    output = np.zeros((len(align.rois), x.shape[1], height, width))
    most = 1
    for at, (roi, image) in enumerate(zip(align.rois, align.batch, strict=True)):
        rows = _positions(roi[1], roi[3], height, align)
        columns = _positions(roi[0], roi[2], width, align)
        values = _weights(rows, x.shape[2]) @ x[image] @ _weights(columns, x.shape[3]).T
        values = values.reshape(x.shape[1], height, len(rows) // height, width, len(columns) // width)
        output[at] = values.max((2, 4)) if align.maximum else values.mean((2, 4))
        most = max(most, values.shape[2] * values.shape[4])
    largest = float(abs(x).max(initial=0))
    unit = float(bounds.finfo(align.x.dtype).eps) / 2
    moved = 8 * unit * float(abs(align.rois).max(initial=0)) * 2 * largest * 2
    magnitude = np.full(output.shape, largest)
    bound = bounds.bound_sum(4 * most, align.x.dtype, magnitude, roundings=3)
    bound = bounds.ulp(bound.bound, bound.citations, align.x.dtype, bound.floor + moved)
    return Outputs((bounds.round_output("Y", output, align.x.dtype, bound),))


def _positions(start: float, end: float, bins: int, align: _Align) -> Array:
    """Where the samples lie along one axis: the same number in the middle of equal parts of each bin."""
    extent = end - start if align.half_pixel else max(end - start, 1.0)
    each = align.ratio or ceil(extent / bins)
    positions: Array = start + (np.arange(bins * each) + 0.5) * extent / (bins * each)
    return positions


def _weights(positions: Array, size: int) -> Array:
    """[samples, size]: how each sample takes from the elements of one axis; nothing more than a pixel outside."""
    weights = np.zeros((len(positions), size))
    for at, position in enumerate(positions):
        if -1.0 <= position <= size:
            inside = min(max(position, 0.0), size - 1.0)
            low = min(int(inside), size - 1)
            weights[at, low] += 1 - (inside - low)
            weights[at, min(low + 1, size - 1)] += inside - low
    return weights


def align_lower(node: Node) -> Lowering | None:
    """rois [1, 1, R, 4] and unsigned batch indices [1, 1, 1, R]; the ratio 0 is at least 1 sample and no maximum."""
    align = _parse_align(node)
    if isinstance(align, str) or align.x.size == 0 or not len(align.rois) or align.x.dtype == np.float64:
        return None
    rois, batch = node.array("rois"), align.batch.astype(np.uint64)
    rois, batch = rois.reshape(1, 1, *rois.shape), batch.reshape(1, 1, 1, -1)
    sizes = (len(align.rois), align.x.shape[1], *align.size)
    desc = RoiAlign1(
        input_tensor=TensorDesc.of(align.x),
        roi_tensor=TensorDesc.of(rois),
        batch_indices_tensor=TensorDesc.of(batch),
        output_tensor=TensorDesc.of(align.x, sizes=sizes),
        reduction_function=ReduceFunction.MAX if align.maximum else ReduceFunction.AVERAGE,
        interpolation_mode=InterpolationMode.LINEAR,
        spatial_scale_x=align.scale,
        spatial_scale_y=align.scale,
        input_pixel_offset=0.5 if align.half_pixel else 0.0,
        output_pixel_offset=-0.5,
        out_of_bounds_input_value=0.0,
        minimum_samples_per_output=align.ratio or 1,
        maximum_samples_per_output=align.ratio or 2**32 - 1,
        align_regions_to_corners=False,
    )
    return Lowering(desc, (align.x, rois, batch))


def pool_samples() -> Iterator[RoiSample]:
    square: Attributes = (("pooled_shape", (2, 2)),)
    inner: Regions = ((0.0, 0.0, 9.0, 7.0), (1.0, 1.0, 6.0, 4.0), (3.0, 2.0, 4.0, 3.0))
    yield RoiSample(name="pooled_2x2", rois=inner, attributes=square, every_dtype=True)
    yield RoiSample(name="pooled_1x1", rois=inner, attributes=(("pooled_shape", (1, 1)),), every_dtype=True)
    yield RoiSample(name="pooled_4x2", rois=inner, attributes=(("pooled_shape", (4, 2)),), every_dtype=True)
    yield RoiSample(name="pooled_1x4", rois=inner, attributes=(("pooled_shape", (1, 4)),))
    yield RoiSample(name="bins_overlap", rois=((1.0, 1.0, 5.0, 5.0),), attributes=(("pooled_shape", (2, 4)),))
    yield RoiSample(name="more_bins_than_pixels", rois=((2.0, 2.0, 3.0, 3.0),), attributes=(("pooled_shape", (4, 4)),))
    yield RoiSample(name="one_pixel", rois=((2.0, 2.0, 2.0, 2.0),), attributes=square)
    yield RoiSample(name="spatial_scale_1", rois=inner, attributes=(*square, ("spatial_scale", 1.0)))
    yield RoiSample(name="scale_half", rois=((2.0, 2.0, 16.0, 12.0),), attributes=(*square, ("spatial_scale", 0.5)),
                    every_dtype=True)  # fmt: skip
    yield RoiSample(name="scale_2", rois=((0.0, 0.0, 4.0, 3.0),), attributes=(*square, ("spatial_scale", 2.0)))
    yield RoiSample(name="rounds_down", rois=((1.25, 1.25, 6.25, 4.25),), attributes=square)
    yield RoiSample(name="rounds_up", rois=((0.75, 0.75, 5.75, 3.75),), attributes=square)
    yield RoiSample(name="roi_partly_outside", rois=((-2.0, -2.0, 5.0, 3.0), (6.0, 4.0, 13.0, 11.0)), attributes=square)
    yield RoiSample(name="roi_outside", rois=((20.0, 20.0, 25.0, 25.0),), attributes=square)
    yield RoiSample(name="several_images", x=(3, 2, 8, 10), rois=inner, batch=(2, 0, 1), attributes=square,
                    every_dtype=True)  # fmt: skip
    twice = tuple(tuple(2.0 * coordinate for coordinate in roi) for roi in inner)
    yield RoiSample(name="several_images_scale_half", x=(3, 2, 8, 10), rois=twice, batch=(2, 0, 1),
                    attributes=(*square, ("spatial_scale", 0.5)))  # fmt: skip
    yield RoiSample(name="negative_values", rois=inner, attributes=square, values="negative", every_dtype=True)
    yield RoiSample(name="many_rois", x=(2, 3, 8, 10), rois=inner * 40, batch=(0, 1) * 60, attributes=square)
    yield RoiSample(name="size_1_image", x=(1, 2, 1, 1), rois=((0.0, 0.0, 0.0, 0.0),), attributes=square)
    yield RoiSample(name="no_rois", rois=(), attributes=square)
    yield expect_refusal(RoiSample(name="rois_of_4_values", values="four", attributes=square))
    yield expect_refusal(RoiSample(name="rank_3", rank=3, x=(2, 8, 10), attributes=square))
    yield expect_refusal(RoiSample(name="pooled_shape_of_1", attributes=(("pooled_shape", (2,)),)))


def pool_bindings(sample: RoiSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    ways = spread(sample, first=dtypes == ("float32",), newest=False)
    return tuple({graph.INITIALIZER: graph.RUNTIME}.get(way, way) for way in ways) + (
        (graph.SYMBOLIC,) if sample.every_dtype and dtypes == ("float32",) else ()
    )


def pool_node(sample: RoiSample, context: CaseContext) -> Node:
    """X [N, C, H, W] and rois [R, 5] (the image, then the corners) of one float dtype; Y [R, C, *pooled_shape]."""
    x = _image(sample, context) if sample.values == "negative" else data.distinct(sample.x, context.dtype, context.rng)
    images = sample.batch or (0,) * len(sample.rois)
    rows = [roi if sample.values == "four" else (image, *roi) for image, roi in zip(images, sample.rois, strict=True)]
    rois = np.array(rows, context.dtype).reshape(len(rows), -1 if rows else 5)
    operands = (Operand("X", x), Operand("rois", rois))
    return Node("MaxRoiPool", "", context.since_version, operands, ("Y",), dict(sample.attributes))


def pool_truth(node: Node) -> Truth:
    """The greatest element of each bin, the edge pixels of a region included; 0 for a bin without elements."""
    broken = _broken_pool(node)
    if broken:
        return Refusal(broken)
    x, rois, scale = node.array("X"), node.array("rois").astype(np.float64), node.number("spatial_scale", 1.0)
    pooled = node.integers("pooled_shape", ())
    output = np.zeros((len(rois), x.shape[1], *pooled), x.dtype)
    for at, (image, *corners) in enumerate(rois):
        left, top, right, bottom = (floor(corner * scale + 0.5) for corner in corners)
        rows = _bins(top, bottom, pooled[0], x.shape[2])
        columns = _bins(left, right, pooled[1], x.shape[3])
        for row, column in np.ndindex(*pooled):
            under = x[int(image), :, rows[row], columns[column]]
            if under.size:
                output[at, :, row, column] = under.max((1, 2))
    return Outputs((Output("Y", output),))


def _broken_pool(node: Node) -> str:
    x, rois, pooled = node.array("X"), node.array("rois"), node.integers("pooled_shape", ())
    if x.ndim != 4:
        return f"X must have 4 dimensions, not {x.ndim}"
    if rois.ndim != 2 or rois.shape[1] != 5:
        return f"rois of shape {rois.shape} must have 5 values each"
    return "" if len(pooled) == 2 else f"pooled_shape {pooled} must be a height and a width"


def _bins(first: int, last: int, count: int, size: int) -> list[slice]:
    """The pixels of each bin along one axis: bins of equal extent, widened to whole pixels, cut to the image."""
    extent = max(last - first + 1, 1)
    edges = [(floor(at * extent / count), ceil((at + 1) * extent / count)) for at in range(count)]
    return [slice(*(min(max(edge + first, 0), size) for edge in pair)) for pair in edges]


def pool_lower(node: Node) -> Lowering | None:
    """rois [1, 1, R, 5]."""
    x, rois = node.array("X"), node.array("rois")
    if _broken_pool(node) or x.size == 0 or rois.size == 0 or x.dtype == np.float64:
        return None
    height, width = node.integers("pooled_shape", ())
    rois = rois.reshape(1, 1, *rois.shape)
    desc = RoiPooling(
        input_tensor=TensorDesc.of(x),
        roi_tensor=TensorDesc.of(rois),
        output_tensor=TensorDesc.of(x, sizes=(rois.shape[2], x.shape[1], height, width)),
        spatial_scale=node.number("spatial_scale", 1.0),
        pooled_size=(width, height),
    )
    return Lowering(desc, (x, rois))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "RoiAlign": (
        *(
        Interaction(f"region_below_one_pixel_{mode}",
                    (Random((1, 1, 8, 8)), Literal([[1.0, 1.0, 1.5, 1.5]]), int64s(0)),
                    {"coordinate_transformation_mode": mode, "output_height": 2, "output_width": 2,
                    "sampling_ratio": 1})
        for mode in ("half_pixel", "output_half_pixel")
    ),
    ),
}  # fmt: skip

BATCH = "a region of a batch that the data does not have"


def _undefined_regions() -> UndefinedSamples:
    """A number of samples that the page computes of an infinite region comes last: some never end."""
    for dtype in FLOATS:
        image, ordinary = ramp((1, 1, 3, 3), dtype), np.array([[0, 0, 2, 2]] * 4, dtype)
        pooled, first = (Answer(np.zeros((4, 1, 1, 1), dtype)),), np.zeros(4, np.int64)
        batches = np.array([0, 1, -1, 2**40], np.int64)
        yield UndefinedSample("batch_beyond_the_data", dtype, BATCH, (image, ordinary, batches), pooled)
        nan, infinite = ordinary.copy(), ordinary.copy()
        nan[:, 0], infinite[:, 0] = np.nan, strange_positions(dtype)[:4]
        yield UndefinedSample("region_nan", dtype, NOWHERE, (image, nan, first), pooled)
        inputs, two = (image, infinite, first), {"sampling_ratio": 2}
        yield UndefinedSample("region_infinite_two_samples", dtype, NOWHERE, inputs, pooled, two)
        if dtype == "float32":
            yield UndefinedSample("region_infinite", dtype, NOWHERE, inputs, pooled)


UNDEFINED = {"RoiAlign": _undefined_regions}

OPERATORS = declare(
    (
        Operator("RoiAlign", align_samples, align_bindings, align_node, align_truth, align_lower, varied=("T1",)),
        Operator("MaxRoiPool", pool_samples, pool_bindings, pool_node, pool_truth, pool_lower),
    ),
    interactions=INTERACTIONS,
    undefined=UNDEFINED,
)
