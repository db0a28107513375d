"""LRN-1, 13 -> DML_LOCAL_RESPONSE_NORMALIZATION; LpNormalization-1, 22 -> DML_LP_NORMALIZATION.

Sources: the operator pages. The window of LRN around channel c is from c - floor((size - 1) / 2) to
c + ceil((size - 1) / 2), so that an even size reaches further up. LpNormalization gives 0 where the norm is 0.

Bounds. LRN: the sum of squares by gamma, the power by 16 ULP (OpenCL C, full profile), which has beta times the
relative error of its base, then a division. LpNormalization: the norm by gamma and a root, then a division.

How the DML EP lowers it: DmlOperatorLocalResponseNormalization.cpp and DmlOperatorLpNormalization.cpp, rank padded to 4
with leading dimensions of 1, epsilon 1e-5 for the latter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import Interaction, Literal
from epcheck.generators.declaration.parameter_space import ANY_NUMBER
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.normalization.normalization import (
    LocalResponseNormalization,
    LpNormalization,
)
from epcheck.generators.directml.lowering import LEAST_RANK, Lowering, count_missing, pad_rank
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families.axis_space import AXES, make_axis_parts, make_axis_space
from epcheck.generators.families.movement import first_input
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "LRN",
    "LpNormalization",
)

DML_EPSILON = 1e-5
POW_ULP = 16
SOURCES = (bounds.HIGHAM, bounds.OPENCL.add_remark("pow 16 ULP, sqrt 3, division 2.5"))


@dataclass(frozen=True, kw_only=True)
class LocalSample(Sample):
    """attributes: as the node has them. values: see `_values`."""

    shape: tuple[int, ...] = (2, 7, 3, 4)
    attributes: tuple[tuple[str, Attribute], ...] = ()
    values: str = "plain"


def response_samples() -> Iterator[LocalSample]:
    for size in (1, 2, 3, 4, 5, 7, 9, 15):
        yield LocalSample(name=f"size_{size}", attributes=(("size", size),), every_dtype=size in (3, 5))
        strong: tuple[tuple[str, Attribute], ...] = (("size", size), ("alpha", 0.5), ("beta", 0.625), ("bias", 1.5))
        yield LocalSample(name=f"size_{size}_strong", attributes=strong, every_dtype=size in (3, 4))
    for name, value in (("alpha", 2.0), ("alpha", 0.0), ("beta", 1.0), ("beta", 0.0), ("bias", 3.0), ("bias", 0.25)):
        word = f"{value:g}".replace(".", "_")
        attributes: tuple[tuple[str, Attribute], ...] = (("size", 3), (name, value))
        if name != "alpha":
            attributes = (*attributes, ("alpha", 0.5))
        yield LocalSample(name=f"{name}_{word}", attributes=attributes)
    fixed: tuple[tuple[str, Attribute], ...] = (("size", 3), ("alpha", 0.5))
    for rank in range(2, 9):
        shape = (2, 5, 3, 2, 2, 3, 1, 2)[:rank]
        yield LocalSample(name=f"rank_{rank}", rank=rank, shape=shape, attributes=fixed)
    yield LocalSample(name="one_channel", shape=(2, 1, 3, 3), attributes=fixed)
    yield LocalSample(name="channels_257", shape=(1, 257, 2, 3), attributes=(("size", 5), ("alpha", 0.5)))
    yield LocalSample(name="no_instance", shape=(0, 3, 4, 5), attributes=fixed)
    for values in ("zeros", "large", "nan"):
        yield LocalSample(name=values, attributes=fixed, values=values, every_dtype=True)


def norm_samples() -> Iterator[LocalSample]:
    yield LocalSample(name="defaults", every_dtype=True)
    for p in (1, 2):
        yield LocalSample(name=f"p_{p}", attributes=(("p", p),), every_dtype=True)
        for axis in (0, 1, 2, 3, -1, -2, -4):
            word = f"{'minus_' if axis < 0 else ''}{abs(axis)}"
            attributes: tuple[tuple[str, Attribute], ...] = (("p", p), ("axis", axis))
            yield LocalSample(name=f"p_{p}_axis_{word}", attributes=attributes, every_dtype=axis == 1)
        for rank in range(1, 9):
            shape = (3, 2, 4, 2, 3, 2, 2, 3)[:rank]
            yield LocalSample(name=f"p_{p}_rank_{rank}", rank=rank, shape=shape, attributes=(("p", p),))
        for length in (33, 257, 1025, 4097):
            yield LocalSample(name=f"p_{p}_length_{length}", shape=(2, length), attributes=(("p", p), ("axis", 1)))
        for values in ("zeros", "small", "large", "nan"):
            yield LocalSample(
                name=f"p_{p}_{values}", shape=(3, 8), attributes=(("p", p),), values=values, every_dtype=True
            )
        yield LocalSample(name=f"p_{p}_size_1_axis", shape=(5, 1), attributes=(("p", p),))
        yield LocalSample(name=f"p_{p}_size_0_elsewhere", shape=(0, 5), attributes=(("p", p),))
    yield expect_refusal(LocalSample(name="axis_at_rank", attributes=(("axis", 4),)))
    yield expect_refusal(LocalSample(name="axis_below_rank", attributes=(("axis", -5),)))
    yield expect_refusal(LocalSample(name="p_3", attributes=(("p", 3),)))


def bindings(name: str, sample: LocalSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes[0] != "float32":
        return (graph.RUNTIME,) if sample.every_dtype else ()
    newest = since_version == schema.since_versions(name)[-1]
    return (graph.RUNTIME, graph.SYMBOLIC) if newest else (graph.RUNTIME,)


def node(name: str, sample: LocalSample, context: CaseContext) -> Node:
    """One floating-point tensor in, one of its shape and dtype out."""
    definition = schema.schema(name, context.since_version)
    operand = Operand(definition.inputs[0].name, _values(sample, context))
    return Node(name, "", context.since_version, (operand,), (definition.outputs[0].name,), dict(sample.attributes))


def _values(sample: LocalSample, context: CaseContext) -> Array:
    plain = np.asarray(context.rng.uniform(-3, 3, sample.shape)).astype(context.dtype)
    match sample.values:
        case "zeros":
            plain[0] = 0
        case "small":
            return (plain / 64).astype(context.dtype)
        case "large":
            return (plain * 16).astype(context.dtype)
        case "nan":
            plain[(0,) * plain.ndim] = np.nan
    return plain


def _outputs(node: Node, y: Array, relative: Array | float) -> Outputs:
    dtype = first_input(node).dtype
    floor = np.nan_to_num(np.abs(y) * relative, nan=0.0, posinf=0.0).astype(np.float64)
    bound = bounds.ulp(3.5, SOURCES, dtype, floor)
    return Outputs((bounds.round_output(node.outputs[0], y.astype(np.float64), dtype, bound),))


def window(channel: int, size: int, channels: int) -> slice:
    """The channels around one: floor((size - 1) / 2) below it, ceil((size - 1) / 2) above."""
    return slice(max(0, channel - (size - 1) // 2), min(channels, channel + size // 2 + 1))


def response_truth(node: Node) -> Truth:
    """X / (bias + alpha / size * sum of squares) ^ beta, in longdouble."""
    x = first_input(node).astype(np.longdouble)
    size, beta = node.integer("size", 1), node.number("beta", 0.75)
    with np.errstate(all="ignore"):
        square = x * x
        sums = [square[:, window(c, size, x.shape[1])].sum(axis=1) for c in range(x.shape[1])]
        base = node.number("bias", 1.0) + node.number("alpha", 1e-4) / size * np.stack(sums, axis=1)
        y = x / base**beta
    unit = propagation.unit(first_input(node).dtype)
    relative = abs(beta) * propagation.gamma(size + 4, first_input(node).dtype) + POW_ULP * 2 * unit
    return _outputs(node, y, relative)


def _axis(node: Node) -> int | str:
    axis, rank = node.integer("axis", -1), first_input(node).ndim
    return axis % rank if -rank <= axis < rank else f"axis {axis} must be within [{-rank}, {rank - 1}] for rank {rank}"


def norm_truth(node: Node) -> Truth:
    """input over its norm along the axis, 0 where that is 0, in longdouble."""
    axis, p = _axis(node), node.integer("p", 2)
    if isinstance(axis, str):
        return Refusal(axis)
    if p not in (1, 2):
        return Refusal(f"p is {p}; only 1 and 2 are supported")
    x = first_input(node).astype(np.longdouble)
    with np.errstate(all="ignore"):
        total = np.sum(np.abs(x) if p == 1 else x * x, axis=axis, keepdims=True)
        norm = total if p == 1 else np.sqrt(total)
        y = np.where(norm == 0, 0, x / norm)
    dtype = first_input(node).dtype
    return _outputs(node, y, propagation.gamma(x.shape[axis] + 1, dtype) + 6 * propagation.unit(dtype))


def response_lower(node: Node) -> Lowering | None:
    """Across channels; None for ranks whose channels padding would move away from dimension 1."""
    x = first_input(node)
    if x.size == 0 or x.ndim != LEAST_RANK:
        return None
    numbers = (node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1.0))
    tensor = TensorDesc.of(x)
    return Lowering(LocalResponseNormalization(tensor, tensor, True, node.integer("size", 1), *numbers), (x,))


def norm_lower(node: Node) -> Lowering | None:
    axis, p, x = _axis(node), node.integer("p", 2), first_input(node)
    if isinstance(axis, str) or p not in (1, 2) or x.size == 0 or x.ndim > MAX_RANK:
        return None
    values = pad_rank(x)
    tensor = TensorDesc.of(values)
    return Lowering(LpNormalization(tensor, tensor, axis + count_missing(x.ndim), DML_EPSILON, p), (values,))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "LpNormalization": (
        Interaction("squares_beyond_float16", (Literal([300.0, 400.0]),), {"axis": 0}, "float16"),
    ),
}  # fmt: skip


PARAMETER_SPACES = {
    "LpNormalization": make_axis_space(make_axis_parts, {"axis": AXES, "p": (2, 1)}, ("nan", *ANY_NUMBER))
}

OPERATORS = declare(
    (
        Operator(
            "LRN", response_samples, partial(bindings, "LRN"), partial(node, "LRN"), response_truth, response_lower
        ),
        Operator(
            "LpNormalization",
            norm_samples,
            partial(bindings, "LpNormalization"),
            partial(node, "LpNormalization"),
            norm_truth,
            norm_lower,
        ),
    ),
    interactions=INTERACTIONS,
    parameter_spaces=PARAMETER_SPACES,
    magnitudes={
        "LRN": ("squares",),
        "LpNormalization": ("squares",),
    },
)
