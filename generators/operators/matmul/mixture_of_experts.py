"""com.microsoft::MoE and ::QMoE: each token goes through the two layers of the experts that its router rates highest.

Source: ONNX Runtime's ContribOperators.md, of release 1.32. The page calls the second input probabilities; the papers
that it names, and ONNX Runtime's own reference in test_parity_moe.py, take the softmax of it over all experts, and with
`normalize_routing_weights` divide those of the chosen ones by their sum. The result is the sum of the chosen experts'
second layers, each times its weight. Rates differ by a quarter at least, so that no rounding changes the choice.

The page leaves open, so that there is no case: which form of Gelu `gelu` is, what `use_sparse_mixer` does, equal rates,
and the layout of weights where `weights_prepacked` is not 0. float8 and float4 weights are for CUDA and have no case.
Experts of 8 bits in blocks may be multiplied with activations of 8 bits (`accuracy_level`): the bound has that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import estimate
from epcheck.generators.bounds.estimate import Estimate, Precision
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, declare, spread
from epcheck.generators.oracle_math.activations import sigmoid
from epcheck.generators.oracle_math.packing import pack_levels, unpack_levels
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = ("com.microsoft::MoE", "com.microsoft::QMoE")

MICROSOFT = "com.microsoft"

SIGMOID_ULPS = 8.0
"""Of sigmoid: exp has 3 ULP, a division 2.5, the sum is rounded (OpenCL C, full profile)."""

SWIGLU: Mapping[str, Attribute] = {
    "activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ExpertsSample(Sample):
    """tokens: the dimensions before the last of input. biases: of the first and second layers. third: fc3 is an input.

    bits, block, zero_points: of quantised weights; block 0 has a scale for each row. router_weights: weights are those
    of a further input. rate: how much further apart the rates are. normalized: the weights of the chosen experts are
    divided by their sum. positive: inputs and weights are above 0, so that no sum cancels. attributes: beside `k`,
    that and the quantisation's. changes: other shapes of inputs.
    """

    tokens: tuple[int, ...] = (6,)
    hidden: int = 32
    inner: int = 48
    experts: int = 4
    k: int | None = 2
    biases: bool = True
    third: bool = False
    bits: int = 4
    block: int = 0
    zero_points: bool = False
    router_weights: bool = False
    rate: float = 1.0
    normalized: bool = True
    positive: bool = False
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    changes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def samples(quantised: bool) -> Iterator[ExpertsSample]:
    for kind in ("relu", "silu", "identity"):
        yield ExpertsSample(name=kind, attributes={"activation_type": kind}, every_dtype=kind == "silu")
    yield ExpertsSample(name="defaults", k=None, normalized=False)
    yield ExpertsSample(name="swiglu", attributes=SWIGLU, every_dtype=True)
    yield ExpertsSample(name="swiglu_limit", attributes={**SWIGLU, "swiglu_limit": 0.75}, every_dtype=True)
    yield ExpertsSample(name="swiglu_limit_below_most", attributes={**SWIGLU, "swiglu_limit": 0.0625}, every_dtype=True)
    steep: Mapping[str, Attribute] = {**SWIGLU, "activation_alpha": -0.5, "activation_beta": 3.0}
    yield ExpertsSample(name="swiglu_alpha_beta", attributes=steep)
    yield ExpertsSample(name="swiglu_halves", attributes={**SWIGLU, "swiglu_fusion": 2})
    yield ExpertsSample(name="swiglu_apart", third=True, attributes={**SWIGLU, "swiglu_fusion": 0})
    yield from _list_routed()
    for label, sizes in (("hidden_64", (64, 32)), ("inner_16", (32, 16)), ("wide", (128, 160))):
        yield ExpertsSample(name=label, hidden=sizes[0], inner=sizes[1])
    if quantised:
        yield from _list_quantised()
    yield from map(expect_refusal, _list_refused(quantised))


def _list_routed() -> Iterator[ExpertsSample]:
    """Tokens and experts."""
    for k in (1, 2, 3, 4):
        yield ExpertsSample(name=f"k_{k}_normalized", k=k, every_dtype=k == 2)
        yield ExpertsSample(name=f"k_{k}_not_normalized", k=k, normalized=False, every_dtype=k == 2)
    yield ExpertsSample(name="rates_far_apart", rate=30.0, normalized=False)
    yield ExpertsSample(name="rates_far_apart_normalized", rate=30.0)
    yield ExpertsSample(name="experts_1", experts=1, k=1)
    yield ExpertsSample(name="experts_33", experts=33, k=5, tokens=(9,))
    yield ExpertsSample(name="biases_omitted", biases=False, every_dtype=True)
    yield ExpertsSample(name="one_token", tokens=(1,))
    yield ExpertsSample(name="tokens_65", tokens=(65,))
    yield ExpertsSample(name="batch", tokens=(2, 3), every_dtype=True)
    yield ExpertsSample(name="batch_of_one_token", tokens=(3, 1))


def _list_quantised() -> Iterator[ExpertsSample]:
    for bits in (2, 4, 8):
        for block in (0, 16, 32):
            for zero_points in (False, True):
                name = f"bits_{bits}_block_{block}_zero_points_{'random' if zero_points else 'omitted'}"
                yield ExpertsSample(name=name, bits=bits, block=block, zero_points=zero_points, hidden=64, inner=96,
                                    every_dtype=bits != 2 and block != 16)  # fmt: skip
                yield ExpertsSample(name=f"{name}_swiglu", bits=bits, block=block, zero_points=zero_points,
                                    inner=64, attributes=SWIGLU)  # fmt: skip
                if bits != 2:
                    size = max(16, block)
                    yield ExpertsSample(name=f"{name}_positive", bits=bits, block=block, zero_points=zero_points,
                                        hidden=size, inner=size, positive=True, every_dtype=True)  # fmt: skip
    for bits in (4, 8):
        yield ExpertsSample(name=f"bits_{bits}_block_128", bits=bits, block=128, hidden=128, inner=256)
        yield ExpertsSample(name=f"bits_{bits}_blocks_odd", bits=bits, block=32, hidden=96, inner=96, zero_points=True)
    for fc1, fc2 in ((4, 8), (8, 4)):
        widths: Mapping[str, Attribute] = {"fc1_expert_weight_bits": fc1, "fc2_expert_weight_bits": fc2}
        yield ExpertsSample(name=f"bits_{fc1}_and_{fc2}", attributes=widths)
        yield ExpertsSample(name=f"bits_{fc1}_and_{fc2}_block_32_zero_points", attributes=widths, block=32, hidden=64,
                            inner=64, zero_points=True)  # fmt: skip
    yield ExpertsSample(name="router_weights", router_weights=True, normalized=False, every_dtype=True)
    yield ExpertsSample(name="router_weights_normalized", router_weights=True)


def _list_refused(quantised: bool) -> Iterator[ExpertsSample]:
    yield ExpertsSample(name="activation_unknown", attributes={"activation_type": "softsign"})
    yield ExpertsSample(name="rates_of_other_tokens", changes={"router_probs": (5, 4)})
    yield ExpertsSample(name="rates_of_other_experts", changes={"router_probs": (6, 3)})
    if quantised:
        yield ExpertsSample(name="bits_5", attributes={"expert_weight_bits": 5})
        yield ExpertsSample(name="scales_of_other_rows", changes={"fc1_scales": (4, 47)})
    else:
        yield ExpertsSample(name="bias_of_other_rows", changes={"fc1_experts_bias": (4, 47)})


def bindings(sample: ExpertsSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    chosen = spread(sample, first=dtypes == ("float32",), newest=True)
    return tuple(v for v in chosen if v != graph.CONSTANT and (v != graph.RUNTIME or sample.every_dtype))


@dataclass(frozen=True)
class Layer:
    """A layer of the experts: the name of its inputs, rows and columns of a weight, and the bits of it."""

    name: str
    rows: int
    columns: int
    bits: int


def list_layers(sample: ExpertsSample) -> tuple[Layer, ...]:
    """fc1, fc2 and, where it is there, fc3."""
    fused = sample.attributes.get("swiglu_fusion", 0) != 0
    fc1, fc2 = (int(str(sample.attributes.get(f"{n}_expert_weight_bits", sample.bits))) for n in ("fc1", "fc2"))
    layers = (
        Layer("fc1", sample.inner * (2 if fused else 1), sample.hidden, fc1),
        Layer("fc2", sample.hidden, sample.inner, fc2),
        Layer("fc3", sample.inner, sample.hidden, fc1),
    )
    return layers if sample.third else layers[:2]


def node(quantised: bool, sample: ExpertsSample, context: CaseContext) -> Node:
    """input of T [tokens.., hidden]; router_probs of T [tokens, experts]; weights, biases; output of T."""
    rng, dtype = context.rng, context.dtype
    count = int(np.prod(sample.tokens))
    rates = rng.permuted(np.tile(np.arange(sample.experts) * 0.25 - 1, (count, 1)), axis=1) * sample.rate
    rates = np.resize(rates, sample.changes.get("router_probs", rates.shape))
    values: dict[str, Array] = {
        "input": rng.uniform(0.25 if sample.positive else -1, 1, (*sample.tokens, sample.hidden)).astype(dtype),
        "router_probs": rates.astype(dtype),
    }
    for layer in list_layers(sample):
        shape = (sample.experts, layer.rows, layer.columns)
        if quantised:
            values |= _quantise_layer(sample, layer, context)
        else:
            values[f"{layer.name}_experts_weights"] = rng.uniform(-0.5, 0.5, shape).astype(dtype)
        if sample.biases:
            size = sample.changes.get(f"{layer.name}_experts_bias", shape[:2])
            values[f"{layer.name}_experts_bias"] = rng.uniform(-1, 1, size).astype(dtype)
    if sample.router_weights:
        values["router_weights"] = rng.uniform(0.1, 1, rates.shape).astype(dtype)
    operator = "QMoE" if quantised else "MoE"
    read = ("input", "router_probs", "router_weights")
    operands: list[Operand | None] = [
        Operand(name, values[name], parameter=name not in read) if name in values else None
        for name in FORMALS[operator]
    ]
    while operands[-1] is None:
        operands.pop()
    attributes: dict[str, Attribute] = {} if sample.k is None else {"k": sample.k}
    if sample.normalized:
        attributes["normalize_routing_weights"] = 1
    if quantised:
        attributes |= {"expert_weight_bits": sample.bits, "weights_prepacked": 0}
        attributes |= {"block_size": sample.block} if sample.block else {}
    attributes |= sample.attributes
    return Node(operator, MICROSOFT, context.since_version, tuple(operands), ("output",), attributes)


_LAYERS = ("fc1", "fc2", "fc3")
FORMALS: Mapping[str, tuple[str, ...]] = {
    "MoE": (
        *("input", "router_probs"),
        *(f"{layer}_experts_{part}" for layer in _LAYERS for part in ("weights", "bias")),
    ),
    "QMoE": (
        *("input", "router_probs"),
        *(f"{layer}_{part}" for layer in _LAYERS for part in ("experts_weights", "scales", "experts_bias")),
        *(f"{layer}_zero_points" for layer in _LAYERS),
        "router_weights",
    ),
}
"""The inputs in the order of the page."""


def _quantise_layer(sample: ExpertsSample, layer: Layer, context: CaseContext) -> dict[str, Array]:
    rng, bits = context.rng, layer.bits
    least = 2**bits * 3 // 4 if sample.positive else 0
    levels = rng.integers(least, 2**bits, (sample.experts, layer.rows, layer.columns))
    scales = (sample.experts, layer.rows, *((layer.columns // sample.block,) if sample.block else ()))
    scales = sample.changes.get(f"{layer.name}_scales", scales)
    found: dict[str, Array] = {
        f"{layer.name}_experts_weights": pack_levels(levels, bits),
        f"{layer.name}_scales": (rng.uniform(0.5, 1, scales) * 2.0**-bits).astype(context.dtype),
    }
    if sample.zero_points:
        zero = rng.integers(0, 2 if sample.positive else 2**bits, scales)
        found[f"{layer.name}_zero_points"] = pack_levels(zero, bits)
    return found


def dequantize_layer(node: Node, layer: str, precision: Precision) -> Estimate | None:
    """The weights [experts, rows, columns] of a layer; None where it is left out."""
    stored = node.value(f"{layer}_experts_weights")
    if stored is None or node.op_type == "MoE":
        return None if stored is None else estimate.exact(stored)
    bits = node.integer(f"{layer}_expert_weight_bits", node.integer("expert_weight_bits", 4))
    block = node.integer("block_size", 0)
    levels = unpack_levels(stored, bits).astype(np.float64)
    scales = node.array(f"{layer}_scales").astype(np.float64)
    packed = node.value(f"{layer}_zero_points")
    zero = np.full(scales.shape, 2.0 ** (bits - 1))
    if packed is not None:
        zero = unpack_levels(packed, bits)[..., : scales.shape[-1]].astype(np.float64)
    if block:
        scales, zero = (np.repeat(each, block, -1) for each in (scales, zero))
    else:
        scales, zero = scales[..., None], zero[..., None]
    # level * scale - zero point * scale is as good as their difference times the scale.
    steps = (levels + zero) * scales
    return Estimate((levels - zero) * scales, 3 * precision.unit * steps)


def truth(node: Node) -> Truth:
    """The weighted sum of the chosen experts, with a bound of its error that is carried along."""
    if reason := _refuse(node):
        return Refusal(reason)
    wide = node.array("input")
    precision = Precision(wide.dtype)
    x = estimate.exact(wide.reshape(-1, wide.shape[-1]))
    rates = node.array("router_probs").astype(np.float64)
    k = node.integer("k", 1)
    chosen = np.argsort(-rates, axis=1, kind="stable")[:, :k]
    weights = _route(node, precision, chosen)
    layers = {name: dequantize_layer(node, name, precision) for name in _LAYERS}
    total = Estimate(np.zeros(x.value.shape), np.zeros(x.value.shape))
    for expert in range(rates.shape[1]):
        rows, places = np.nonzero(chosen == expert)
        if rows.size:
            made = _apply_expert(node, precision, x[rows], layers, expert)
            scaled = precision.multiply(made, weights[rows, places].reshape(-1, 1))
            total.value[rows] += scaled.value
            total.error[rows] += scaled.error + (np.abs(scaled.value) + scaled.error) * k * precision.unit
    return Outputs((precision.output("output", total.reshape(*wide.shape)),))


def _refuse(node: Node) -> str:
    """The rule that the node breaks; empty where it breaks none."""
    kind, x, rates = node.text("activation_type", "relu"), node.array("input"), node.array("router_probs")
    if kind not in ("relu", "silu", "swiglu", "identity"):
        return f"activation_type must be relu, gelu, silu, swiglu or identity, not {kind}"
    experts, rows = node.array("fc1_experts_weights").shape[:2]
    expected = (int(np.prod(x.shape[:-1])), experts)
    if rates.shape != expected:
        return f"router_probs must have the shape {expected}, not {rates.shape}"
    for name in ("fc1_experts_bias", "fc1_scales"):
        value = node.value(name)
        if value is not None and value.shape[:2] != (experts, rows):
            return f"{name} must have {rows} rows, not {value.shape[1]}"
    bits = node.integer("expert_weight_bits", 4)
    return "" if bits in (2, 3, 4, 8) else f"expert_weight_bits must be 2, 3, 4 or 8, not {bits}"


def _route(node: Node, precision: Precision, chosen: Array) -> Estimate:
    """The weight of each chosen expert, [tokens, k]."""
    mixed = node.value("router_weights")
    every = precision.softmax(estimate.exact(node.array("router_probs"))) if mixed is None else estimate.exact(mixed)
    picked = Estimate(*(np.take_along_axis(part, chosen, 1) for part in (every.value, every.error)))
    if not node.integer("normalize_routing_weights", 0):
        return picked
    total, error = (part.sum(1, keepdims=True) for part in (picked.value, picked.error))
    share = picked.value / total
    # With all weights positive, a share is off by the relative errors of both, a sum of k and a division.
    relative = picked.error / picked.value + error / total + (chosen.shape[1] + 3) * precision.unit
    return Estimate(share, share * relative)


def _apply_expert(
    node: Node, precision: Precision, x: Estimate, layers: Mapping[str, Estimate | None], expert: int
) -> Estimate:
    """The second layer of the activation of the first."""
    first = _multiply_layer(node, precision, x, layers, ("fc1", expert))
    kind = node.text("activation_type", "relu")
    if kind != "swiglu":
        return _multiply_layer(node, precision, _activate(precision, first, kind), layers, ("fc2", expert))
    fusion, half = node.integer("swiglu_fusion", 0), first.value.shape[1] // 2
    if fusion == 0:
        gate, linear = first, _multiply_layer(node, precision, x, layers, ("fc3", expert))
    else:
        pairs = (np.s_[:, ::2], np.s_[:, 1::2]) if fusion == 1 else (np.s_[:, :half], np.s_[:, half:])
        gate, linear = first[pairs[0]], first[pairs[1]]
    limit = node.number("swiglu_limit", float("inf"))
    gate = replace(gate, value=np.minimum(gate.value, limit))  # neither is further from the truth than before
    linear = replace(linear, value=np.clip(linear.value, -limit, limit))
    alpha = node.number("activation_alpha", 1.0)
    swish = _apply(precision, gate, lambda g: g * sigmoid(alpha * g), 1.1 + abs(alpha) / 4)
    raised = precision.add(linear, estimate.exact(np.array(node.number("activation_beta", 0.0))))
    return _multiply_layer(node, precision, precision.multiply(swish, raised), layers, ("fc2", expert))


def _activate(precision: Precision, x: Estimate, kind: str) -> Estimate:
    match kind:
        case "relu":
            return replace(x, value=np.maximum(x.value, 0.0))
        case "silu":
            return _apply(precision, x, lambda v: v * sigmoid(v), 1.1)
        case _:
            return x


def _apply(precision: Precision, x: Estimate, function: Callable[[Array], Array], slope: float) -> Estimate:
    """A function x sigmoid(alpha x), whose slope is at most `slope`; the argument of sigmoid is rounded, too."""
    value = function(x.value)
    rounding = (2 * SIGMOID_ULPS * np.abs(value) + slope * np.abs(x.value)) * precision.unit
    return Estimate(value, slope * x.error + rounding + precision.tiny)


def _multiply_layer(
    node: Node, precision: Precision, x: Estimate, layers: Mapping[str, Estimate | None], place: tuple[str, int]
) -> Estimate:
    """x times the transpose of an expert's weight in a layer, plus its bias."""
    name, expert = place
    layer = layers[name]
    assert layer is not None
    bits = node.integer(f"{name}_expert_weight_bits", node.integer("expert_weight_bits", 4))
    block = node.integer("block_size", 0)
    if node.op_type == "QMoE" and bits == 8 and block:
        x = Estimate(x.value, x.error + _round_activations(np.abs(x.value) + x.error, block))
    product = precision.dot(x, layer[expert].transpose(1, 0))
    bias = node.value(f"{name}_experts_bias")
    return product if bias is None else precision.add(product, estimate.exact(bias[expert]))


def _round_activations(size: Array, block: int) -> Array:
    """How far a level of 8 bits, 127 of which reach the largest of a block, may be away."""
    top = size.reshape(size.shape[0], -1, block).max(-1, keepdims=True)
    return np.broadcast_to(top / 254 * 1.01, (*top.shape[:2], block)).reshape(size.shape)


OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "com.microsoft::MoE": (OptionalIO("relu", inputs=each_alone("fc1_experts_bias", "fc2_experts_bias")),),
    "com.microsoft::QMoE": (
        OptionalIO(
            "bits_4_block_32_zero_points_random",
            inputs=each_alone("fc1_experts_bias", "fc2_experts_bias", "fc1_zero_points", "fc2_zero_points"),
        ),
    ),
}

OPERATORS = declare(
    tuple(
        Operator(
            name, partial(samples, quantised), bindings, partial(node, quantised), truth, NO_KERNEL, domain=MICROSOFT
        )
        for name, quantised in (("MoE", False), ("QMoE", True))
    ),
    optional_io=OPTIONAL_IO,
)
