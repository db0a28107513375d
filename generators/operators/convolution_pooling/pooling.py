"""Pools -> DML_AVERAGE_POOLING, DML_LP_POOLING, DML_MAX_POOLING and their successors.

AveragePool-7 to 22, LpPool-2 to 22, MaxPool-1 to 22 (with Indices), GlobalAveragePool, GlobalLpPool, GlobalMaxPool.
Sources: the operator pages. How the DML EP lowers them: DmlOperatorPooling.cpp; dilations ask for
DML_AVERAGE_POOLING1 and DML_LP_POOLING1, dilations or Indices for DML_MAX_POOLING2.

What the pages leave open has no sample: windows that hold nothing but padding, a maximum over numbers and NaN together,
column-major Indices of several channels. AveragePool-11 and 19 give two formulas for SAME that differ; the attribute's
own text decides, ceil(input / stride). A window that starts behind the image is ignored from revision 22 on; before,
it has no meaning. Among equal elements Indices names the first, as the page's own examples and all runtimes do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, Interaction, Literal, Random
from epcheck.generators.declaration.parameter_space import ANY_VALUE, ParameterSpace, Parts, Values
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.convolution_pooling.pooling import (
    AveragePooling,
    AveragePooling1,
    LpPooling,
    LpPooling1,
    MaxPooling,
    MaxPooling2,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import window_space
from epcheck.generators.families.window_space import draw_image, is_window, write_window
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare
from epcheck.generators.oracle_math.window import Windows, columns, is_image, is_padded_image, maximum, slide
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "AveragePool",
    "LpPool",
    "MaxPool",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
)

Attributes = tuple[tuple[str, Attribute], ...]
IGNORED = 22
"""AveragePool-22 and MaxPool-22 ignore windows that start behind the image."""
STRIDED_SAME = 11
"""LpPool-11 brings the text by which SAME divides the size by the stride; the other pools always had it."""


@dataclass(frozen=True, kw_only=True)
class PoolSample(Sample):
    """x: [N, C, *spatial]. values: what x looks like, see `_values`. since: the oldest revision that defines the node.

    only: the operators that the sample is for; empty is all. indices: the second output of MaxPool is asked for.
    """

    x: tuple[int, ...] = (1, 2, 6, 7)
    attributes: Attributes = ()
    values: str = "distinct"
    since: int = 1
    only: tuple[str, ...] = ()
    indices: bool = False


def _sample(name: str, kernel: tuple[int, ...] = (3, 2), attributes: Attributes = (), **members: Any) -> PoolSample:
    return PoolSample(name=name, attributes=(("kernel_shape", kernel), *attributes), **members)


def samples(operator: str) -> Iterator[PoolSample]:
    """Those of the sliding pools that are meant for the operator."""
    own = {"AveragePool": _list_average, "LpPool": _list_lp, "MaxPool": _list_max}[operator]
    yield from _windows()
    yield from _list_same(operator)
    yield from _list_rounded_up(operator)
    yield from _dimensions()
    yield from own()
    yield from map(expect_refusal, _list_refused())


def _windows() -> Iterator[PoolSample]:
    yield _sample("defaults", every_dtype=True)
    yield _sample("all_attributes_at_their_defaults", (3, 2), (
        ("auto_pad", "NOTSET"), ("pads", (0,) * 4), ("strides", (1, 1)),
    ))  # fmt: skip
    yield _sample("strides", (3, 2), (("strides", (2, 3)),), every_dtype=True)
    yield _sample("strides_equal_kernel", (2, 2), (("strides", (2, 2)),), every_dtype=True)
    yield _sample("strides_beyond_kernel", (2, 1), (("strides", (3, 4)),))
    yield _sample("strides_beyond_image", (2, 2), (("strides", (9, 9)),))
    yield _sample("pads_symmetric", (3, 3), (("pads", (1, 1, 1, 1)),), every_dtype=True)
    yield _sample("pads_asymmetric", (3, 4), (("pads", (0, 3, 2, 1)),), every_dtype=True)
    yield _sample("pads_begin_only", (3, 3), (("pads", (2, 1, 0, 0)),))
    yield _sample("pads_end_only", (3, 3), (("pads", (0, 0, 2, 1)),))
    yield _sample("pads_one_less_than_kernel", (3, 2), (("pads", (2, 1, 2, 1)),))
    yield _sample("pads_strides", (3, 3), (("pads", (1, 0, 1, 2)), ("strides", (2, 2))), every_dtype=True)
    yield _sample("dilations", (3, 2), (("dilations", (2, 3)),), every_dtype=True)
    yield _sample("dilations_at_their_default", (3, 2), (("dilations", (1, 1)),))
    yield _sample("dilations_pads_strides", (3, 2), (
        ("dilations", (2, 2)), ("pads", (1, 1, 2, 0)), ("strides", (1, 2)),
    ), every_dtype=True)  # fmt: skip


def _list_same(operator: str) -> Iterator[PoolSample]:
    strided = STRIDED_SAME if operator == "LpPool" else 1
    for mode in ("SAME_UPPER", "SAME_LOWER"):
        low, auto_pad = mode.lower(), ("auto_pad", mode)
        yield _sample(low, (3, 2), (auto_pad,), every_dtype=True)
        yield _sample(f"{low}_even_kernel", (4, 4), (auto_pad,))
        yield _sample(f"{low}_strided", (3, 4), (auto_pad, ("strides", (2, 3))), since=strided)
        yield _sample(
            f"{low}_strided_even_image", (3, 3), (auto_pad, ("strides", (2, 2))), x=(1, 2, 8, 6), since=strided
        )
        yield _sample(f"{low}_stride_beyond_kernel", (2, 2), (auto_pad, ("strides", (4, 3))), since=strided)
        yield _sample(f"{low}_dilated", (3, 2), (auto_pad, ("dilations", (2, 2))))
        yield _sample(f"{low}_1d", (4,), (auto_pad,), x=(2, 2, 9))
        yield _sample(f"{low}_3d", (2, 3, 2), (auto_pad,), x=(1, 2, 3, 4, 3))
    yield _sample("valid", (3, 2), (("auto_pad", "VALID"),), every_dtype=True)
    yield _sample("valid_strided", (3, 2), (("auto_pad", "VALID"), ("strides", (2, 3))))


def _list_rounded_up(operator: str) -> Iterator[PoolSample]:
    up = ("ceil_mode", 1)
    yield _sample("ceil_mode_0", (2, 2), (("ceil_mode", 0), ("strides", (2, 2))))
    yield _sample("ceil_mode_no_rest", (2, 3), (up, ("strides", (2, 2))))
    yield _sample("ceil_mode", (2, 2), (up, ("strides", (2, 2))), every_dtype=True)
    yield _sample("ceil_mode_both_axes", (3, 3), (up, ("strides", (2, 3))), x=(1, 2, 6, 7))
    yield _sample("ceil_mode_pads", (3, 3), (up, ("strides", (2, 2)), ("pads", (0, 0, 1, 0))))
    yield _sample(
        "ceil_mode_pads_both_sides", (3, 3), (up, ("strides", (3, 3)), ("pads", (1, 1, 1, 0))), x=(2, 1, 6, 6)
    )
    yield _sample("ceil_mode_1d", (3,), (up, ("strides", (2,))), x=(1, 2, 8))
    yield _sample("ceil_mode_3d", (2, 2, 2), (up, ("strides", (2, 2, 2))), x=(1, 1, 3, 5, 4))
    yield _sample("ceil_mode_dilations", (2, 2), (up, ("strides", (2, 2)), ("dilations", (2, 2))), x=(1, 1, 6, 6))
    if operator != "LpPool":
        yield _sample("ceil_mode_window_behind_image", (2, 2), (up, ("strides", (3, 3)), ("pads", (0, 0, 1, 1))),
                      x=(1, 2, 6, 6), since=IGNORED)  # fmt: skip
        yield _sample("ceil_mode_kernel_1_stride_2", (1, 1), (up, ("strides", (2, 2))), x=(1, 2, 4, 6), since=IGNORED)
        yield _sample("ceil_mode_valid", (2, 2), (up, ("auto_pad", "VALID"), ("strides", (2, 2))))


def _dimensions() -> Iterator[PoolSample]:
    yield _sample("1d", (3,), x=(2, 3, 11), every_dtype=True)
    yield _sample("1d_pads_strides", (3,), (("pads", (2, 1)), ("strides", (2,))), x=(2, 3, 10))
    yield _sample("3d", (2, 3, 2), x=(1, 2, 4, 5, 3), every_dtype=True)
    yield _sample(
        "3d_pads_strides", (2, 3, 2), (("pads", (1, 0, 1, 0, 2, 1)), ("strides", (2, 2, 1))), x=(1, 2, 4, 5, 3)
    )
    yield _sample("batch_3_channels_5", (2, 2), x=(3, 5, 4, 4))
    yield _sample("kernel_1x1", (1, 1))
    yield _sample("kernel_1x1_strided", (1, 1), (("strides", (2, 2)),), x=(1, 2, 5, 7))
    yield _sample("kernel_is_the_image", (6, 7), every_dtype=True)
    yield _sample("size_1_image", (1, 1), x=(2, 3, 1, 1))
    yield _sample("size_1_image_padded", (3, 3), (("pads", (1, 1, 1, 1)),), x=(1, 2, 1, 1))
    yield _sample("more_than_a_thread_group", (3, 3), x=(1, 2, 35, 33))
    yield _sample("large_kernel", (17, 13), (("strides", (3, 5)),), x=(1, 1, 37, 41))
    yield _sample("size_0_batch", x=(0, 2, 6, 7))


def _list_average() -> Iterator[PoolSample]:
    counted = ("count_include_pad", 1)
    yield _sample("count_include_pad_0", (3, 3), (("count_include_pad", 0), ("pads", (1, 1, 1, 1))))
    yield _sample("count_include_pad", (3, 3), (counted, ("pads", (1, 1, 1, 1))), every_dtype=True)
    yield _sample("count_include_pad_without_pads", (3, 3), (counted,))
    yield _sample("count_include_pad_asymmetric", (3, 4), (counted, ("pads", (0, 3, 2, 1)), ("strides", (2, 1))))
    yield _sample("count_include_pad_same_upper", (3, 3), (counted, ("auto_pad", "SAME_UPPER"), ("strides", (2, 2))))
    yield _sample("count_include_pad_same_lower", (4, 4), (counted, ("auto_pad", "SAME_LOWER")))
    yield _sample("count_include_pad_dilations", (2, 2), (counted, ("dilations", (2, 3)), ("pads", (1, 1, 1, 1))))
    yield _sample("count_include_pad_ceil_mode", (3, 3), (counted, ("ceil_mode", 1), ("pads", (1, 1, 0, 1)),
                  ("strides", (2, 2))), x=(1, 2, 7, 7), every_dtype=True)  # fmt: skip
    yield _sample("count_include_pad_ceil_mode_behind_padding", (3, 3), (counted, ("ceil_mode", 1),
                  ("pads", (1, 1, 1, 1)), ("strides", (2, 2))), x=(1, 2, 6, 6), every_dtype=True)  # fmt: skip
    yield _sample("count_include_pad_1d", (3,), (counted, ("pads", (1, 2))), x=(1, 2, 8))
    yield _sample("count_include_pad_3d", (2, 2, 2), (counted, ("pads", (1, 0, 1, 0, 1, 0))), x=(1, 2, 3, 4, 3))
    for kind in ("integers", "infinity", "nan", "cancellation"):
        yield _sample(f"values_{kind}", (2, 2), values=kind, every_dtype=True)


def _list_lp() -> Iterator[PoolSample]:
    for p in (1, 2, 3, 4):
        yield _sample(f"p_{p}", (3, 2), (("p", p),), every_dtype=True)
        yield _sample(f"p_{p}_pads_strides", (3, 3), (("p", p), ("pads", (1, 0, 1, 1)), ("strides", (2, 2))))
    yield _sample("p_7", (2, 2), (("p", 7),))
    yield _sample("p_1_dilations", (2, 2), (("p", 1), ("dilations", (2, 3))))
    yield _sample("p_3_ceil_mode", (2, 2), (("p", 3), ("ceil_mode", 1), ("strides", (2, 2))), x=(1, 2, 5, 7))
    for kind in ("zeros", "infinity", "nan"):
        yield _sample(f"values_{kind}", (2, 2), values=kind, every_dtype=True)


WITH_INDICES = frozenset(
    {"pads_begin_only", "strides_beyond_image", "same_upper_3d", "same_lower_strided", "ceil_mode_pads",
     "ceil_mode_window_behind_image", "3d_pads_strides", "batch_3_channels_5", "more_than_a_thread_group",
     "size_1_image_padded", "size_0_batch"}
)  # fmt: skip


def _list_max() -> Iterator[PoolSample]:
    for sample in (*_windows(), *_list_same("MaxPool"), *_list_rounded_up("MaxPool"), *_dimensions()):
        if sample.every_dtype or sample.name in WITH_INDICES:
            yield replace(sample, name=f"indices_{sample.name}", indices=True)
    for indices in (False, True):
        name = "indices_values" if indices else "values"
        padded: Attributes = (("pads", (1, 1, 1, 1)),)
        yield _sample(f"{name}_negative", (3, 3), padded, values="negative", indices=indices, every_dtype=True)
        yield _sample(f"{name}_lowest", (3, 3), padded, values="lowest", indices=indices, every_dtype=True)
        yield _sample(f"{name}_boundary", (2, 2), values="boundary", indices=indices, every_dtype=True)
        if indices:
            yield _sample("indices_ties", (3, 3), padded, values="ties", indices=True, every_dtype=True)
            yield _sample("indices_all_equal", (2, 2), values="equal", indices=True)
        else:
            yield _sample("values_all_nan", (2, 2), values="all_nan")
    for name, order in (("row_major", 0), ("column_major", 1)):
        for rank, kernel in ((1, (3,)), (2, (2, 3)), (3, (2, 2, 1))):
            yield _sample(f"indices_{name}_{rank}d", kernel, (("storage_order", order),), x=(1, 1, *(4, 5, 3)[:rank]),
                          indices=True)  # fmt: skip
    yield _sample("indices_column_major_pads_strides", (2, 2), (
        ("storage_order", 1), ("pads", (1, 0, 0, 1)), ("strides", (2, 1)),
    ), x=(1, 1, 5, 6), indices=True)  # fmt: skip
    yield _sample("storage_order_1_without_indices", (2, 2), (("storage_order", 1),))


def _list_refused() -> Iterator[PoolSample]:
    yield _sample("kernel_shape_too_short", (3,))
    yield _sample("kernel_beyond_image", (9, 2))
    yield _sample("pads_too_short", (3, 2), (("pads", (1, 1)),))
    yield _sample("pads_negative", (2, 2), (("pads", (-1, 0, 0, 0)),))
    yield _sample("strides_0", (2, 2), (("strides", (0, 1)),))


def global_samples(operator: str) -> Iterator[PoolSample]:
    """The pools over the whole image."""
    for name, shape in {
        "2d": (2, 3, 5, 7), "1d": (2, 3, 9), "3d": (2, 2, 3, 4, 5), "size_1_image": (2, 3, 1, 1),
        "one_element": (1, 1, 1, 1), "one_row": (1, 3, 1, 17), "one_column": (1, 3, 17, 1),
        "more_than_a_thread_group": (1, 2, 33, 35), "many_channels": (2, 131, 3, 3), "size_0_batch": (0, 3, 5, 7),
    }.items():  # fmt: skip
        yield PoolSample(name=name, x=shape, every_dtype=name in ("2d", "1d", "3d", "more_than_a_thread_group"))
    kinds = {
        "GlobalAveragePool": ("integers", "infinity", "nan", "cancellation"),
        "GlobalLpPool": ("zeros", "infinity", "nan"),
        "GlobalMaxPool": ("negative", "lowest", "boundary", "all_nan"),
    }
    for kind in kinds[operator]:
        yield PoolSample(name=f"values_{kind}", x=(2, 3, 4, 5), values=kind, every_dtype=True)
    if operator == "GlobalLpPool":
        for p in (1, 2, 3, 4):
            yield PoolSample(name=f"p_{p}", x=(2, 3, 4, 5), attributes=(("p", p),), every_dtype=True)
        yield PoolSample(name="p_3_1d", x=(1, 2, 9), attributes=(("p", 3),))
        yield PoolSample(name="p_1_3d", x=(1, 2, 3, 2, 4), attributes=(("p", 1),))


FLOAT_VALUES = frozenset({"infinity", "nan", "all_nan"})


def bindings(sample: PoolSample, since_version: int, dtypes: tuple[str, ...], *, name: str) -> tuple[str, ...]:
    """A pool has one input: it enters at run time, with a static or a symbolic shape."""
    definition = schema.schema(name, since_version)
    if sample.since > since_version or not dict(sample.attributes).keys() <= definition.attributes.keys():
        return ()
    if sample.indices and len(definition.outputs) < 2:
        return ()
    if sample.values in FLOAT_VALUES and np.dtype(dtypes[0]).kind != "f":
        return ()
    if dtypes[0] != "float32":
        return (graph.RUNTIME,) if sample.every_dtype else ()
    return (graph.RUNTIME, graph.SYMBOLIC) if sample.every_dtype else (graph.RUNTIME,)


def node(sample: PoolSample, context: CaseContext, *, name: str) -> Node:
    """X [N, C, *spatial]; Y [N, C, *output] of its dtype, Indices int64 of the same shape."""
    outputs = ("Y", "Indices") if sample.indices else ("Y",)
    x = _values(sample, context.dtype, context.rng, of_max="Max" in name)
    return Node(name, "", context.since_version, (Operand("X", x),), outputs, dict(sample.attributes))


def _values(sample: PoolSample, dtype: np.dtype[Any], rng: np.random.Generator, *, of_max: bool) -> Array:
    shape, count = sample.x, prod(sample.x)
    match sample.values:
        case "distinct" if dtype.kind != "f":
            info = np.iinfo(dtype)
            return np.resize(rng.permutation(np.arange(info.min, info.max + 1)), count).astype(dtype).reshape(shape)
        case "distinct" if of_max:
            return data.distinct(shape, dtype, rng)
        case "negative":
            low, high = (-100, -1) if dtype.kind != "u" else (1, 100)
            return np.resize(rng.permutation(np.arange(low, high)), count).astype(dtype).reshape(shape)
        case "integers":
            return rng.integers(-8, 9, shape).astype(dtype)
        case "ties":
            return rng.integers(0, 3, shape).astype(dtype)
        case "equal" | "zeros":
            return np.full(shape, 3 if sample.values == "equal" else 0, dtype)
        case "lowest":
            return np.full(shape, -np.inf if dtype.kind == "f" else np.iinfo(dtype).min, dtype)
        case "boundary":
            known = data.boundary(dtype)
            known = known[known != 0] if dtype.kind == "f" else known
            return rng.permuted(np.resize(known, count)).reshape(shape)
        case "all_nan":
            return np.full(shape, np.nan, dtype)
    x = rng.uniform(-2, 2, shape).astype(dtype)
    if sample.values in ("infinity", "nan"):
        x.reshape(-1)[x.size // 2] = np.inf if sample.values == "infinity" else np.nan
    if sample.values == "cancellation":
        x[..., 1::2] = -x[..., : x.shape[-1] // 2 * 2 : 2]
    return x


def parse(node: Node) -> tuple[Array, Windows] | str:
    """(X, its windows), or the rule that the node breaks; a global pool has one window, the image."""
    x = node.array("X")
    if node.op_type.startswith("Global"):
        image, ones, none = x.shape[2:], (1,) * (x.ndim - 2), (0,) * (x.ndim - 2)
        return x, Windows(image, image, ones, ones, none, none, ones)
    windows = slide(node, x.shape[2:], node.integers("kernel_shape", ()), ceil_mode=node.integer("ceil_mode", 0) == 1)
    return windows if isinstance(windows, str) else (x, windows)


def average_truth(node: Node) -> Truth:
    """The sum under each window, by the number of elements: of the image, or of its padding too."""
    parsed = parse(node)
    if isinstance(parsed, str):
        return Refusal(parsed)
    x, windows = parsed
    counted = is_padded_image(windows) if node.integer("count_include_pad", 0) else is_image(windows)
    divisor = counted.sum(-1)
    under = columns(x.astype(np.float64), windows, 0.0)
    with np.errstate(invalid="ignore"):
        average, magnitude = under.sum(-1) / divisor, abs(under).sum(-1) / divisor
    bound = bounds.bound_sum(windows.taps_each, x.dtype, magnitude, roundings=1)
    return Outputs((bounds.round_output("Y", average, x.dtype, bound),))


POWER_ULPS = {"float16": 2}
"""WebNN's tolerance of pow in float16; it is 32 ULP in wider types."""


def lp_truth(node: Node) -> Truth:
    """(sum of |x|^p)^(1 / p) under each window; padding adds nothing.

    The terms are not negative, so that the sum's error is relative; the root divides it by p and adds its own.
    """
    parsed = parse(node)
    if isinstance(parsed, str):
        return Refusal(parsed)
    x, windows = parsed
    p = node.integer("p", 2)
    under = abs(columns(x.astype(np.float64), windows, 0.0))
    power = POWER_ULPS.get(x.dtype.name, 32)
    ulps = (windows.taps_each + power) / p + power + 2
    sources = (bounds.WEBNN.cite_row("pow"), bounds.cite_sum(windows.taps_each))
    return Outputs(
        (bounds.round_output("Y", (under**p).sum(-1) ** (1 / p), x.dtype, bounds.ulp(ulps, sources, x.dtype)),)
    )


def max_truth(node: Node) -> Truth:
    """The greatest element under each window, and where it lies in X: the first of equal ones."""
    parsed = parse(node)
    if isinstance(parsed, str):
        return Refusal(parsed)
    x, windows = parsed
    values, places = maximum(x, windows)
    outputs = [Output("Y", values)]
    if "Indices" in node.outputs:
        outputs.append(Output("Indices", _indices(places, x.shape, column_major=node.integer("storage_order", 0) == 1)))
    return Outputs(tuple(outputs))


def _indices(places: Array, shape: tuple[int, ...], *, column_major: bool) -> Array:
    """int64 indices into the whole of X from places in each image."""
    image = shape[2:]
    if column_major:
        places = np.ravel_multi_index(np.unravel_index(places, image), image, order="F")
    leading = np.arange(prod(shape[:2])).reshape(*shape[:2], *(1,) * len(image))
    indices: Array = (leading * prod(image) + places).astype(np.int64)
    return indices


def lower(node: Node, *, kind: str) -> Lowering | None:
    """Smaller ranks get leading axes of 1, with windows of 1 along the first of them; None without elements.

    A column-major order of Indices is not DirectML's: the EP leaves it to another provider.
    """
    parsed = parse(node)
    if isinstance(parsed, str) or node.integer("storage_order", 0):
        return None
    x, windows = parsed
    if x.size == 0 or x.ndim > 5 or x.dtype == np.float64:
        return None
    missing = max(0, 4 - x.ndim)
    ones = (1,) * missing
    x = x.reshape(ones + x.shape)
    tensor = TensorDesc.of(x, sizes=(*x.shape[: missing + 2], *windows.output))
    shared: dict[str, Any] = {
        "input_tensor": TensorDesc.of(x),
        "output_tensor": tensor,
        "strides": ones + windows.strides,
        "window_size": ones + windows.kernel,
        "start_padding": (0,) * missing + windows.begin,
        "end_padding": (0,) * missing + windows.end,
    }
    dilations = ones + windows.dilations
    return Lowering(_DESCRIBE[kind](node, shared, dilations), (x,))


def _describe_average(node: Node, shared: dict[str, Any], dilations: tuple[int, ...]) -> OperatorDesc:
    include = bool(node.integer("count_include_pad", 0))
    if set(dilations) == {1}:
        return AveragePooling(**shared, include_padding=include)
    return AveragePooling1(**shared, dilations=dilations, include_padding=include)


def _describe_lp(node: Node, shared: dict[str, Any], dilations: tuple[int, ...]) -> OperatorDesc:
    p = node.integer("p", 2)
    return LpPooling(**shared, p=p) if set(dilations) == {1} else LpPooling1(**shared, dilations=dilations, p=p)


def _describe_max(node: Node, shared: dict[str, Any], dilations: tuple[int, ...]) -> OperatorDesc:
    if set(dilations) == {1} and "Indices" not in node.outputs:
        return MaxPooling(**shared)
    sizes = shared["output_tensor"].sizes
    indices = TensorDesc.of(np.empty(0, np.uint64), sizes=sizes) if "Indices" in node.outputs else None
    return MaxPooling2(**shared, output_indices_tensor=indices, dilations=dilations)


_DESCRIBE: dict[str, Callable[[Node, dict[str, Any], tuple[int, ...]], OperatorDesc]] = {
    "average": _describe_average,
    "lp": _describe_lp,
    "max": _describe_max,
}


def _pool(name: str, kind: str, truth: Callable[[Node], Truth]) -> Operator[PoolSample]:
    of = global_samples if name.startswith("Global") else samples
    return Operator(
        name,
        partial(of, name),
        partial(bindings, name=name),
        partial(node, name=name),
        truth,
        partial(lower, kind=kind),
    )


CUBE = Random((1, 1, 5, 5, 5))

INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "MaxPool": (
        Interaction(ABOVE_GROUPS, (Random((1, 1, 2050, 2050)),), {"kernel_shape": (2, 2)}, outputs=1),
        Interaction("3d_dilations", (CUBE,), {"kernel_shape": (2, 2, 2), "dilations": (2, 1, 3)}),
        Interaction("1d_indices_of_equal_values", (Literal([[[1.0, 1.0, 1.0, 0.0, 2.0, 2.0]]]),),
                {"kernel_shape": (2,)}, "float32", 2),
    ),
    "AveragePool": (
        Interaction("3d_dilations", (CUBE,), {"kernel_shape": (2, 2, 2), "dilations": (2, 2, 2)},
                "float32", 0,
                19),
    ),
    "LpPool": (
        Interaction("3d_dilations", (CUBE,), {"kernel_shape": (2, 2, 2), "dilations": (2, 2, 2)}, "float32", 0,
                18),
        Interaction("squares_beyond_float16", (Literal([300.0] * 4, shape=(1, 1, 4)),), {"kernel_shape": (2,)},
                "float16"),
    ),
}  # fmt: skip


def _is_valid(name: str, values: Values) -> bool:
    """Padding has to be smaller than the kernel, and ceil_mode is about pads that are given."""
    kernel, padding, pads = values["kernel_shape"], values["padding"], window_space.PADS
    if padding in pads and any(pad >= side for pad, side in zip(pads[padding], kernel * 2, strict=True)):
        return False
    if values["ceil_mode"] and (padding not in ("", *pads) or name == "LpPool"):
        return False
    return is_window(values)


def _make_parts(name: str, values: Values, rng: np.random.Generator) -> Parts:
    own = {key: values[key] for key in ("ceil_mode", "count_include_pad", "storage_order", "p") if key in values}
    outputs = (True, values["indices"]) if name == "MaxPool" else ()
    return Parts((draw_image(values, rng),), {**write_window(values), **own}, (), outputs)


OWN_CHOICES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "AveragePool": {"count_include_pad": (0, 1)},
    "MaxPool": {"indices": (False, True), "storage_order": (0, 1)},
    "LpPool": {"p": (2, 1)},
}

PARAMETER_SPACES = {
    name: ParameterSpace(
        window_space.IMAGE,
        partial(_make_parts, name),
        {**window_space.WINDOW, "ceil_mode": (0, 1), **own},
        {"width": window_space.BORDERS["width"], "channels": (3, 17, 65)},
        ("batch",),
        partial(_is_valid, name),
        "width",
        ANY_VALUE[1:] if name == "MaxPool" else window_space.EXTREMES,
    )
    for name, own in OWN_CHOICES.items()
}

OPERATORS = declare(
    (
        _pool("AveragePool", "average", average_truth),
        _pool("LpPool", "lp", lp_truth),
        _pool("MaxPool", "max", max_truth),
        _pool("GlobalAveragePool", "average", average_truth),
        _pool("GlobalLpPool", "lp", lp_truth),
        _pool("GlobalMaxPool", "max", max_truth),
    ),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
    magnitudes={
        "AveragePool": ("sums",),
        "GlobalAveragePool": ("sums",),
        "LpPool": ("squares",),
        "GlobalLpPool": ("squares",),
    },
)
