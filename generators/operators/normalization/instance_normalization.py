"""InstanceNormalization-6, 22, MeanVarianceNormalization-1, 9, 13, GroupNormalization-21, com.microsoft::GroupNorm-1,
com.microsoft.dml's DmlFusedInstanceNormalization-1 and DmlFusedMeanVarianceNormalization-1
-> DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC.

Sources: the operator pages, ContribOperators.md and `fused_activation` for what is fused. An instance, or a
group of its channels, is normalized to mean 0 and variance 1. MeanVarianceNormalization has no epsilon in its formula
(its function body adds 1e-9 to the deviation) and so no sample whose variance is 0; its revision 1, ONNX Runtime's,
takes each channel, as the default axes of revision 9 do, or with `across_channels` everything, and with
`normalize_variance` 0 subtracts the mean only. GroupNorm is GroupNormalization with the channels last, and its
`activation` 1 is SiLU, x times sigmoid(x). GroupNormalization has its first stage in float32 (`stash_type` 1).

Bounds: `propagation.Moments`, `normalize` and `rescale`, as in layer_normalization; an activation passes the error on.

How the DML EP lowers it: DmlOperatorInstanceNormalization.cpp writes strides for 4 dimensions, so ranks above have no
description; DmlOperatorMeanVarianceNormalization.cpp; DmlOperatorGroupNorm.cpp is a graph of strided views, of which no
single description tells anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.bounds.propagation import Moments
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.normalization.normalization import MeanVarianceNormalization1
from epcheck.generators.directml.lowering import LEAST_RANK, Lowering, count_missing, pad_rank
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families import fused_activation
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, spread
from epcheck.generators.operators.normalization.layer_normalization import SOURCES
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "InstanceNormalization",
    "MeanVarianceNormalization",
    "GroupNormalization",
    "com.microsoft::GroupNorm",
    "com.microsoft.dml::DmlFusedInstanceNormalization",
    "com.microsoft.dml::DmlFusedMeanVarianceNormalization",
)

MICROSOFT, DML = "com.microsoft", fused_activation.DOMAIN
DEFAULT_EPSILON = 1e-5
MVN_EPSILON = 1e-9
"""What the function body of MeanVarianceNormalization adds to the deviation."""

DML_MVN_EPSILON = 1e-5


@dataclass(frozen=True, kw_only=True)
class InstanceSample(Sample):
    """attributes: as the node has them. values: see `_x`. scale_type: where it is not that of X.

    short: scale is one element too short, which must be refused. since: the oldest and newest revision that has it.
    """

    shape: tuple[int, ...] = (2, 3, 4, 5)
    attributes: tuple[tuple[str, Attribute], ...] = ()
    values: str = "plain"
    scale_type: str = ""
    short: bool = False
    since: tuple[int, int] = (1, 99)


def _list_epsilons(*fixed: tuple[str, Attribute]) -> Iterator[InstanceSample]:
    """What every operator with scale, bias and epsilon is asked."""
    yield InstanceSample(name="defaults", attributes=fixed, every_dtype=True)
    for name, epsilon in (("0", 0.0), ("small", 1e-12), ("large", 10.0)):
        yield InstanceSample(
            name=f"epsilon_{name}", attributes=(*fixed, ("epsilon", epsilon)), every_dtype=name == "large"
        )
    yield InstanceSample(name="one_instance", shape=(1, 3, 3, 3), attributes=fixed)
    yield InstanceSample(name="no_instance", shape=(0, 3, 4, 5), attributes=fixed)
    for values in ("constant", "offset", "small", "large", "nan"):
        yield InstanceSample(
            name=values, shape=(2, 3, 4, 4), attributes=fixed, values=values, every_dtype=values in ("constant", "nan")
        )


def _ranks(*fixed: tuple[str, Attribute], lowest: int = 3) -> Iterator[InstanceSample]:
    for rank in range(lowest, 9):
        yield InstanceSample(
            name=f"rank_{rank}",
            rank=rank,
            shape=(2, 3, 4, 2, 3, 2, 1, 2)[:rank],
            attributes=fixed,
            every_dtype=rank in (3, 5),
        )


def _instance_samples() -> Iterator[InstanceSample]:
    yield from _list_epsilons()
    yield from _ranks()
    yield InstanceSample(name="one_channel", shape=(3, 1, 3, 3))
    yield InstanceSample(name="channels_257", shape=(1, 257, 2, 2))
    yield InstanceSample(name="size_1", shape=(2, 3, 1, 1))
    yield InstanceSample(name="size_1025", shape=(2, 2, 1025))
    yield InstanceSample(name="size_1089", shape=(1, 3, 33, 33))
    yield InstanceSample(name="size_4096", shape=(1, 1, 64, 64))
    yield expect_refusal(InstanceSample(name="short_scale", short=True))


def _group_samples() -> Iterator[InstanceSample]:
    groups: tuple[str, Attribute] = ("num_groups", 3)
    yield from _list_epsilons(groups)
    yield from _ranks(groups)
    for count in (1, 2, 4, 8):
        yield InstanceSample(name=f"groups_{count}_of_8", shape=(2, 8, 3, 3), attributes=(("num_groups", count),))
    yield InstanceSample(name="stash_type_1", attributes=(groups, ("stash_type", 1)), every_dtype=True)
    yield InstanceSample(name="size_1089", shape=(1, 4, 33, 33), attributes=(("num_groups", 2),))
    yield InstanceSample(name="channels_1026_groups_2", shape=(1, 1026, 2), attributes=(("num_groups", 2),))


def _microsoft_group_samples() -> Iterator[InstanceSample]:
    """X is [N, H, W, C], or with channels_last 0 [N, C, H, W]."""
    for activation in (0, 1):
        fixed: tuple[tuple[str, Attribute], ...] = (("groups", 2), ("activation", activation))
        suffix = "_silu" if activation else ""
        for count in (1, 2, 4, 8):
            yield InstanceSample(
                name=f"groups_{count}_of_8{suffix}",
                shape=(2, 3, 4, 8),
                attributes=(("groups", count), ("activation", activation)),
                every_dtype=count == 2,
            )
        for name, epsilon in (("0", 0.0), ("small", 1e-12), ("large", 10.0)):
            yield InstanceSample(
                name=f"epsilon_{name}{suffix}", shape=(2, 3, 3, 4), attributes=(*fixed, ("epsilon", epsilon))
            )
        yield InstanceSample(
            name=f"channels_last_1{suffix}", shape=(2, 3, 4, 6), attributes=(*fixed, ("channels_last", 1))
        )
        yield InstanceSample(
            name=f"channels_first{suffix}",
            shape=(2, 6, 3, 4),
            attributes=(*fixed, ("channels_last", 0)),
            every_dtype=True,
        )
        yield InstanceSample(
            name=f"scale_float32{suffix}",
            shape=(2, 3, 4, 6),
            attributes=fixed,
            scale_type="float32",
            every_dtype=True,
        )
        yield InstanceSample(
            name=f"scale_float16{suffix}",
            shape=(2, 3, 4, 6),
            attributes=fixed,
            scale_type="float16",
            every_dtype=True,
        )
        for values in ("constant", "offset", "small", "large", "nan"):
            yield InstanceSample(name=f"{values}{suffix}", shape=(2, 4, 4, 6), attributes=fixed, values=values)
        yield InstanceSample(name=f"size_1{suffix}", shape=(2, 1, 1, 6), attributes=fixed)
        yield InstanceSample(name=f"size_2178{suffix}", shape=(1, 33, 33, 4), attributes=fixed)
        yield InstanceSample(
            name=f"channels_320_groups_32{suffix}",
            shape=(1, 2, 2, 320),
            attributes=(("groups", 32), ("activation", activation)),
        )
        for channels, count in ((8, 4), (320, 32)):
            yield InstanceSample(
                name=f"channels_{channels}_groups_{count}_two_values{suffix}",
                shape=(2, 2, 3, channels),
                attributes=(("groups", count), ("activation", activation)),
                values="two",
                every_dtype=True,
            )
    yield InstanceSample(name="no_instance", shape=(0, 3, 4, 6), attributes=fixed)


def _mean_variance_samples() -> Iterator[InstanceSample]:
    old, new = (1, 1), (9, 99)
    yield InstanceSample(name="defaults", every_dtype=True)
    for across in (0, 1):
        for variance in (0, 1):
            attributes: tuple[tuple[str, Attribute], ...] = (
                ("across_channels", across),
                ("normalize_variance", variance),
            )
            name = f"across_channels_{across}_normalize_variance_{variance}"
            yield InstanceSample(name=name, attributes=attributes, every_dtype=True, since=old)
        yield InstanceSample(name=f"across_channels_{across}", attributes=(("across_channels", across),), since=old)
    listed: tuple[tuple[int, ...], ...] = ((0,), (1,), (3,), (2, 3), (1, 2, 3), (0, 1, 2, 3), (0, 2, 3), (3, 0))
    for axes in listed:
        word = "_".join(map(str, axes))
        yield InstanceSample(
            name=f"axes_{word}", attributes=(("axes", axes),), every_dtype=axes in ((2, 3), (1,)), since=new
        )
    yield InstanceSample(name="axes_minus_1", attributes=(("axes", (-1,)),), since=new)
    yield InstanceSample(name="axes_minus_1_minus_2", attributes=(("axes", (-1, -2)),), since=new)
    for rank in range(1, 9):
        shape = (3, 2, 4, 2, 3, 2, 2, 3)[:rank]
        yield InstanceSample(
            name=f"rank_{rank}_axis_0", rank=rank, shape=shape, attributes=(("axes", (0,)),), since=new
        )
        if rank > 1:
            axes = (0, rank - 1)
            yield InstanceSample(
                name=f"rank_{rank}_outer_axes", rank=rank, shape=shape, attributes=(("axes", axes),), since=new
            )
    for values in ("offset", "small", "large", "nan"):
        yield InstanceSample(name=values, shape=(2, 3, 4, 4), values=values, every_dtype=values in ("small", "nan"))
    yield InstanceSample(name="no_instance_axes_2_3", shape=(0, 3, 4, 5), attributes=(("axes", (2, 3)),), since=new)
    yield InstanceSample(name="size_1089", shape=(1, 2, 33, 33))
    yield InstanceSample(name="size_1025", shape=(2, 1025), attributes=(("axes", (1,)),), since=new)


def _list_fused(
    plain: tuple[tuple[str, tuple[tuple[str, Attribute], ...]], ...], *, defaults: bool = True
) -> Iterator[InstanceSample]:
    for activation in fused_activation.INTO_NORMALIZATIONS:
        others = fused_activation.OTHERS.get(activation, ())
        fused, word = fused_activation.attributes(activation, *others), activation.lower()
        yield InstanceSample(name=word, attributes=fused, every_dtype=True)
        if others:
            yield InstanceSample(name=f"{word}_defaults", attributes=fused_activation.attributes(activation))
        for name, attributes in plain:
            yield InstanceSample(name=f"{word}_{name}", attributes=(*fused, *attributes))
    if defaults:
        fused = fused_activation.attributes("Relu")
        yield InstanceSample(name="relu_size_1089", shape=(1, 2, 33, 33), attributes=fused)
        yield InstanceSample(name="relu_rank_3", rank=3, shape=(2, 3, 7), attributes=fused)


SAMPLES: Mapping[str, Callable[[], Iterator[InstanceSample]]] = {
    "InstanceNormalization": _instance_samples,
    "MeanVarianceNormalization": _mean_variance_samples,
    "GroupNormalization": _group_samples,
    "GroupNorm": _microsoft_group_samples,
    "DmlFusedInstanceNormalization": partial(_list_fused, (("epsilon_large", (("epsilon", 10.0),)),)),
    "DmlFusedMeanVarianceNormalization": partial(
        _list_fused,
        (
            ("across_channels", (("across_channels", 1),)),
            ("mean_only", (("normalize_variance", 0),)),
        ),
        defaults=False,
    ),
}
DOMAINS = {"GroupNorm": MICROSOFT, "DmlFusedInstanceNormalization": DML, "DmlFusedMeanVarianceNormalization": DML}


def bindings(name: str, sample: InstanceSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    versions = schema.since_versions(name, DOMAINS.get(name, ""))
    oldest, latest = sample.since
    if not oldest <= since_version <= latest or sample.scale_type == dtypes[0]:
        return ()
    first, newest = dtypes[0] == "float32", since_version in versions[-2:]
    if len(schema.schema(name, since_version, DOMAINS.get(name, "")).inputs) > 1:
        every = spread(sample, first=first, newest=newest)
        return tuple(binding for binding in every if binding != graph.CONSTANT)
    if not first:
        return (graph.RUNTIME,) if sample.every_dtype else ()
    return (graph.RUNTIME, graph.SYMBOLIC) if newest else (graph.RUNTIME,)


def node(name: str, sample: InstanceSample, context: CaseContext) -> Node:
    """The tensor to normalize and, unless it is MeanVarianceNormalization, scale and bias of [channels], parameters."""
    domain, rng = DOMAINS.get(name, ""), context.rng
    definition = schema.schema(name, context.since_version, domain)
    formals = [formal.name for formal in definition.inputs]
    inputs = [Operand(formals[0], _x(sample, context))]
    if len(formals) > 1:
        last = name == "GroupNorm" and dict(sample.attributes).get("channels_last", 1) == 1
        channels = (sample.shape[-1 if last else 1] - sample.short,)
        of_scale = np.dtype(sample.scale_type or context.dtype)
        scale = rng.uniform(0.5, 2, channels) * rng.choice([-1.0, 1.0], channels)
        inputs.append(Operand(formals[1], scale.astype(of_scale), parameter=True))
        bias = rng.uniform(-2, 2, channels) + (5 if sample.values == "two" else 0)
        inputs.append(Operand(formals[2], bias.astype(of_scale), parameter=True))
    outputs = (definition.outputs[0].name,)
    return Node(name, domain, context.since_version, tuple(inputs), outputs, dict(sample.attributes))


def _x(sample: InstanceSample, context: CaseContext) -> Array:
    """Constants are 0.5, whose sums are exact: their variance is 0 however it is computed."""
    plain = np.asarray(context.rng.uniform(-3, 3, sample.shape)).astype(context.dtype)
    match sample.values:
        case "plain":
            return plain
        case "constant":
            return np.full(sample.shape, 0.5, context.dtype)
        case "two":  # with a bias that keeps results away from 0: little of one is error
            return np.where(plain < 0, -2, 2).astype(context.dtype)
        case "offset":
            return (plain + 20).astype(context.dtype)
        case "small":
            return (plain / 256).astype(context.dtype)
        case "large":
            return (plain * 32).astype(context.dtype)
        case "nan":
            plain[(0,) * plain.ndim] = np.nan
            return plain
        case other:
            raise ValueError(f"sample {sample.name}: unknown kind of data '{other}'")


@dataclass(frozen=True)
class _Plan:
    """A node in plain terms: x as a view whose `axes` are normalized together, scale and bias broadcast to it.

    restore: from the view's result to the output. epsilon: added to the variance. normalize: whether it is divided.
    """

    x: Array
    axes: tuple[int, ...]
    scale: Array | float
    bias: Array | float
    epsilon: float
    normalize: bool
    restore: Callable[[Array], Array]


def _plan(node: Node) -> _Plan | str:
    operands = [operand.value for operand in node.inputs if operand is not None]
    x = operands[0]
    wide = x.astype(np.longdouble)
    epsilon = node.number("epsilon", DEFAULT_EPSILON)
    if len(operands) == 1:
        variance = node.integer("normalize_variance", 1) != 0
        return _Plan(wide, mean_variance_axes(node), 1.0, 0.0, 0.0, variance, np.asarray)
    parameters = [operand.astype(np.longdouble) for operand in operands[1:]]
    last = node.op_type == "GroupNorm" and node.integer("channels_last", 1) == 1
    channels = x.shape[-1 if last else 1]
    if parameters[0].shape != (channels,):
        return f"scale must have shape [{channels}], not {list(parameters[0].shape)}"
    if not node.op_type.startswith("Group"):
        scale, bias = (operand.reshape(-1, *(1,) * (x.ndim - 2)) for operand in parameters)
        return _Plan(wide, tuple(range(2, x.ndim)), scale, bias, epsilon, True, np.asarray)
    groups = node.integer("groups" if last or node.op_type == "GroupNorm" else "num_groups", 1)
    first = np.moveaxis(wide, -1, 1) if last else wide
    view = first.reshape(x.shape[0], groups, channels // groups, *first.shape[2:])
    scale, bias = (operand.reshape(groups, -1, *(1,) * (x.ndim - 2)) for operand in parameters)

    def restore(y: Array) -> Array:
        back = y.reshape(first.shape)
        return np.ascontiguousarray(np.moveaxis(back, 1, -1) if last else back)

    return _Plan(view, tuple(range(2, view.ndim)), scale, bias, epsilon, True, restore)


def mean_variance_axes(node: Node) -> tuple[int, ...]:
    """What MeanVarianceNormalization normalizes together, by `axes` or, in revision 1, by `across_channels`."""
    operand = node.inputs[0]
    assert operand is not None
    rank = operand.value.ndim
    if node.since_version == 1:
        across = node.integer("across_channels", 0) != 0
        return tuple(axis for axis in range(rank) if across or axis != 1)
    return tuple(sorted(axis % rank for axis in node.integers("axes", (0, 2, 3))))


def truth(node: Node) -> Truth:
    """The page's formula in longdouble."""
    plan = _plan(node)
    if isinstance(plan, str):
        return Refusal(plan)
    operand = node.inputs[0]
    assert operand is not None
    dtype = operand.value.dtype
    stash = np.dtype(np.float32) if node.op_type == "GroupNormalization" else dtype
    with np.errstate(all="ignore"):
        moments = Moments.of(plan.x, plan.axes, stash)
        inverse = moments.inverse_deviation(plan.epsilon, stash)
        if len(node.inputs) == 1 and node.since_version > 1:
            inverse = (1 / (1 / inverse[0] + MVN_EPSILON), inverse[1])
        if not plan.normalize:
            inverse = (np.ones_like(moments.mean), np.zeros_like(moments.mean))
        y, error = propagation.normalize(plan.x, moments, inverse, stash)
        error = error + propagation.unit(dtype) * np.abs(y)
        y, error = propagation.rescale(y, error, np.asarray(plan.scale), plan.bias, dtype)
        y, error = fused_activation.pass_on_error(node, y, error, dtype)
        if node.integer("activation", 0) == 1:
            y, error = _silu(y, error, dtype)
    y, error = plan.restore(y), plan.restore(np.broadcast_to(error, y.shape))
    floor = np.nan_to_num(error.astype(np.float64), nan=0.0, posinf=0.0)
    bound = bounds.ulp(2, SOURCES, dtype, floor)
    return Outputs((bounds.round_output(node.outputs[0], y.astype(np.float64), dtype, bound),))


def _silu(y: Array, error: Array, dtype: np.dtype[np.generic]) -> tuple[Array, Array]:
    """y * sigmoid(y), which is nowhere steeper than 1.1; exp's error is at most all of it."""
    value = y / (1 + np.exp(-y))
    own = np.minimum(propagation.exp_error(y, dtype) + 4 * propagation.unit(dtype), 1)
    return value, 1.1 * error + np.abs(value) * own


def lower(node: Node) -> Lowering | None:
    """[N, C, ...] with dimensions of 1 behind, or before for MeanVarianceNormalization; None for groups."""
    plan = _plan(node)
    operands = [operand.value for operand in node.inputs if operand is not None]
    x = operands[0]
    if isinstance(plan, str) or x.size == 0 or x.ndim > MAX_RANK or node.op_type.startswith("Group"):
        return None
    activation = fused_activation.description(node)
    if len(operands) == 1:
        axes = tuple(axis + count_missing(x.ndim) for axis in plan.axes)
        x = pad_rank(x)
        tensor = TensorDesc.of(x)
        desc = MeanVarianceNormalization1(
            tensor, None, None, tensor, axes, plan.normalize, DML_MVN_EPSILON, fused_activation=activation
        )
        return Lowering(desc, (x, None, None))
    if x.ndim > LEAST_RANK:
        return None
    x = x.reshape(x.shape + (1,) * count_missing(x.ndim))
    scale, bias = (operand.reshape(1, -1, 1, 1) for operand in operands[1:])
    desc = MeanVarianceNormalization1(
        TensorDesc.of(x),
        TensorDesc.of(scale),
        TensorDesc.of(bias),
        TensorDesc.of(x),
        (2, 3),
        normalize_variance=True,
        epsilon=plan.epsilon,
        fused_activation=activation,
    )
    return Lowering(desc, (x, scale, bias))


OPERATORS = tuple(
    Operator(
        name,
        samples,
        partial(bindings, name),
        partial(node, name),
        truth,
        lower,
        domain=DOMAINS.get(name, ""),
        magnitudes=("squares",),
    )
    for name, samples in SAMPLES.items()
)
