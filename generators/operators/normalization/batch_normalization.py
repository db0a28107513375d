"""BatchNormalization-7, 9, 14, 15 and com.microsoft.dml::DmlFusedBatchNormalization -> DML_BATCH_NORMALIZATION.

Sources: the operator pages, for inference: (X - mean) / sqrt(var + epsilon) * scale + B per channel; the fused
operator applies an activation to that (`fused_activation`). `spatial` of revision 7, when 0, gives each element
of an instance statistics of its own. Revision 14 lets the statistics, 15 also scale and B have types of their own.
In training, which is `training_mode` 1 and before revision 14 a node with all five outputs, mean and variance are those
of the batch; `saved_mean` and `saved_var` give these.

Bound: no step cancels but the last sum, so the error is a few roundings of the magnitudes that are added, whether the
operator is computed in this form or as X * a + b with a = scale / deviation, b = B - mean * a: (|X| + |mean|) |a| + |B|
times gamma(SQRT_AND_DIVISION and six further roundings).

How the DML EP lowers it: DmlOperatorBatchNormalization.cpp; the channels stand in dimension 1, ranks below 4 get
dimensions of 1 behind. Nodes whose types differ, and all training, stay with CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.normalization.normalization import BatchNormalization
from epcheck.generators.directml.lowering import Lowering, count_missing
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families import fused_activation
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "BatchNormalization",
    "com.microsoft.dml::DmlFusedBatchNormalization",
)

FUSED = "DmlFusedBatchNormalization"
IN_TRAINING = 5
"""Outputs of a node of revision 7 or 9 that trains."""

ROUNDINGS = int(2 * propagation.SQRT_AND_DIVISION) + 6
SOURCES = (bounds.HIGHAM, bounds.OPENCL.add_remark("sqrt 3 ULP, division 2.5"))


@dataclass(frozen=True, kw_only=True)
class BatchSample(Sample):
    """epsilon, momentum, spatial, training_mode: None leaves the attribute out. activation: fused, by its ONNX name.

    statistics, scale_type: the dtype of mean and var, of scale and B, where it is not that of X. values: see `_x`.
    """

    shape: tuple[int, ...] = (2, 3, 4, 5)
    epsilon: float | None = None
    momentum: float | None = None
    spatial: int | None = None
    training_mode: int | None = None
    activation: str = ""
    activation_parameters: bool = True
    values: str = "plain"
    statistics: str = ""
    scale_type: str = ""
    short: bool = False


def samples(name: str) -> Iterator[BatchSample]:
    if name == FUSED:
        for activation in fused_activation.INTO_NORMALIZATIONS:
            word = activation.lower()
            yield BatchSample(name=word, activation=activation, every_dtype=True)
            if activation in fused_activation.OTHERS:
                yield BatchSample(name=f"{word}_defaults", activation=activation, activation_parameters=False)
            yield BatchSample(name=f"{word}_rank_2", activation=activation, shape=(4, 33))
        yield BatchSample(name="relu_epsilon_large", activation="Relu", epsilon=10.0)
        yield BatchSample(name="relu_size_1089", activation="Relu", shape=(1, 2, 33, 33))
        return
    yield from _list_plain()


def _list_plain() -> Iterator[BatchSample]:
    yield BatchSample(name="defaults", every_dtype=True)
    for name, epsilon in (("0", 0.0), ("small", 1e-12), ("large", 10.0), ("1e_minus_3", 1e-3)):
        yield BatchSample(name=f"epsilon_{name}", epsilon=epsilon, every_dtype=name == "large")
    yield BatchSample(name="momentum_is_for_training", momentum=0.25)
    yield BatchSample(name="training_mode_0", training_mode=0)
    yield BatchSample(name="spatial_1", spatial=1)
    yield BatchSample(name="spatial_0", spatial=0)
    yield BatchSample(name="spatial_0_rank_3", rank=3, spatial=0, shape=(2, 3, 7))
    for rank in range(2, 9):
        yield BatchSample(
            name=f"rank_{rank}", rank=rank, shape=(2, 3, 4, 2, 3, 2, 1, 2)[:rank], every_dtype=rank in (2, 5)
        )
    yield BatchSample(name="one_instance", shape=(1, 5, 3, 3))
    yield BatchSample(name="one_channel", shape=(3, 1, 3, 3))
    yield BatchSample(name="one_element", shape=(1, 1, 1, 1))
    yield BatchSample(name="channels_257", shape=(1, 257, 2, 2))
    yield BatchSample(name="size_1089", shape=(1, 3, 33, 33))
    yield BatchSample(name="no_instance", shape=(0, 3, 4, 5))
    for values in ("variance_0", "variance_tiny", "scale_0", "offset", "nan", "infinities"):
        yield BatchSample(name=values, values=values, every_dtype=values in ("variance_0", "nan"))
    for part in ("statistics", "scale_type"):
        for other in ("float32", "float64"):
            yield BatchSample(name=f"{part}_{other}", every_dtype=True, **{part: other})  # type: ignore[arg-type]
    yield expect_refusal(BatchSample(name="short_scale", short=True))


def bindings(name: str, sample: BatchSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    domain = fused_activation.DOMAIN if name == FUSED else ""
    definition = schema.schema(name, since_version, domain)
    types = {formal.name: formal.type_str for formal in definition.inputs}
    for attribute in ("spatial", "training_mode"):
        if getattr(sample, attribute) is not None and attribute not in definition.attributes:
            return ()
    statistics = types.get("input_mean", "T")
    if (sample.statistics and statistics == "T") or (sample.scale_type and types["scale"] == "T"):
        return ()
    if dtypes[0] in (sample.statistics, sample.scale_type):
        return ()
    newest = since_version == schema.since_versions(name, domain)[-1]
    first = dtypes[0] == "float32"
    every = spread(sample, first=first, newest=newest)
    return tuple(binding for binding in every if binding != graph.CONSTANT)


def node(name: str, sample: BatchSample, context: CaseContext) -> Node:
    """X [N, C, ...]; the others [C], or [C, ...] for spatial 0, parameters. Y has shape and dtype of X."""
    domain = fused_activation.DOMAIN if name == FUSED else ""
    rng, channels = context.rng, sample.shape[1:2]
    per = sample.shape[1:] if sample.spatial == 0 else channels
    if sample.short:
        per = (channels[0] - 1,)
    of_scale = np.dtype(sample.scale_type or context.dtype)
    of_statistics = np.dtype(sample.statistics or context.dtype)
    scale = rng.uniform(0.5, 2, per) * rng.choice([-1.0, 1.0], per)
    variance = rng.uniform(0.25, 4, per)
    mean = rng.uniform(-2, 2, per)
    match sample.values:
        case "variance_0":
            variance[0] = 0
        case "variance_tiny":
            variance *= 1e-4
        case "scale_0":
            scale[0] = 0
        case "offset":
            mean += 100
    formals = [formal.name for formal in schema.schema(name, context.since_version, domain).inputs]
    operands = (
        Operand(formals[0], _x(sample, context.dtype, rng)),
        Operand(formals[1], scale.astype(of_scale), parameter=True),
        Operand(formals[2], rng.uniform(-2, 2, per).astype(of_scale), parameter=True),
        Operand(formals[3], mean.astype(of_statistics), parameter=True),
        Operand(formals[4], variance.astype(of_statistics), parameter=True),
    )
    settings = {key: getattr(sample, key) for key in ("epsilon", "momentum", "spatial", "training_mode")}
    attributes: dict[str, Attribute] = {key: value for key, value in settings.items() if value is not None}
    if sample.activation:
        others = fused_activation.OTHERS.get(sample.activation, ()) if sample.activation_parameters else ()
        attributes |= dict(fused_activation.attributes(sample.activation, *others))
    return Node(name, domain, context.since_version, operands, ("Y",), attributes)


def _x(sample: BatchSample, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    x = np.asarray(rng.uniform(-3, 3, sample.shape)).astype(dtype)
    match sample.values:
        case "offset":
            x = (x + 100).astype(dtype)
        case "nan":
            x[0, 0, 0, 0], x[-1, -1, -1, -1] = np.nan, np.nan
        case "infinities":
            x[0, 0, 0, 0], x[-1, -1, -1, -1] = np.inf, -np.inf
    return x


def _invalid(node: Node) -> str:
    x, scale = node.array("X"), node.array("scale")
    expected = x.shape[1:2] if node.integer("spatial", 1) else x.shape[1:]
    return "" if scale.shape == expected else f"scale must have shape {list(expected)}, not {list(scale.shape)}"


def _per_channel(node: Node) -> list[Array]:
    """scale, B, mean, var, broadcast to X, in their own dtypes."""
    x = node.array("X")
    operands = [operand.value for operand in node.inputs[1:] if operand is not None]
    return [operand.reshape((1, *operand.shape, *(1,) * (x.ndim - 1 - operand.ndim))) for operand in operands]


def _is_training(node: Node) -> bool:
    return node.integer("training_mode", 0) != 0 or len(node.results) == IN_TRAINING


def truth(node: Node) -> Truth:
    """The page's formula for inference, in longdouble."""
    if reason := _invalid(node):
        return Refusal(reason)
    x = node.array("X")
    if _is_training(node):
        return _train(node)
    wide = x.astype(np.longdouble)
    scale, bias, mean, variance = (operand.astype(np.longdouble) for operand in _per_channel(node))
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + node.number("epsilon", 1e-5))
        y = (wide - mean) * factor + bias
        magnitude = (np.abs(wide) + np.abs(mean)) * np.abs(factor) + np.abs(bias)
        error = propagation.gamma(ROUNDINGS, x.dtype) * magnitude
        y, error = fused_activation.pass_on_error(node, y, error, x.dtype)
    floor = np.nan_to_num(error.astype(np.float64), nan=0.0, posinf=0.0)
    return Outputs((bounds.round_output("Y", y.astype(np.float64), x.dtype, bounds.ulp(2, SOURCES, x.dtype, floor)),))


def _train(node: Node) -> Truth:
    """With the batch's own mean and variance, the running ones and those of the batch as further outputs."""
    x = node.array("X")
    wide = x.astype(np.float64)
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    scale, bias, *running = (operand.astype(np.float64) for operand in _per_channel(node))
    moments = propagation.Moments.of(wide, axes, x.dtype)
    inverse = moments.inverse_deviation(node.number("epsilon", 1e-5), x.dtype)
    y, error = propagation.rescale(*propagation.normalize(wide, moments, inverse, x.dtype), scale, bias, x.dtype)
    momentum = node.number("momentum", 0.9)
    outputs = [bounds.round_output("Y", y, x.dtype, bounds.ulp(2, SOURCES, x.dtype, error))]
    batch = ((moments.mean, moments.mean_error), (moments.variance, moments.variance_error))
    found = [(old * momentum + new * (1 - momentum), error) for old, (new, error) in zip(running, batch, strict=True)]
    for name, (value, of_value) in zip(node.outputs[1:], (*found, *batch), strict=False):
        floor = (of_value + np.abs(value) * propagation.gamma(3, x.dtype)).reshape(-1)
        outputs.append(bounds.round_output(name, value.reshape(-1), x.dtype, bounds.ulp(2, SOURCES, x.dtype, floor)))
    return Outputs(tuple(output for output in outputs if output.name))


def lower(node: Node) -> Lowering | None:
    x = node.array("X")
    parts = _per_channel(node) if not _invalid(node) else []
    if (
        _is_training(node)
        or not parts
        or x.size == 0
        or x.ndim > MAX_RANK
        or any(part.dtype != x.dtype for part in parts)
    ):
        return None
    behind = (1,) * count_missing(x.ndim)
    x, scale, bias, mean, variance = (operand.reshape(operand.shape + behind) for operand in (x, *parts))
    desc = BatchNormalization(
        TensorDesc.of(x),
        TensorDesc.of(mean),
        TensorDesc.of(variance),
        TensorDesc.of(scale),
        TensorDesc.of(bias),
        TensorDesc.of(x),
        spatial=node.integer("spatial", 1) != 0,
        epsilon=node.number("epsilon", 1e-5),
        fused_activation=fused_activation.description(node),
    )
    return Lowering(desc, (x, mean, variance, scale, bias))


def _operator(name: str, domain: str = "") -> Operator[BatchSample]:
    return Operator(
        name,
        partial(samples, name),
        partial(bindings, name),
        partial(node, name),
        truth,
        lower,
        domain=domain,
    )


def _why_undefined(version: int, asked: frozenset[str]) -> str:
    """BatchNormalization-7 and 9 know two cases: all five outputs in training, Y alone outside of it."""
    if version >= 14 or len(asked) in (0, 4):
        return ""
    return f"BatchNormalization-{version} has Y alone, or all five outputs; a part of them is not defined"


def _why_undefined_in_training(version: int, asked: frozenset[str]) -> str:
    """BatchNormalization-14 and 15: the page has Y, running_mean and running_var in training."""
    return "" if len(asked) == 2 else f"BatchNormalization-{version} has all three outputs where training_mode is 1"


def _outside_training(_version: int, asked: frozenset[str]) -> str:
    return "BatchNormalization has no output but Y where training_mode is 0" if asked else ""


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "BatchNormalization": (
        OptionalIO(
            "defaults",
            outputs=("mean", "var", "saved_mean", "saved_var"),
            why_undefined=_why_undefined,
        ),
        OptionalIO(
            "defaults",
            {"training_mode": 1},
            name="training",
            outputs=("running_mean", "running_var"),
            why_undefined=_why_undefined_in_training,
        ),
        OptionalIO(
            "defaults",
            {"training_mode": 1},
            name="inference",
            taken_out="training_mode",
            outputs=("running_mean", "running_var"),
            why_undefined=_outside_training,
        ),
    ),
}

OPERATORS = declare(
    (_operator("BatchNormalization"), _operator(FUSED, fused_activation.DOMAIN)),
    optional_io=OPTIONAL_IO,
)
