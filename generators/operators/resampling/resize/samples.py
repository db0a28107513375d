"""The samples of Resize and Upsample, where they apply, and their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
from onnx.defs import OpSchema

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import spread
from epcheck.generators.operators.resampling.resize.oracle import MODES, NEAREST_MODES, TRANSFORMS, Plan, make_plan
from epcheck.generators.oracle_math.coordinates import Axis

IMAGE = (1, 2, 4, 6)
ROI = (0.0, 0.0, 0.25, 0.125, 1.0, 1.0, 0.75, 0.875)
BEYOND = (0.0, 0.0, -0.3, 0.2, 1.0, 1.0, 0.8, 1.4)
"""A region that begins above and ends right of the image."""


@dataclass(frozen=True, kw_only=True)
class ResizeSample(Sample):
    """scales, sizes: one of them; both or none only in a refused sample. attributes: as they stand in the node.

    values: `distinct`, `special` (every kind of value, for nearest), `multiples` of 16 (exact in integers), `constant`.
    """

    shape: tuple[int, ...] = IMAGE
    scales: tuple[float, ...] | None = None
    sizes: tuple[int, ...] | None = None
    roi: tuple[float, ...] = ()
    attributes: tuple[tuple[str, Attribute], ...] = ()
    values: str = "distinct"


def resize_samples() -> Iterator[ResizeSample]:
    yield from filter(_is_clear_sample, _list_nearest())
    yield from _list_interpolated()
    yield from _cubic()
    yield from _antialias()
    yield from _regions()
    yield from _axes()
    yield from _policies()
    yield from filter(_is_clear_sample, _shapes())
    yield from _dtypes()
    yield from map(expect_refusal, _list_refused())


TARGETS: dict[str, dict[str, tuple[float, ...]]] = {
    "doubled": {"scales": (1, 1, 2, 2)},
    "halved": {"scales": (1, 1, 0.5, 0.5)},
    "to_7_5": {"sizes": (1, 2, 7, 5)},
    "to_3_11": {"sizes": (1, 2, 3, 11)},
}
FRACTIONAL = (1.0, 1.0, 1.3, 0.6)
"""Output sizes 5.2 and 3.6."""


def _list_nearest() -> Iterator[ResizeSample]:
    for transform, mode, (target, members) in product(TRANSFORMS, NEAREST_MODES, TARGETS.items()):
        if transform not in ("tf_crop_and_resize", "tf_half_pixel_for_nn"):
            yield ResizeSample(
                name=f"nearest_{transform}_{mode}_{target}",
                attributes=(("coordinate_transformation_mode", transform), ("nearest_mode", mode)),
                **members,  # type: ignore[arg-type]
            )
    yield ResizeSample(name="nearest_align_corners_ceil_5_6_to_8_4", shape=(1, 2, 5, 6), sizes=(1, 2, 8, 4),
                       attributes=(("coordinate_transformation_mode", "align_corners"), ("nearest_mode", "ceil")),
                       every_dtype=True)  # fmt: skip
    for factor in (2.0, 4.0, 3.0, 0.5, 0.25):
        yield ResizeSample(name=f"nearest_scales_{_text(factor)}", shape=(1, 2, 8, 4), scales=(1, 1, factor, factor),
                           every_dtype=factor == 2)  # fmt: skip
    for mode in NEAREST_MODES:
        rounding = ("nearest_mode", mode)
        yield ResizeSample(name=f"nearest_{mode}_scales_1_3_and_0_6", scales=FRACTIONAL,
                           attributes=(rounding, ("coordinate_transformation_mode", "half_pixel")))  # fmt: skip
        # Every coordinate of an axis that is halved lies half-way between two elements.
        yield ResizeSample(name=f"nearest_{mode}_every_tie", shape=(16,), scales=(0.5,),
                           attributes=(("nearest_mode", mode),), every_dtype=mode == "round_prefer_floor")  # fmt: skip
        # In every dimension: this transformation shifts those that keep their length, too.
        yield ResizeSample(name=f"nearest_{mode}_tf_half_pixel_for_nn", shape=(8, 4), scales=(0.5, 2.0),
                           attributes=(("nearest_mode", mode),
                                       ("coordinate_transformation_mode", "tf_half_pixel_for_nn")))  # fmt: skip
        yield ResizeSample(name=f"nearest_{mode}_quarters", shape=(6,), scales=(4.0,),
                           attributes=(rounding, ("coordinate_transformation_mode", "asymmetric")))  # fmt: skip
    yield ResizeSample(name="nearest_special_values", shape=(1, 1, 4, 8), scales=(1, 1, 2, 2), values="special",
                       every_dtype=True)  # fmt: skip


def _text(number: float) -> str:
    return f"{number:g}".replace(".", "_")


def _list_interpolated() -> Iterator[ResizeSample]:
    for mode, transform, (target, members) in product(("linear", "cubic"), TRANSFORMS, TARGETS.items()):
        if transform not in ("tf_crop_and_resize", "tf_half_pixel_for_nn"):
            yield ResizeSample(
                name=f"{mode}_{transform}_{target}",
                attributes=(("mode", mode), ("coordinate_transformation_mode", transform)),
                every_dtype=(mode, transform, target) == ("linear", "half_pixel", "to_7_5"),
                **members,  # type: ignore[arg-type]
            )
    for mode in ("linear", "cubic"):
        for name, factors in {"doubled": (1, 1, 2, 2), "halved": (1, 1, 0.5, 0.5), "1_3_and_0_6": FRACTIONAL}.items():
            yield ResizeSample(name=f"{mode}_scales_{name}", scales=factors, attributes=(("mode", mode),),
                               every_dtype=name == "doubled")  # fmt: skip
        for transform in ("half_pixel_symmetric", "pytorch_half_pixel", "asymmetric"):
            yield ResizeSample(
                name=f"{mode}_{transform}_scales_1_3_and_0_6",
                scales=FRACTIONAL,
                attributes=(("mode", mode), ("coordinate_transformation_mode", transform)),
            )
        yield ResizeSample(name=f"{mode}_one_axis", scales=(1, 1, 1, 3), attributes=(("mode", mode),))
        yield ResizeSample(name=f"{mode}_every_axis", shape=(2, 3, 4, 5), scales=(1.5, 2, 0.75, 1.25),
                           attributes=(("mode", mode),))  # fmt: skip
        yield ResizeSample(name=f"{mode}_by_1", scales=(1, 1, 1, 1), attributes=(("mode", mode),))
        yield ResizeSample(
            name=f"{mode}_many", shape=(1, 1, 17, 19), sizes=(1, 1, 41, 43), attributes=(("mode", mode),)
        )
        yield ResizeSample(name=f"{mode}_large_reduction", shape=(1, 1, 40, 33), sizes=(1, 1, 3, 2),
                           attributes=(("mode", mode),))  # fmt: skip


def _cubic() -> Iterator[ResizeSample]:
    for a in (-0.5, -0.75, -1.0, 0.0):
        for transform in ("half_pixel", "asymmetric"):
            yield ResizeSample(
                name=f"cubic_a_minus_{_text(abs(a))}_{transform}",
                sizes=(1, 2, 7, 5),
                attributes=(("mode", "cubic"), ("cubic_coeff_a", a), ("coordinate_transformation_mode", transform)),
            )
    for mode, value, (target, members) in product(("linear", "cubic"), (0, 1), TARGETS.items()):
        for transform in ("half_pixel", "asymmetric", "align_corners") if value else ("half_pixel",):
            yield ResizeSample(
                name=f"{mode}_exclude_outside_{value}_{transform}_{target}",
                attributes=(("mode", mode), ("exclude_outside", value), ("coordinate_transformation_mode", transform)),
                **members,  # type: ignore[arg-type]
            )


def _antialias() -> Iterator[ResizeSample]:
    targets: dict[str, dict[str, tuple[float, ...]]] = {
        **TARGETS,
        "scales_0_6_and_0_35": {"scales": (1, 1, 0.6, 0.35)},
        "tenth": {"sizes": (1, 2, 1, 2)},
    }
    for mode, (target, members) in product(("linear", "cubic"), targets.items()):
        for exclude in (0, 1):
            yield ResizeSample(
                name=f"{mode}_antialias_{target}" + ("_exclude_outside" if exclude else ""),
                shape=(1, 2, 4, 6) if target != "tenth" else (1, 2, 10, 20),
                attributes=(("mode", mode), ("antialias", 1), *((("exclude_outside", 1),) if exclude else ())),
                every_dtype=(target, exclude) == ("to_3_11", 0),
                **members,  # type: ignore[arg-type]
            )
        yield ResizeSample(
            name=f"{mode}_antialias_asymmetric_{target}",
            shape=(1, 2, 4, 6) if target != "tenth" else (1, 2, 10, 20),
            attributes=(("mode", mode), ("antialias", 1), ("coordinate_transformation_mode", "asymmetric")),
            **members,  # type: ignore[arg-type]
        )
    yield ResizeSample(name="cubic_antialias_a_minus_0_5", sizes=(1, 2, 3, 2),
                       attributes=(("mode", "cubic"), ("antialias", 1), ("cubic_coeff_a", -0.5)))  # fmt: skip
    yield ResizeSample(name="linear_antialias_0", sizes=(1, 2, 3, 2), attributes=(("mode", "linear"), ("antialias", 0)))


def _regions() -> Iterator[ResizeSample]:
    transform = ("coordinate_transformation_mode", "tf_crop_and_resize")
    for mode in MODES:
        for name, region in {"inside": ROI, "beyond": BEYOND, "whole": (0.0,) * 4 + (1.0,) * 4}.items():
            for height, width in ((3, 5), (8, 9), (1, 4)):
                for value in (None, 2.5) if name == "beyond" else (None,):
                    extra = () if value is None else (("extrapolation_value", value),)
                    sample = ResizeSample(
                        name=f"{mode}_roi_{name}_to_{height}_{width}" + ("_extrapolation_2_5" if extra else ""),
                        sizes=(1, 2, height, width),
                        roi=region,
                        attributes=(transform, ("mode", mode), *extra),
                    )
                    if _is_clear_sample(sample):
                        yield sample
        yield ResizeSample(name=f"{mode}_roi_flipped", sizes=(1, 2, 5, 7), roi=(0, 0, 0.93, 0.91, 1, 1, 0.03, 0.06),
                           attributes=(transform, ("mode", mode)))  # fmt: skip
    # Channels keep their number, and the region takes them in reverse.
    yield ResizeSample(name="nearest_roi_reverses_channels", sizes=IMAGE, roi=(0, 0.9, 0, 0, 1, 0.1, 1, 1),
                       attributes=(transform,))  # fmt: skip
    yield ResizeSample(name="linear_roi_of_two_axes", sizes=(5, 3), roi=(0.25, 0.125, 0.75, 0.875),
                       attributes=(transform, ("mode", "linear"), ("axes", (2, 3))))  # fmt: skip
    yield ResizeSample(name="linear_roi_without_effect", sizes=(1, 2, 5, 3), roi=ROI, attributes=(("mode", "linear"),))
    yield ResizeSample(name="linear_extrapolation_without_effect", sizes=(1, 2, 7, 5),
                       attributes=(("mode", "linear"), ("extrapolation_value", 9.0)))  # fmt: skip


def _axes() -> Iterator[ResizeSample]:
    for name, axes, values in (
        ("2_3", (2, 3), (8, 3)),
        ("3_2", (3, 2), (3, 8)),
        ("minus_1_minus_2", (-1, -2), (3, 8)),
        ("1", (1,), (5,)),
        ("0", (0,), (3,)),
        ("minus_3", (-3,), (1,)),
        ("0_1_2_3", (0, 1, 2, 3), (2, 1, 8, 3)),
        ("3_0", (3, 0), (4, 2)),
    ):
        for mode in ("linear", "nearest"):
            sample = ResizeSample(name=f"{mode}_axes_{name}_sizes", sizes=values,
                                  attributes=(("axes", axes), ("mode", mode)))  # fmt: skip
            if _is_clear_sample(sample):
                yield sample
            yield ResizeSample(name=f"{mode}_axes_{name}_scales", scales=(2.0, 0.5, 1.0, 4.0)[: len(axes)],
                               attributes=(("axes", axes), ("mode", mode)))  # fmt: skip


def _policies() -> Iterator[ResizeSample]:
    for policy in ("stretch", "not_larger", "not_smaller"):
        preserved = ("keep_aspect_ratio_policy", policy)
        for name, axes, sizes in (
            ("both_double", (2, 3), (8, 12)),
            ("one_double", (2, 3), (8, 24)),
            ("one_half", (2, 3), (2, 24)),
            ("one_axis", (3,), (12,)),
            ("reversed_axes", (3, 2), (24, 2)),
        ):
            for mode in ("linear", "nearest"):
                yield ResizeSample(name=f"{mode}_{policy}_{name}", sizes=sizes,
                                   attributes=(preserved, ("axes", axes), ("mode", mode)))  # fmt: skip
        # 6 * 7 / 4 = 10.5: half-way cases are rounded up. Only the shape matters, so the data is the same everywhere.
        yield ResizeSample(name=f"linear_{policy}_half_way_size", sizes=(7, 8) if policy == "not_smaller" else (7, 13),
                           values="constant",
                           attributes=(preserved, ("axes", (2, 3)), ("mode", "linear")))  # fmt: skip


def _shapes() -> Iterator[ResizeSample]:
    for rank in range(1, 9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        sample = ResizeSample(
            name=f"nearest_rank_{rank}",
            rank=rank,
            shape=shape,
            scales=(2.0,) + (1.0,) * max(0, rank - 3) + (2.0,) * min(2, rank - 1),
            every_dtype=rank == 3,
        )
        yield sample
        if rank <= 5:
            linear = replace(sample, attributes=(("mode", "linear"),), every_dtype=False)
            last_two = (1.0,) * max(0, rank - 2) + (2.0, 2.5)[-rank:]
            yield replace(linear, name=f"linear_rank_{rank}_last_two", scales=last_two)
            yield replace(linear, name=f"linear_rank_{rank}_every_axis", scales=(2.0, 1.5, 2.0, 1.5, 2.0)[:rank])
    yield ResizeSample(name="nearest_rank_6_of_ones", shape=(1, 1, 1, 1, 4, 4), scales=(1, 1, 1, 1, 2, 2))
    for mode, transform in product(MODES, ("half_pixel", "pytorch_half_pixel", "asymmetric")):
        attributes = (("mode", mode), ("coordinate_transformation_mode", transform))
        yield ResizeSample(
            name=f"{mode}_{transform}_to_1", shape=(1, 1, 5, 3), sizes=(1, 1, 1, 1), attributes=attributes
        )
        yield ResizeSample(
            name=f"{mode}_{transform}_from_1", shape=(1, 1, 1, 1), sizes=(1, 1, 5, 3), attributes=attributes
        )
        yield ResizeSample(name=f"{mode}_{transform}_one_axis_to_1", sizes=(1, 2, 1, 6), attributes=attributes)
    yield ResizeSample(name="nearest_batch_0", shape=(0, 2, 4, 6), scales=(1, 1, 2, 2))
    yield ResizeSample(name="nearest_more_than_1024", shape=(1, 1, 33, 17), scales=(1, 1, 2, 2))


def _dtypes() -> Iterator[ResizeSample]:
    """Results that are whole numbers in every dtype: weights are multiples of 1/4 in both axes, data of 16."""
    for mode, transform in product(("linear",), ("asymmetric", "half_pixel")):
        for name, factors in {"doubled": (1, 1, 2, 2), "halved": (1, 1, 0.5, 0.5)}.items():
            yield ResizeSample(
                name=f"{mode}_{transform}_whole_numbers_{name}",
                scales=factors,
                values="multiples",
                attributes=(("mode", mode), ("coordinate_transformation_mode", transform)),
                every_dtype=True,
            )


def _list_refused() -> Iterator[ResizeSample]:
    yield ResizeSample(name="scales_and_sizes", scales=(1, 1, 2, 2), sizes=(1, 2, 8, 12))
    yield ResizeSample(name="neither_scales_nor_sizes")
    yield ResizeSample(name="three_scales", scales=(1, 2, 2))
    yield ResizeSample(name="five_sizes", sizes=(1, 1, 2, 8, 12))
    yield ResizeSample(name="scale_0", scales=(1, 1, 0, 2))
    yield ResizeSample(name="negative_scale", scales=(1, 1, -2, 2))
    yield ResizeSample(name="scales_for_other_axes", scales=(1, 1, 2, 2), attributes=(("axes", (2, 3)),))
    yield ResizeSample(name="axis_at_rank", scales=(2, 2), attributes=(("axes", (2, 4)),))
    yield ResizeSample(name="unknown_mode", scales=(1, 1, 2, 2), attributes=(("mode", "quintic"),))
    yield ResizeSample(name="unknown_transform", scales=(1, 1, 2, 2),
                       attributes=(("coordinate_transformation_mode", "corner_cut"),))  # fmt: skip
    yield ResizeSample(name="unknown_nearest_mode", scales=(1, 1, 2, 2), attributes=(("nearest_mode", "round"),))
    yield ResizeSample(name="short_roi", sizes=(1, 2, 3, 5), roi=(0, 0, 1, 1),
                       attributes=(("coordinate_transformation_mode", "tf_crop_and_resize"),))  # fmt: skip


def upsample_samples() -> Iterator[ResizeSample]:
    for mode in ("nearest", "linear"):
        attributes = (("mode", mode),)
        for name, factors in {"doubled": (1, 1, 2, 2), "by_2_and_3": (1, 1, 2, 3), "one_axis": (1, 1, 1, 4),
                              "by_1": (1, 1, 1, 1), "by_1_5": (1, 1, 1.5, 1.5), "by_1_3_and_2_6": (1, 1, 1.3, 2.6),
                              "every_axis": (2, 3, 2, 2)}.items():  # fmt: skip
            sample = ResizeSample(
                name=f"{mode}_{name}", scales=factors, attributes=attributes, every_dtype=name == "doubled"
            )
            if _is_clear_sample(sample, oldest=True):
                yield sample
        for rank in range(1, 6):
            scales = (1.0,) * max(0, rank - 2) + (2.0, 2.0)[:rank]
            shape = (2, 3, 2, 3, 2)[:rank]
            yield ResizeSample(name=f"{mode}_rank_{rank}", rank=rank, shape=shape, scales=scales, attributes=attributes)
        yield ResizeSample(name=f"{mode}_from_1", shape=(1, 1, 1, 1), scales=(1, 1, 4, 3), attributes=attributes)
        yield ResizeSample(
            name=f"{mode}_more_than_1024", shape=(1, 1, 33, 17), scales=(1, 1, 2, 2), attributes=attributes
        )
        yield ResizeSample(name=f"{mode}_batch_0", shape=(0, 2, 4, 6), scales=(1, 1, 2, 2), attributes=attributes)
        yield ResizeSample(name=f"{mode}_whole_numbers", scales=(1, 1, 2, 2), attributes=attributes, values="multiples",
                           every_dtype=True)  # fmt: skip
    yield ResizeSample(name="mode_omitted", scales=(1, 1, 2, 2), every_dtype=True)
    yield ResizeSample(name="nearest_special_values", shape=(1, 1, 4, 8), scales=(1, 1, 2, 2), values="special",
                       every_dtype=True)  # fmt: skip
    yield expect_refusal(ResizeSample(name="scale_below_1", scales=(1, 1, 0.5, 2)))
    yield expect_refusal(ResizeSample(name="three_scales", scales=(1, 2, 2)))
    yield expect_refusal(ResizeSample(name="unknown_mode", scales=(1, 1, 2, 2), attributes=(("mode", "quintic"),)))


def resize_bindings(sample: ResizeSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return _bindings("Resize", sample, since_version, dtypes)


def upsample_bindings(sample: ResizeSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    return _bindings("Upsample", sample, since_version, dtypes)


def _bindings(operator: str, sample: ResizeSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if not _is_expressible(operator, since_version, sample):
        return ()
    mode = dict(sample.attributes).get("mode", "nearest")
    if mode != "nearest" and sample.values != "multiples" and np.dtype(dtypes[0]).kind != "f":
        return ()
    if mode != "nearest" and dtypes[0] == "bool":
        return ()
    newest = since_version == schema.since_versions(operator)[-1]
    found = spread(sample, first=dtypes == ("float32",), newest=newest and sample.every_dtype)
    if len(schema.input_names(operator, since_version)) == 1:
        return (graph.RUNTIME,) if found else ()
    return found


def _is_expressible(operator: str, since_version: int, sample: ResizeSample) -> bool:
    """Whether the version has the inputs and attributes, and knows the coordinate transformation."""
    inputs, known = schema.input_names(operator, since_version), schema.attribute_names(operator, since_version)
    attributes = dict(sample.attributes)
    if not attributes.keys() <= known or (sample.sizes is not None and "sizes" not in inputs):
        return False
    if sample.sizes is None and sample.scales is None and "sizes" not in inputs:
        return False
    if attributes.get("mode") == "cubic" and "cubic_coeff_a" not in known:
        return False
    transform = str(attributes.get("coordinate_transformation_mode", ""))
    if sample.refused or not transform:
        return True
    transforms = schema.schema(operator, since_version).attributes["coordinate_transformation_mode"]
    return f'"{transform}"' in transforms.description


def resize_node(sample: ResizeSample, context: CaseContext) -> Node:
    """X of any dtype; roi float32 [2n], scales float32 [n], sizes int64 [n], n the rank or the number of axes."""
    inputs = [Operand("X", _values(sample, context))]
    definition = schema.schema("Resize", context.since_version)
    optional = {formal.name: formal.option == OpSchema.FormalParameterOption.Optional for formal in definition.inputs}
    attributes = {
        "roi": None if not sample.roi else np.array(sample.roi, np.float32),
        "scales": None if sample.scales is None else np.array(sample.scales, np.float32),
        "sizes": None if sample.sizes is None else np.array(sample.sizes, np.int64),
    }
    operands: list[Operand | None] = [*inputs]
    for name in [formal.name for formal in definition.inputs][1:]:
        value = attributes[name]
        if value is None and not optional[name]:
            value = np.zeros(0, np.float32)
        operands.append(None if value is None else Operand(name, value, parameter=True))
    while operands[-1] is None:
        operands.pop()
    return Node("Resize", "", context.since_version, tuple(operands), ("Y",), dict(sample.attributes))


def upsample_node(sample: ResizeSample, context: CaseContext) -> Node:
    """X of any dtype, scales float32 [rank]: an attribute in Upsample-7."""
    assert sample.scales is not None
    x = Operand("X", _values(sample, context))
    attributes = dict(sample.attributes)
    if len(schema.schema("Upsample", context.since_version).inputs) == 1:
        scales = {"scales": tuple(float(scale) for scale in sample.scales)}
        return Node("Upsample", "", context.since_version, (x,), ("Y",), attributes | scales)
    scale = Operand("scales", np.array(sample.scales, np.float32), parameter=True)
    return Node("Upsample", "", context.since_version, (x, scale), ("Y",), attributes)


def _values(sample: ResizeSample, context: CaseContext) -> Array:
    count = int(np.prod(sample.shape, dtype=np.int64))
    match sample.values:
        case "special":
            return np.resize(context.rng.permutation(data.every_value(context.dtype)), sample.shape)
        case "multiples":
            lowest = -7 if context.dtype.kind in "if" else 0
            return (
                (16 * context.rng.integers(lowest, 7, count, endpoint=True)).astype(context.dtype).reshape(sample.shape)
            )
        case "constant":
            return np.full(sample.shape, 2.5).astype(context.dtype)
    return data.distinct(sample.shape, context.dtype, context.rng)


def _is_clear_sample(sample: ResizeSample, oldest: bool = False) -> bool:
    """Whether no rounding error of a coordinate can change what a sample of mode nearest selects, in any version."""
    if dict(sample.attributes).get("mode", "nearest") != "nearest":
        return True
    operator, version = ("Upsample", 9) if oldest else ("Resize", schema.since_versions("Resize")[-1])
    context = CaseContext(version, (np.dtype("float32"),), np.random.default_rng(0))
    plan = make_plan(upsample_node(sample, context) if oldest else resize_node(sample, context))
    assert isinstance(plan, Plan), (operator, sample.name, plan)
    return all(_is_clear(axis, plan.nearest_mode) for axis in plan.axes)


CLEAR = Fraction(1, 1000)


def _is_clear(axis: Axis, mode: str) -> bool:
    """Every coordinate keeps away from the thresholds of its rounding and of the image, or is exact in float32."""
    if axis.is_exact:
        return True
    offset = Fraction(1, 2) if mode.startswith("round") else Fraction(0)
    for position in range(axis.resized):
        if position == 0 and axis.transform in ("asymmetric", "align_corners"):
            continue
        if position == axis.resized - 1 and (axis.transform, mode) == ("align_corners", "ceil"):
            continue  # a coordinate just above the last element is cut to it
        x = axis.original(position)
        if abs((x - offset) - round(x - offset)) < CLEAR:
            return False
        if axis.transform == "tf_crop_and_resize" and min(abs(x), abs(x - (axis.length - 1))) < CLEAR:
            return False
    return True
