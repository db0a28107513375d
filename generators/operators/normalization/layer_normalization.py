"""LayerNormalization-1 and 17, SimplifiedLayerNormalization-1, RMSNormalization-23, and com.microsoft's
SkipLayerNormalization-1 and SkipSimplifiedLayerNormalization-1 -> DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC.

Sources: the operator pages and ContribOperators.md. The elements from `axis` on are normalized to mean 0 (not by the
simplified operators) and mean square 1, then multiplied by Scale, then B is added. `stash_type` 1, the default, has
the first stage computed in float32 whatever the type of X (in ONNX; the operators of revision 1 are ONNX Runtime's,
where it only says of what type the statistics are); the Skip operators first add input, skip and bias, which
their fourth output gives. Mean and InvStdDev, for which the Skip operators say mean and inv_std_var, are of float32.
RMSNormalization gets no scale of another type than X: its schema gives Y the type of scale, its inference that of X.

Bounds: `propagation.Moments` and `propagation.normalize`: the error of mean and variance (gamma of the mean magnitude,
of the mean square) travels through the quotient, first order; in float32 where stash_type says so. The second stage
adds its own roundings (`propagation.rescale`), the Skip operators those of the sum.

How the DML EP lowers it: DmlOperatorLayerNormalization.cpp (rank kept, types cast to the wider one) and
DmlOperatorSkipLayerNormalization.cpp ([batch, sequence, hidden, 1], two additions before it). Nodes with more outputs
than the first are left to CPU by the former.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeVar

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, propagation
from epcheck.generators.bounds.propagation import Moments
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Interaction, Random
from epcheck.generators.declaration.optional_io import OptionalIO
from epcheck.generators.declaration.parameter_space import ANY_NUMBER, ParameterSpace, Parts, Values
from epcheck.generators.directml import TensorDesc
from epcheck.generators.directml.descriptions.normalization.normalization import MeanVarianceNormalization2
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families.axis_space import LENGTHS
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "LayerNormalization",
    "SimplifiedLayerNormalization",
    "RMSNormalization",
    "com.microsoft::SkipLayerNormalization",
    "com.microsoft::SkipSimplifiedLayerNormalization",
)

S = TypeVar("S", bound=Sample)
MICROSOFT = "com.microsoft"
SKIP = ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
CENTRED = frozenset({"LayerNormalization", "SkipLayerNormalization"})
SOURCES = (bounds.HIGHAM, bounds.OPENCL.add_remark("sqrt 3 ULP, division 2.5"))
FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True, kw_only=True)
class LayerSample(Sample):
    """axis, epsilon, stash_type: None leaves the attribute out. values: see `_data`.

    bias: B (LayerNormalization), beta (Skip) is there. scale_shape: where it is not that of the normalized elements.
    scale_type: where it is not that of X. more: optional outputs that are asked for.
    """

    shape: tuple[int, ...] = (2, 3, 8)
    axis: int | None = None
    epsilon: float | None = None
    stash_type: int | None = None
    bias: bool = True
    scale_shape: tuple[int, ...] | None = None
    scale_type: str = ""
    values: str = "plain"
    more: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SkipSample(Sample):
    """epsilon: None leaves it out. skip_shape: where it is not that of input. beta, bias: whether they are there.

    sum: the fourth output is asked for. values: see `_data`.
    """

    shape: tuple[int, ...] = (2, 3, 8)
    skip_shape: tuple[int, ...] | None = None
    epsilon: float | None = None
    beta: bool = True
    bias: bool = True
    sum: bool = False
    values: str = "plain"


def layer_samples() -> Iterator[LayerSample]:
    yield LayerSample(name="defaults", every_dtype=True)
    yield LayerSample(name="without_bias", bias=False, every_dtype=True)
    for axis in (0, 1, 2, -1, -2, -3):
        name = f"axis_{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield LayerSample(name=name, axis=axis, every_dtype=axis == 1)
        yield LayerSample(name=f"{name}_without_bias", axis=axis, bias=False)
    for name, epsilon in (("0", 0.0), ("small", 1e-12), ("large", 10.0)):
        yield LayerSample(name=f"epsilon_{name}", epsilon=epsilon, every_dtype=name == "large")
    yield LayerSample(name="stash_type_1", stash_type=1, every_dtype=True)
    for output in ("Mean", "InvStdDev", "Mean_InvStdDev"):
        yield LayerSample(name=f"with_{output.lower()}", axis=1, more=tuple(output.split("_")), every_dtype=True)
    for rank in range(1, 9):
        shape = (3, 2, 4, 2, 3, 2, 2, 3)[:rank]
        yield LayerSample(name=f"rank_{rank}", rank=rank, shape=shape)
        if rank > 3:
            yield LayerSample(name=f"rank_{rank}_inner_axis", rank=rank, shape=shape, axis=rank - 2, bias=rank % 2 == 0)
    yield LayerSample(name="size_1_axis", shape=(3, 1))
    yield LayerSample(name="size_1_elsewhere", shape=(1, 1, 8))
    yield LayerSample(name="size_0_elsewhere", shape=(0, 8))
    for length in (31, 33, 257, 1025, 4096):
        yield LayerSample(name=f"length_{length}", shape=(2, length))
    yield LayerSample(name="length_1089_two_axes", shape=(2, 33, 33), axis=1)
    yield LayerSample(name="scale_of_one_element", scale_shape=(1,), axis=-1)
    yield LayerSample(name="scale_of_the_last_axis", scale_shape=(8,), axis=1)
    yield LayerSample(name="scale_float32", scale_type="float32", every_dtype=True)
    for values in ("constant", "offset", "small", "large", "nan", "infinity"):
        yield LayerSample(name=values, shape=(3, 16), values=values, every_dtype=values in ("constant", "nan"))
        yield LayerSample(name=f"{values}_without_bias", shape=(3, 16), values=values, bias=False)
    yield expect_refusal(LayerSample(name="axis_at_rank", axis=3))
    yield expect_refusal(LayerSample(name="axis_below_rank", axis=-4))


def skip_samples() -> Iterator[SkipSample]:
    yield SkipSample(name="everything", every_dtype=True)
    for beta in (False, True):
        for bias in (False, True):
            inputs = "_".join(name for name, there in (("beta", beta), ("bias", bias)) if there) or "neither"
            yield SkipSample(name=f"with_{inputs}", beta=beta, bias=bias, shape=(2, 4, 6))
            yield SkipSample(name=f"with_{inputs}_and_sum", beta=beta, bias=bias, sum=True, every_dtype=True)
    yield SkipSample(name="rank_2", shape=(5, 8))
    yield SkipSample(name="rank_2_without_bias", shape=(5, 8), bias=False)
    yield SkipSample(name="skip_of_one_batch", skip_shape=(1, 3, 8))
    yield SkipSample(name="skip_rank_2", skip_shape=(3, 8))
    for name, epsilon in (("0", 0.0), ("1e_minus_5", 1e-5), ("large", 10.0)):
        yield SkipSample(name=f"epsilon_{name}", epsilon=epsilon, every_dtype=name == "large")
    yield SkipSample(name="size_1_everywhere", shape=(1, 1, 8))
    yield SkipSample(name="hidden_1", shape=(2, 3, 1), epsilon=1e-3)
    yield SkipSample(name="no_batch", shape=(0, 3, 8))
    for length in (33, 257, 768, 1025):
        yield SkipSample(name=f"hidden_{length}", shape=(2, 1, length))
    yield SkipSample(name="rows_300", shape=(3, 100, 4), epsilon=1e-5)
    for values in ("constant", "offset", "small", "large", "nan"):
        yield SkipSample(name=values, values=values, epsilon=1e-5, every_dtype=values in ("constant", "nan"))


def _select_used(
    samples: Iterable[S], bindings: Callable[[S, int, tuple[str, ...]], tuple[str, ...]], versions: Iterable[int]
) -> Iterator[S]:
    """The samples that apply to at least one revision of the operator."""
    places = tuple(product(versions, (("float32",), ("float16",))))
    return (sample for sample in samples if any(bindings(sample, *place) for place in places))


def layer_bindings(name: str, sample: LayerSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    definition = schema.schema(name, since_version)
    takes_bias = "B" in schema.input_names(name, since_version, "")
    own_scale_type = since_version == 1 and definition.inputs[1].type_str != "T"
    has_mean = "U" in schema.signature(name, since_version).single
    if (sample.more and not has_mean) or (sample.scale_type and not own_scale_type):
        return ()
    if sample.scale_type == dtypes[0] or (not takes_bias and not sample.bias):
        return ()
    if sample.scale_shape is not None and since_version == 1:
        return ()
    newest = since_version == schema.since_versions(name)[-1]
    return _drop_constants(sample, newest, dtypes)


def skip_bindings(name: str, sample: SkipSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if "beta" not in schema.input_names(name, since_version, MICROSOFT) and not sample.beta:
        return ()
    if sample.skip_shape is not None:
        return (graph.RUNTIME,) if dtypes[0] == "float32" else ()
    return _drop_constants(sample, True, dtypes)


def _drop_constants(sample: Sample, newest: bool, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    every = spread(sample, first=dtypes[0] == "float32", newest=newest)
    return tuple(binding for binding in every if binding != graph.CONSTANT)


def layer_node(name: str, sample: LayerSample, context: CaseContext) -> Node:
    """X of any rank from 1; Scale and B of the normalized shape, parameters. Y has X's shape and Scale's dtype."""
    rng, since_version = context.rng, context.since_version
    rank = len(sample.shape)
    axis = -1 if sample.axis is None else sample.axis
    inner = sample.shape[axis % rank :] if -rank <= axis < rank else sample.shape[-1:]
    of_scale = np.dtype(sample.scale_type or context.dtype)
    formals = schema.input_names(name, since_version, "")
    shape = inner if sample.scale_shape is None else sample.scale_shape
    inputs = [Operand(formals[0], _data(sample.values, sample.shape, context.dtype, rng))]
    inputs.append(Operand(formals[1], _scale(shape, of_scale, rng), parameter=True))
    if sample.bias and "B" in formals:
        inputs.append(Operand("B", rng.uniform(-2, 2, shape).astype(of_scale), parameter=True))
    settings = {key: getattr(sample, key) for key in ("axis", "epsilon", "stash_type")}
    attributes: dict[str, Attribute] = {key: value for key, value in settings.items() if value is not None}
    optional = [output if output in sample.more else "" for output in ("Mean", "InvStdDev")]
    outputs = ("Y", *optional) if sample.more else ("Y",)
    while not outputs[-1]:
        outputs = outputs[:-1]
    return Node(name, "", since_version, tuple(inputs), outputs, attributes)


def skip_node(name: str, sample: SkipSample, context: CaseContext) -> Node:
    """input [batch, sequence, hidden] or [tokens, hidden], skip broadcast to it; gamma, beta, bias [hidden]."""
    rng, dtype = context.rng, context.dtype
    hidden = sample.shape[-1:]
    skip_shape = sample.shape if sample.skip_shape is None else sample.skip_shape
    operands: dict[str, Operand | None] = {
        "input": Operand("input", _data(sample.values, sample.shape, dtype, rng)),
        "skip": Operand("skip", _data(sample.values, skip_shape, dtype, rng)),
        "gamma": Operand("gamma", _scale(hidden, dtype, rng), parameter=True),
        "beta": Operand("beta", rng.uniform(-2, 2, hidden).astype(dtype), parameter=True) if sample.beta else None,
        "bias": Operand("bias", _data(sample.values, hidden, dtype, rng), parameter=True) if sample.bias else None,
    }
    inputs = [operands[formal] for formal in schema.input_names(name, context.since_version, MICROSOFT)]
    while inputs[-1] is None:
        inputs.pop()
    outputs = ("output", "", "", "input_skip_bias_sum") if sample.sum else ("output",)
    attributes: dict[str, Attribute] = {} if sample.epsilon is None else {"epsilon": sample.epsilon}
    return Node(name, MICROSOFT, context.since_version, tuple(inputs), outputs, attributes)


def _scale(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    return np.asarray(rng.uniform(0.5, 2, shape) * rng.choice([-1.0, 1.0], shape)).astype(dtype)


def _data(values: str, shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Constants are 0.5, whose sums are exact: their variance is 0 however it is computed."""
    plain = np.asarray(rng.uniform(-3, 3, shape)).astype(dtype)
    match values:
        case "plain":
            return plain
        case "constant":
            return np.full(shape, 0.5, dtype)
        case "offset":
            return (plain + 20).astype(dtype)
        case "small":
            return (plain / 256).astype(dtype)
        case "large":
            return (plain * 32).astype(dtype)
        case "nan":
            if len(shape) > 1:
                plain[(0,) * len(shape)] = np.nan
            return plain
        case "infinity":
            plain[(0,) * len(shape)] = np.inf
            return plain
        case other:
            raise ValueError(f"unknown kind of data '{other}'")


def _axes(node: Node) -> tuple[int, ...] | str:
    rank = node.inputs[0].value.ndim if node.inputs[0] is not None else 0
    axis = node.integer("axis", -1)
    if not -rank <= axis < rank:
        return f"axis {axis} must be within [{-rank}, {rank - 1}] for rank {rank}"
    return tuple(range(axis % rank, rank))


@dataclass(frozen=True)
class _Stage:
    """The first stage: y and its error, and mean and inverse deviation with theirs."""

    y: Array
    error: Array
    moments: Moments
    inverse: Array
    relative: Array

    @classmethod
    def of(
        cls, x: Array, axes: tuple[int, ...], how: tuple[bool, float, np.dtype[Any]], x_error: Array | float = 0.0
    ) -> _Stage:
        """how: whether the mean is subtracted, epsilon, and the precision."""
        centred, epsilon, precision = how
        moments = Moments.of(x, axes, precision, x_error, centred)
        inverse, relative = moments.inverse_deviation(epsilon, precision)
        y, error = propagation.normalize(x, moments, (inverse, relative), precision, x_error)
        return cls(y, error, moments, inverse, relative)

    def statistics(self, names: tuple[str, str]) -> dict[str, tuple[Array, Array]]:
        """Mean and inverse deviation with their errors, by the names of the outputs that give them."""
        found = (self.moments.mean, self.moments.mean_error), (self.inverse, self.inverse * self.relative)
        return dict(zip(names, found, strict=True))


def _bound_output(name: str, exact: Array, error: Array, dtype: np.dtype[Any]) -> Output:
    floor = np.nan_to_num(np.broadcast_to(error, exact.shape).astype(np.float64), nan=0.0, posinf=0.0)
    return bounds.round_output(name, exact.astype(np.float64), dtype, bounds.ulp(2, SOURCES, dtype, floor))


def layer_truth(node: Node) -> Truth:
    """The page's two stages, in longdouble."""
    axes = _axes(node)
    if isinstance(axes, str):
        return Refusal(axes)
    x, scale = (operand.value for operand in node.inputs[:2] if operand is not None)
    bias = node.value("B")
    in_float32 = node.since_version > 1 and node.integer("stash_type", 1) == 1
    stash = FLOAT32 if in_float32 else x.dtype
    epsilon = node.number("epsilon", 1e-5)
    with np.errstate(all="ignore"):
        stage = _Stage.of(x.astype(np.longdouble), axes, (node.op_type in CENTRED, epsilon, stash))
        cast = stage.error + propagation.unit(x.dtype) * np.abs(stage.y)
        wide_bias = 0.0 if bias is None else bias.astype(np.longdouble)
        coarser = x.dtype if x.dtype.itemsize < scale.dtype.itemsize else scale.dtype
        y, error = propagation.rescale(stage.y, cast, scale.astype(np.longdouble), wide_bias, coarser)
        rest = stage.statistics(("Mean", "InvStdDev") if node.op_type in CENTRED else ("", "inv_std_var"))
        outputs = [_bound_output("Y", y, error, scale.dtype)]
        outputs += [_bound_output(name, *rest[name], FLOAT32) for name in node.results[1:]]
    return Outputs(tuple(outputs))


def skip_truth(node: Node) -> Truth:
    """The sum, normalized along the last axis, in longdouble."""
    x = node.array("input")
    terms = [node.value(name) for name in ("input", "skip", "bias")]
    wide = [term.astype(np.longdouble) for term in terms if term is not None]
    with np.errstate(all="ignore"):
        total, magnitude = sum(wide), sum(np.abs(term) for term in wide)
        error = propagation.gamma(len(wide) - 1, x.dtype) * np.asarray(magnitude)
        how = (node.op_type in CENTRED, node.number("epsilon", 1e-12), x.dtype)
        stage = _Stage.of(np.asarray(total), (x.ndim - 1,), how, error)
        beta = node.value("beta")
        wide_beta = 0.0 if beta is None else beta.astype(np.longdouble)
        gamma = node.array("gamma").astype(np.longdouble)
        y, y_error = propagation.rescale(stage.y, stage.error, gamma, wide_beta, x.dtype)
        outputs = [_bound_output("output", y, y_error, x.dtype)]
        rest = stage.statistics(("mean", "inv_std_var"))
        outputs += [_bound_output(name, *rest[name], FLOAT32) for name in node.results if name in rest]
        if "input_skip_bias_sum" in node.results:
            outputs.append(_bound_output("input_skip_bias_sum", np.asarray(total), error, x.dtype))
    return Outputs(tuple(outputs))


def layer_lower(node: Node) -> Lowering | None:
    """One description with the types cast to the wider one; None for further outputs, which stay with CPU."""
    axes = _axes(node)
    operands = [operand.value for operand in node.inputs if operand is not None]
    x = operands[0]
    if isinstance(axes, str) or x.size == 0 or x.ndim > MAX_RANK or len(node.outputs) > 1:
        return None
    common = np.result_type(*operands)
    x = x.astype(common)
    padded = [
        operand.astype(common).reshape((1,) * (x.ndim - operand.ndim) + operand.shape) for operand in operands[1:]
    ]
    return _make_lowering(node, x, padded, (axes, node.number("epsilon", 1e-5)))


def skip_lower(node: Node) -> Lowering | None:
    """The normalization of the sum, as [batch, sequence, hidden, 1]; None where the sum is an output, too."""
    x = node.array("input")
    if x.size == 0 or len(node.outputs) > 1:
        return None
    total = x
    for name in ("skip", "bias"):
        term = node.value(name)
        total = total if term is None else np.asarray(total + term)
    shape = (*x.shape[:-1], *(1,) * (3 - x.ndim), x.shape[-1], 1)
    parts = [part for part in (node.value("gamma"), node.value("beta")) if part is not None]
    parts = [part.reshape(1, 1, -1, 1) for part in parts]
    return _make_lowering(node, total.reshape(shape), parts, ((2, 3), node.number("epsilon", 1e-12)))


def _make_lowering(node: Node, x: Array, parts: list[Array], how: tuple[tuple[int, ...], float]) -> Lowering:
    axes, epsilon = how
    tensors = [TensorDesc.of(part) for part in parts]
    desc = MeanVarianceNormalization2(
        TensorDesc.of(x),
        tensors[0],
        tensors[1] if len(tensors) > 1 else None,
        TensorDesc.of(x),
        axes,
        use_mean=node.op_type in CENTRED,
        use_variance=True,
        epsilon=epsilon,
    )
    return Lowering(desc, (x, parts[0], parts[1] if len(parts) > 1 else None))


def _layer(name: str) -> Operator[LayerSample]:
    bindings = partial(layer_bindings, name)

    def samples() -> Iterator[LayerSample]:
        return _select_used(layer_samples(), bindings, schema.since_versions(name))

    return Operator(name, samples, bindings, partial(layer_node, name), layer_truth, layer_lower)


def _skip(name: str) -> Operator[SkipSample]:
    bindings = partial(skip_bindings, name)

    def samples() -> Iterator[SkipSample]:
        return _select_used(skip_samples(), bindings, schema.since_versions(name, MICROSOFT))

    return Operator(
        name,
        samples,
        bindings,
        partial(skip_node, name),
        skip_truth,
        skip_lower,
        domain=MICROSOFT,
    )


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "LayerNormalization": (OptionalIO("defaults", outputs=("Mean", "InvStdDev"), versions=(1,)),),
    "SimplifiedLayerNormalization": (OptionalIO("defaults", outputs=("inv_std_var",)),),
    "com.microsoft::SkipLayerNormalization": (
        OptionalIO("everything", outputs=("mean", "inv_std_var", "input_skip_bias_sum")),
    ),
    "com.microsoft::SkipSimplifiedLayerNormalization": (
        OptionalIO(
            "everything",
            outputs=("mean", "inv_std_var", "input_skip_bias_sum"),
            undefined={"mean": "the page does not say what the mean of an operator is that takes none away"},
        ),
    ),
}


def _make_parts(values: Values, rng: np.random.Generator) -> Parts:
    shape = (values["outer"], 3, values["length"])
    scale = rng.uniform(0.5, 2, shape[values["axis"] :]).astype(np.float32)
    bias = rng.uniform(-1, 1, scale.shape).astype(np.float32) if values["bias"] else None
    data = rng.uniform(-2, 2, shape).astype(np.float32)
    inputs = (data, scale, bias) if values["bias"] else (data, scale)
    outputs = (True, values["mean"], values["deviation"])
    return Parts(inputs, {"axis": values["axis"]}, (1, 2) if values["bias"] else (1,), outputs)


PARAMETER_SPACES = {
    "LayerNormalization": ParameterSpace(
        {"outer": 2, "length": 5},
        _make_parts,
        {"axis": (-1, 1, -2), "bias": (True, False), "mean": (False, True), "deviation": (False, True)},
        {"length": LENGTHS},
        ("outer",),
        extremes=("inf", "nan", *ANY_NUMBER),
    )
}

OPERATORS = declare(
    (
        *map(_layer, ("LayerNormalization", "SimplifiedLayerNormalization", "RMSNormalization")),
        *map(_skip, SKIP),
    ),
    interactions={
        "LayerNormalization": (Interaction(ABOVE_GROUPS, (Random((DISPATCHED, 4)), Random((4,))), outputs=1),),
    },
    optional_io=OPTIONAL_IO,
    parameter_spaces=PARAMETER_SPACES,
    magnitudes={
        "LayerNormalization": ("squares",),
        "SimplifiedLayerNormalization": ("squares",),
        "RMSNormalization": ("squares",),
        "com.microsoft::SkipLayerNormalization": ("squares",),
        "com.microsoft::SkipSimplifiedLayerNormalization": ("squares",),
    },
)
