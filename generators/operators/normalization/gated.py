"""Gates and normalizations of decoders with linear attention and hyper-connections, of com.microsoft: ScaledSiLU,
GatedAdd, GatedRMSNorm, BranchwiseRMSNorm, LinearAttentionGate, HyperConnectionPreMix, HyperConnectionPostMix and
EngramGate.

Source: ONNX Runtime's ContribOperators.md, of release 1.32, which has the formula of each. GatedAdd's `gate_weight` is
for bfloat16 alone and has no case. Where the page names no default of an attribute, every node has it. Bounds: running
error analysis (`estimate`), in the precision of T where the page rounds to T in between, in float32 elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from epcheck.generators import graph
from epcheck.generators.bounds import estimate, propagation
from epcheck.generators.bounds.estimate import Estimate, Precision
from epcheck.generators.bounds.propagation import Moments
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare, spread
from epcheck.generators.oracle_math.activations import sigmoid
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "com.microsoft::ScaledSiLU",
    "com.microsoft::GatedAdd",
    "com.microsoft::GatedRMSNorm",
    "com.microsoft::BranchwiseRMSNorm",
    "com.microsoft::LinearAttentionGate",
    "com.microsoft::HyperConnectionPreMix",
    "com.microsoft::HyperConnectionPostMix",
    "com.microsoft::EngramGate",
)

MICROSOFT = "com.microsoft"
FLOAT32 = np.dtype(np.float32)
SIGMOID_ULPS, SOFTPLUS_ULPS = 8.0, 12.0
"""exp has 3 ULP, log 3, a division 2.5, a sum is rounded (OpenCL C, full profile); in a shader exp has 2 |x| more."""

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
Attributes = Mapping[str, Attribute]


@dataclass(frozen=True, kw_only=True)
class GatedSample(Sample):
    """shapes: of the inputs that are there, by name. size: of their elements. outputs: how many are asked for."""

    shapes: Shapes = field(default_factory=dict)
    attributes: Attributes = field(default_factory=dict)
    size: float = 2.0
    outputs: int = 1


@dataclass(frozen=True)
class Family:
    """An operator. inputs, outputs: in the order of the page. second: the inputs of the second type constraint, and its
    name; where that is empty they are of float32. parameters: those that exporters write as initializers."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    samples: Callable[[], Iterator[GatedSample]]
    evaluate: Callable[[Node, Precision], list[Estimate] | str]
    second: tuple[str, ...] = ()
    constraint: str = ""
    parameters: tuple[str, ...] = ()

    def node(self, sample: GatedSample, context: CaseContext) -> Node:
        """Each input of T, those of `second` of the other type."""
        other = context.dtypes[1] if self.constraint else FLOAT32
        operands: list[Operand | None] = []
        for name in self.inputs:
            shape = sample.shapes.get(name)
            values = None if shape is None else sample.size * context.rng.uniform(-1, 1, shape)
            dtype = other if name in self.second else context.dtype
            operands.append(
                None if values is None else Operand(name, values.astype(dtype), parameter=name in self.parameters)
            )
        while operands[-1] is None:
            operands.pop()
        names = self.outputs[: sample.outputs]
        return Node(self.name, MICROSOFT, context.since_version, tuple(operands), names, dict(sample.attributes))

    def truth(self, node: Node) -> Truth:
        """The formula of the page, each step with its error."""
        first = node.inputs[0]
        assert first is not None
        found = self.evaluate(node, Precision(first.value.dtype))
        if isinstance(found, str):
            return Refusal(found)
        precision = Precision(first.value.dtype)
        made = zip(node.results, found, strict=False)
        return Outputs(tuple(precision.output(name, result) for name, result in made))


def bindings(family: Family, sample: GatedSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Without parameters there is nothing that is an initializer in one way and an input in another."""
    if family.constraint and dtypes[0] != dtypes[1] and not any(sample.shapes.get(name) for name in family.second):
        return ()  # nothing has the second type
    is_scalar = not any(sample.shapes.values())
    ways = spread(sample, first=set(dtypes) == {"float32"}, newest=True, scalar=is_scalar)
    has_parameter = any(sample.shapes.get(name) is not None for name in family.parameters)
    return ways if has_parameter else tuple(way for way in ways if way != graph.INITIALIZER)


SINGLE = Precision(FLOAT32)


def read(node: Node, name: str) -> Estimate:
    return estimate.exact(node.array(name))


def apply_sigmoid(x: Estimate, precision: Precision) -> Estimate:
    """1 / (1 + exp(-x)), whose slope is a quarter at most; near 1 the error of exp counts for nothing."""
    value = sigmoid(x.value)
    ulps = SIGMOID_ULPS + 2.5 * np.abs(x.value) * (1 - value)
    return Estimate(value, 0.25 * x.error + 2 * ulps * precision.unit * value + precision.tiny)


def apply_softplus(x: Estimate) -> Estimate:
    """log(1 + exp(x)), in float32; without log1p it loses what is below the precision of 1."""
    value = np.logaddexp(0, x.value)
    return Estimate(value, x.error + 2 * SINGLE.unit * (SOFTPLUS_ULPS * value + 1) + SINGLE.tiny)


def broadcast(x: Estimate, *shape: int) -> Estimate:
    return Estimate(np.broadcast_to(x.value, shape), np.broadcast_to(x.error, shape))


def normalize(x: Estimate, epsilon: float) -> Estimate:
    """x / sqrt(mean(x^2) + epsilon) along the last axis, in float32."""
    axes = (x.value.ndim - 1,)
    moments = Moments.of(x.value, axes, FLOAT32, x.error, centred=False)
    inverse = moments.inverse_deviation(epsilon, FLOAT32)
    return Estimate(*propagation.normalize(x.value, moments, inverse, FLOAT32, x.error))


def list_scaled() -> Iterator[GatedSample]:
    for name, alpha in (("1", 1.0), ("0", 0.0), ("minus_2", -2.0), ("1_702", 1.702)):
        yield GatedSample(name=f"alpha_{name}", shapes={"X": (3, 7)}, attributes={"alpha": alpha}, every_dtype=True)
    yield GatedSample(name="scale", shapes={"X": (3, 7), "scale": ()}, every_dtype=True)
    yield GatedSample(name="scale_before_alpha", shapes={"X": (3, 7), "scale": ()}, attributes={"alpha": 5.0})
    yield GatedSample(name="large", shapes={"X": (257,)}, attributes={"alpha": 1.0}, size=200.0)
    for rank in (0, 1, 3, 4, 5, 8):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield GatedSample(name=f"rank_{rank}", rank=rank, shapes={"X": shape}, attributes={"alpha": 0.5})
    for length in (0, 1025, 65537):
        yield GatedSample(name=f"length_{length}", shapes={"X": (length,)}, attributes={"alpha": 0.5})


def scale_silu(node: Node, precision: Precision) -> list[Estimate]:
    scale = node.value("scale")
    factor = estimate.exact(np.array(node.number("alpha", 1.0)) if scale is None else scale)
    scaled = precision.multiply(factor, read(node, "X"))
    return [precision.multiply(scaled, apply_sigmoid(scaled, precision))]


def list_added() -> Iterator[GatedSample]:
    for rank in (2, 3, 4, 5, 8):
        shape = (*(2 + axis % 2 for axis in range(rank - 1)), 6)
        shapes = {"X": shape, "Y": shape, "gate": (*shape[:-1], 1)}
        yield GatedSample(name=f"rank_{rank}", rank=rank, shapes=shapes, every_dtype=rank == 3)
    for columns in (1, 17, 257, 1025):
        shapes = {"X": (3, columns), "Y": (3, columns), "gate": (3, 1)}
        yield GatedSample(name=f"columns_{columns}", shapes=shapes)
    yield GatedSample(name="rows_1025", shapes={"X": (1025, 3), "Y": (1025, 3), "gate": (1025, 1)})
    yield GatedSample(name="no_rows", shapes={"X": (0, 3), "Y": (0, 3), "gate": (0, 1)})
    yield expect_refusal(GatedSample(name="gate_of_one_row", shapes={"X": (3, 4), "Y": (3, 4), "gate": (1, 1)}))
    yield expect_refusal(GatedSample(name="y_of_other_columns", shapes={"X": (3, 4), "Y": (3, 5), "gate": (3, 1)}))


def add_gated(node: Node, precision: Precision) -> list[Estimate] | str:
    x, y, gate = (read(node, name) for name in ("X", "Y", "gate"))
    if y.value.shape != x.value.shape or gate.value.shape != (*x.value.shape[:-1], 1):
        return f"Y must have the shape of X {x.value.shape} and gate that with a last dimension of 1"
    return [precision.add(x, precision.multiply(y, broadcast(gate, *x.value.shape)))]


def list_gated_norms() -> Iterator[GatedSample]:
    for activation in ("silu", "swish", "sigmoid"):
        base: Attributes = {"activation": activation, "epsilon": 1e-5}
        shapes = {"X": (2, 3, 8), "scale": (8,), "gate": (2, 3, 8)}
        yield GatedSample(name=activation, shapes=shapes, attributes=base, every_dtype=True)
        heads = {"X": (2, 3, 24), "scale": (8,), "gate": (2, 3, 24)}
        yield GatedSample(name=f"{activation}_heads", shapes=heads, attributes=base, every_dtype=activation == "silu")
        yield GatedSample(name=f"{activation}_epsilon_large", shapes=shapes, attributes={**base, "epsilon": 3.0})
        yield GatedSample(name=f"{activation}_large", shapes=shapes, attributes=base, size=100.0)
    usual: Attributes = {"activation": "silu", "epsilon": 1e-6}
    for rank in (1, 2, 4, 5):
        shape = (*(2 + axis % 2 for axis in range(rank - 1)), 12)
        shapes = {"X": shape, "scale": (4,), "gate": shape}
        yield GatedSample(name=f"rank_{rank}", rank=rank, shapes=shapes, attributes=usual)
    for length in (1, 17, 257, 1025):
        shapes = {"X": (3, length), "scale": (length,), "gate": (3, length)}
        yield GatedSample(name=f"length_{length}", shapes=shapes, attributes=usual)
    yield GatedSample(name="rows_1025", shapes={"X": (1025, 4), "scale": (4,), "gate": (1025, 4)}, attributes=usual)
    odd = {"X": (2, 10), "scale": (4,), "gate": (2, 10)}
    yield expect_refusal(GatedSample(name="scale_does_not_divide", shapes=odd, attributes=usual))
    other = {"X": (2, 8), "scale": (4,), "gate": (2, 4)}
    yield expect_refusal(GatedSample(name="gate_of_another_shape", shapes=other, attributes=usual))


def normalize_gated(node: Node, _precision: Precision) -> list[Estimate] | str:
    x, scale, gate = (read(node, name) for name in ("X", "scale", "gate"))
    shape, length = x.value.shape, scale.value.size
    if gate.value.shape != shape or not length or shape[-1] % length:
        return f"gate must have the shape of X {shape}, whose last dimension {length} elements of scale must divide"
    grouped = x.reshape(*shape[:-1], shape[-1] // length, length)
    scaled = SINGLE.multiply(normalize(grouped, node.number("epsilon", 1e-5)), broadcast(scale, *grouped.value.shape))
    opened = apply_sigmoid(gate, SINGLE)
    if node.text("activation", "silu") != "sigmoid":
        opened = SINGLE.multiply(gate, opened)
    return [SINGLE.multiply(scaled.reshape(*shape), opened, roundings=2)]


def list_branches() -> Iterator[GatedSample]:
    epsilon: Attributes = {"epsilon": 1e-5}
    flat: Attributes = {**epsilon, "num_branches": 3}
    scales: Mapping[str, Shape | None] = {"omitted": None, "whole": (24,), "matrix": (3, 8), "shared": (8,)}
    for name, scale in scales.items():
        more = {} if scale is None else {"scale": scale}
        every = name in ("matrix", "omitted")
        yield GatedSample(name=f"grouped_scale_{name}", shapes={"X": (2, 5, 3, 8), **more}, attributes=epsilon,
                          every_dtype=every)  # fmt: skip
        yield GatedSample(name=f"flat_scale_{name}", shapes={"X": (2, 5, 24), **more}, attributes=flat,
                          every_dtype=every)  # fmt: skip
    yield GatedSample(name="epsilon_large", shapes={"X": (4, 3, 8)}, attributes={"epsilon": 2.0})
    yield GatedSample(name="num_branches_0", shapes={"X": (4, 3, 8)}, attributes={**epsilon, "num_branches": 0})
    yield GatedSample(name="one_branch", shapes={"X": (4, 1, 8), "scale": (1, 8)}, attributes=epsilon)
    for length in (1, 17, 257, 1025):
        yield GatedSample(name=f"length_{length}", shapes={"X": (2, 3, length), "scale": (length,)}, attributes=epsilon)
    yield GatedSample(name="rows_1025", shapes={"X": (1025, 2, 4)}, attributes=epsilon)
    yield expect_refusal(GatedSample(name="branches_do_not_divide", shapes={"X": (4, 10)}, attributes=flat))
    yield expect_refusal(
        GatedSample(name="scale_of_wrong_size", shapes={"X": (4, 3, 8), "scale": (7,)}, attributes=epsilon)
    )


def normalize_branches(node: Node, _precision: Precision) -> list[Estimate] | str:
    x, branches, scale = read(node, "X"), node.integer("num_branches", 0), node.value("scale")
    shape = x.value.shape
    if branches:
        if shape[-1] % branches:
            return f"{branches} branches do not divide the last dimension {shape[-1]}"
        x = x.reshape(*shape[:-1], branches, shape[-1] // branches)
    count, length = x.value.shape[-2:]
    result = normalize(x, node.number("epsilon", 1e-5))
    if scale is not None:
        if scale.shape not in ((count * length,), (count, length), (length,)):
            return f"scale must have the shape ({count * length},), ({count}, {length}) or ({length},)"
        factor = estimate.exact(scale if scale.size == length else scale.reshape(count, length))
        result = SINGLE.multiply(result, broadcast(factor, *x.value.shape))
    return [result.reshape(*shape)]


def list_gates() -> Iterator[GatedSample]:
    for name, shape in (("usual", (2, 3, 8)), ("one_token", (1, 1, 5)), ("heads_1", (2, 3, 1)), ("long", (1, 1025, 4)),
                        ("heads_257", (1, 2, 257))):  # fmt: skip
        shapes = {"a": shape, "dt_bias": shape[-1:], "decay_scale": shape[-1:]}
        yield GatedSample(name=name, shapes=shapes, every_dtype=name == "usual")
        yield GatedSample(name=f"{name}_beta", shapes={**shapes, "b": shape}, outputs=2, every_dtype=name == "usual")
        yield GatedSample(name=f"{name}_large", shapes={**shapes, "b": shape}, outputs=2, size=50.0)
    shapes = {"a": (2, 3, 8), "dt_bias": (7,), "decay_scale": (8,)}
    yield expect_refusal(GatedSample(name="bias_of_wrong_length", shapes=shapes))


def gate_decay(node: Node, _precision: Precision) -> list[Estimate] | str:
    a, bias, scale = (read(node, name) for name in ("a", "dt_bias", "decay_scale"))
    shape = a.value.shape
    if bias.value.shape != shape[-1:] or scale.value.shape != shape[-1:]:
        return f"dt_bias and decay_scale must have one element for each of {shape[-1]} heads"
    total = SINGLE.add(a, broadcast(bias, *shape))
    decay = SINGLE.multiply(apply_softplus(total), broadcast(scale, *shape))
    b = node.value("b")
    return [decay] if b is None else [decay, apply_sigmoid(estimate.exact(b), SINGLE)]


def list_mixed(streams: str) -> Iterator[tuple[str, Shape, Shapes, Attributes]]:
    """(name, gates, shapes, attributes) of four branches of six features, grouped and flattened."""
    for label, gates in (("branches", (2, 3, 4)), ("column", (2, 3, 4, 1)), ("features", (2, 3, 4, 6))):
        yield f"grouped_{label}", gates, {streams: (2, 3, 4, 6)}, {}
        yield f"flat_{label}", gates, {streams: (2, 3, 24)}, {"num_branches": 4}


def list_pre_mixed() -> Iterator[GatedSample]:
    for name, gates, shapes, attributes in list_mixed("streams"):
        scaled: Attributes = {"reduction_scale": 1.0, **attributes}
        every = name == "flat_features"
        yield GatedSample(name=name, shapes={**shapes, "pre_mix": gates}, attributes=scaled, every_dtype=every)
    flat: Attributes = {"reduction_scale": 0.5, "num_branches": 4}
    yield GatedSample(name="flat_features_flat", shapes={"streams": (2, 3, 24), "pre_mix": (2, 3, 24)}, attributes=flat)
    yield GatedSample(name="scale_quarter", shapes={"streams": (5, 4, 6), "pre_mix": (5, 4)},
                      attributes={"reduction_scale": 0.25}, every_dtype=True)  # fmt: skip
    for length in (1, 257, 1025):
        shapes = {"streams": (3, 2, length), "pre_mix": (3, 2)}
        yield GatedSample(name=f"length_{length}", shapes=shapes, attributes={"reduction_scale": 1.0})


def _group(node: Node, name: str) -> Estimate:
    """The streams as [..., C, H]."""
    x, branches = read(node, name), node.integer("num_branches", 0)
    shape = x.value.shape
    return x.reshape(*shape[:-1], branches, shape[-1] // branches) if branches else x


def _spread_gates(gates: Estimate, shape: Shape) -> Estimate:
    """Gates of any of the page's shapes as [..., C, H]."""
    if gates.value.ndim == len(shape):
        return broadcast(gates, *shape)
    if gates.value.shape == shape[:-1]:
        return broadcast(gates.reshape(*shape[:-1], 1), *shape)
    return gates.reshape(*shape)


def mix_before(node: Node, _precision: Precision) -> list[Estimate]:
    streams = _group(node, "streams")
    total = SINGLE.sum(SINGLE.multiply(streams, _spread_gates(read(node, "pre_mix"), streams.value.shape)), -2)
    return [SINGLE.multiply(total, estimate.exact(np.array(node.number("reduction_scale", 1.0))))]


def list_post_mixed() -> Iterator[GatedSample]:
    for name, gates, shapes, attributes in list_mixed("streams"):
        whole = {**shapes, "block_output": (2, 3, 6), "post_mix": gates}
        yield GatedSample(name=name, shapes=whole, attributes=attributes)
        yield GatedSample(name=f"{name}_mixed", shapes={**whole, "stream_mix": (2, 3, 4, 4)}, attributes=attributes,
                          every_dtype=name in ("flat_branches", "grouped_features"))  # fmt: skip
    for length in (1, 257, 1025):
        shapes = {"streams": (3, 2, length), "block_output": (3, length), "post_mix": (3, 2), "stream_mix": (3, 2, 2)}
        yield GatedSample(name=f"length_{length}", shapes=shapes)


def mix_after(node: Node, _precision: Precision) -> list[Estimate]:
    streams, mix = _group(node, "streams"), node.value("stream_mix")
    shape = streams.value.shape
    added = read(node, "block_output").reshape(*shape[:-2], 1, shape[-1])
    injected = SINGLE.multiply(_spread_gates(read(node, "post_mix"), shape), broadcast(added, *shape))
    kept = streams
    if mix is not None:
        # Y[k] = sum_c mix[c, k] * streams[c]: the matrix is transposed.
        kept = SINGLE.dot(estimate.exact(np.swapaxes(mix, -1, -2)), streams)
    return [SINGLE.add(kept, injected).reshape(*node.array("streams").shape)]


def list_engrams() -> Iterator[GatedSample]:
    def shapes(batch: int, tokens: int, branches: int, length: int, conv: bool) -> Shapes:
        whole, scale = (batch, tokens, branches, length), (branches, length)
        found: dict[str, Shape] = {"key": whole, "query": whole, "value": (batch, tokens, length)}
        found |= {"key_norm_scale": scale, "query_norm_scale": scale}
        return {**found, "conv_norm_scale": scale} if conv else found

    yield GatedSample(name="usual", shapes=shapes(2, 3, 4, 16, False), every_dtype=True)
    yield GatedSample(name="normed", shapes=shapes(2, 3, 4, 16, True), outputs=2, every_dtype=True)
    yield GatedSample(name="normed_not_asked_for", shapes=shapes(2, 3, 4, 16, True))
    yield GatedSample(name="epsilon", shapes=shapes(2, 3, 2, 16, True), outputs=2, attributes={"epsilon": 0.5})
    yield GatedSample(name="one_branch", shapes=shapes(1, 5, 1, 16, True), outputs=2)
    for length in (1, 17, 257, 1024):
        yield GatedSample(name=f"length_{length}", shapes=shapes(1, 2, 2, length, True), outputs=2)
    yield GatedSample(name="tokens_257", shapes=shapes(1, 257, 2, 8, False))


def gate_engram(node: Node, _precision: Precision) -> list[Estimate]:
    epsilon, shape = node.number("epsilon", 1e-5), node.array("key").shape
    sides = [
        SINGLE.multiply(normalize(read(node, name), epsilon), broadcast(read(node, f"{name}_norm_scale"), *shape))
        for name in ("key", "query")
    ]
    dot = SINGLE.sum(SINGLE.multiply(sides[0], sides[1]), -1)
    dot = SINGLE.multiply(dot, estimate.exact(np.array(shape[-1] ** -0.5)), roundings=3)
    size = np.abs(dot.value)
    root, low, high = (np.sqrt(np.maximum(s, 1e-6)) for s in (size, size - dot.error, size + dot.error))
    # Where the sign is not certain, the root may be on the other side of 0.
    error = np.where(size <= dot.error, 2 * high, high - low) + 4 * SINGLE.unit * root
    gate = apply_sigmoid(Estimate(np.sign(dot.value) * root, error), SINGLE)
    value = read(node, "value").reshape(*shape[:2], 1, shape[-1])
    gated = SINGLE.multiply(broadcast(gate.reshape(*shape[:-1], 1), *shape), broadcast(value, *shape))
    if len(node.results) < 2:
        return [gated]
    stored = Estimate(gated.value, gated.error + np.abs(gated.value) * Precision(node.array("key").dtype).unit)
    scale = broadcast(read(node, "conv_norm_scale"), *shape)
    return [gated, SINGLE.multiply(normalize(stored, epsilon), scale)]


ENGRAM = ("key", "query", "value", "key_norm_scale", "query_norm_scale", "conv_norm_scale")

FAMILIES = (
    Family("ScaledSiLU", ("X", "scale"), ("Y",), list_scaled, scale_silu, ("scale",), "M", ("scale",)),
    Family("GatedAdd", ("X", "Y", "gate"), ("output",), list_added, add_gated),
    Family("GatedRMSNorm", ("X", "scale", "gate"), ("Y",), list_gated_norms, normalize_gated, parameters=("scale",)),
    Family("BranchwiseRMSNorm", ("X", "scale"), ("Y",), list_branches, normalize_branches, ("scale",), "M", ("scale",)),
    Family("LinearAttentionGate", ("a", "dt_bias", "decay_scale", "b"), ("decay", "beta"), list_gates, gate_decay,
           ("dt_bias", "decay_scale"), parameters=("dt_bias", "decay_scale")),
    Family("HyperConnectionPreMix", ("streams", "pre_mix"), ("output",), list_pre_mixed, mix_before, ("pre_mix",), "M"),
    Family("HyperConnectionPostMix", ("streams", "block_output", "post_mix", "stream_mix"), ("output",),
           list_post_mixed, mix_after, ("post_mix", "stream_mix"), "M"),
    Family("EngramGate", ENGRAM, ("output", "gated_value_normed"), list_engrams, gate_engram, parameters=ENGRAM[3:]),
)  # fmt: skip

OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::HyperConnectionPostMix": (OptionalIO("grouped_column_mixed", inputs=each_alone("stream_mix")),),
    "com.microsoft::BranchwiseRMSNorm": (OptionalIO("grouped_scale_matrix", inputs=each_alone("scale")),),
}


def _operator(family: Family) -> Operator[GatedSample]:
    varied = ("T", family.constraint) if family.constraint else ("T",)
    return Operator(
        family.name, family.samples, partial(bindings, family), family.node, family.truth, NO_KERNEL, varied, MICROSOFT
    )


OPERATORS = declare(tuple(map(_operator, FAMILIES)), optional_io=OPTIONAL_IO)
