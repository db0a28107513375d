"""CausalConvWithState-27: a depthwise convolution along the last axis that sees no later position, and carries on.

Source: the page. input [B, C, L], weight [C, 1, k], bias [C], past_state [B, C, k - 1], zeros where it is left out.
output[b, c, t] = activation(sum over j of weight[c, 0, j] padded[b, c, t + j] + bias[c]), padded being past_state and
input one after the other; present_state is the last k - 1 positions of padded, which are only moved. silu and swish are
one function, x sigmoid(x). What an empty `activation` means the page does not say: there is no case.

Bound: a sum of k products and a bias in any order, `running_error`; of silu the slope, at most 1.1, the ULP of the
WebNN conformance tests for a sigmoid, and one product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate, output, product, term, total, unit_of
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.families.contrib_twin import make_twin
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.oracle_math.activations import sigmoid
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("CausalConvWithState", "com.microsoft::CausalConvWithState")

Shape = tuple[int, ...]
ACTIVATIONS = ("none", "silu", "swish")
SLOPE = 1.1
"""The largest slope of x sigmoid(x) is 1.0998, at x = 2.4."""
SIGMOID_ULPS = 34
"""WebNN conformance tests: sigmoid within 34 ULP."""


@dataclass(frozen=True, kw_only=True)
class CausalSample(Sample):
    """x: [B, C, L]. kernel: k. activation: None leaves the attribute out. values: what input and state look like.

    weight, bias_shape, past_shape: other shapes than those that belong together.
    """

    x: Shape = (2, 3, 7)
    kernel: int = 3
    bias: bool = False
    past: bool = False
    activation: str | None = None
    values: str = "random"
    weight: Shape | None = None
    bias_shape: Shape | None = None
    past_shape: Shape | None = None


def samples() -> Iterator[CausalSample]:
    plain = CausalSample(name="defaults", every_dtype=True)
    yield plain
    for bias in (False, True):
        for past in (False, True):
            if bias or past:
                name = "_and_".join(word for word, wanted in (("bias", bias), ("past_state", past)) if wanted)
                yield replace(plain, name=name, bias=bias, past=past)
    for activation in ACTIVATIONS:
        yield replace(plain, name=f"activation_{activation}", activation=activation, bias=True, past=True)
    yield from _shapes(replace(plain, every_dtype=False))
    for values in ("nan", "infinity", "saturation"):
        silu = "silu" if values == "saturation" else None
        yield replace(plain, name=values, values=values, past=True, activation=silu)
    yield from map(expect_refusal, _list_refused(CausalSample(name="")))


def _shapes(plain: CausalSample) -> Iterator[CausalSample]:
    """Kernels as long as the sequence and longer, one position at a time, sizes 0 and 1, more than a thread group."""
    for kernel in (1, 2, 4, 7, 8, 9, 20):
        yield replace(plain, name=f"kernel_{kernel}", kernel=kernel)
        yield replace(plain, name=f"kernel_{kernel}_past_state", kernel=kernel, past=True, bias=True)
    for kernel in (2, 4):
        decoding = replace(plain, x=(2, 3, 1), kernel=kernel, past=True, bias=True)
        yield replace(decoding, name=f"decoding_kernel_{kernel}", activation="silu", every_dtype=kernel == 4)
        yield replace(decoding, name=f"decoding_kernel_{kernel}_first", past=False)
    shapes: dict[str, Shape] = {
        "one_element": (1, 1, 1), "one_channel": (2, 1, 9), "one_batch": (1, 5, 9), "many_channels": (1, 1031, 3),
        "many_batches": (37, 2, 3), "length_1025": (1, 2, 1025), "no_batch": (0, 3, 7),
    }  # fmt: skip
    for name, x in shapes.items():
        yield replace(plain, name=name, x=x, past=name in ("one_channel", "length_1025"))
    yield replace(plain, name="length_4097_kernel_65", x=(1, 1, 4097), kernel=65, past=True)
    yield replace(plain, name="length_0_past_state", x=(2, 3, 0), past=True)


def _list_refused(plain: CausalSample) -> Iterator[CausalSample]:
    yield replace(plain, name="weight_of_other_channels", weight=(4, 1, 3))
    yield replace(plain, name="weight_of_two_groups", weight=(3, 2, 3))
    yield replace(plain, name="weight_of_rank_2", weight=(3, 3))
    yield replace(plain, name="bias_of_other_channels", bias=True, bias_shape=(4,))
    yield replace(plain, name="bias_of_rank_2", bias=True, bias_shape=(3, 1))
    yield replace(plain, name="past_state_too_long", past=True, past_shape=(2, 3, 3))
    yield replace(plain, name="past_state_too_short", past=True, past_shape=(2, 3, 1))
    yield replace(plain, name="past_state_of_other_batch", past=True, past_shape=(1, 3, 2))
    yield replace(plain, name="input_of_rank_2", x=(3, 7))
    yield replace(plain, name="input_of_rank_4", rank=4, x=(2, 3, 1, 7), weight=(3, 1, 3))
    yield replace(plain, name="activation_relu", activation="relu")


def bindings(sample: CausalSample, _: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    every = spread(sample, first=dtypes == ("float32",), newest=True)
    return tuple(binding for binding in every if binding != graph.CONSTANT or sample.every_dtype)


def node(sample: CausalSample, context: CaseContext) -> Node:
    """input [B, C, L]; weight [C, 1, k] and bias [C], parameters; past_state [B, C, k - 1]. Both outputs."""
    rng, dtype = context.rng, context.dtype
    batch, channels = (*sample.x, 1)[:2]
    state = (batch, channels, sample.kernel - 1) if sample.past_shape is None else sample.past_shape
    weight = (channels, 1, sample.kernel) if sample.weight is None else sample.weight
    operands: list[Operand | None] = [
        Operand("input", _data(sample, sample.x, rng).astype(dtype)),
        Operand("weight", rng.uniform(-1, 1, weight).astype(dtype), parameter=True),
    ]
    if sample.bias:
        bias = (channels,) if sample.bias_shape is None else sample.bias_shape
        operands.append(Operand("bias", rng.uniform(-1, 1, bias).astype(dtype), parameter=True))
    elif sample.past:
        operands.append(None)
    if sample.past:
        operands.append(Operand("past_state", _data(sample, state, rng).astype(dtype)))
    attributes: dict[str, Attribute] = {} if sample.activation is None else {"activation": sample.activation}
    outputs = ("output", "present_state")
    return Node("CausalConvWithState", "", context.since_version, tuple(operands), outputs, attributes)


def _data(sample: CausalSample, shape: Shape, rng: np.random.Generator) -> Array:
    values = np.asarray(rng.uniform(-2, 2, shape))
    match sample.values:
        case "nan":
            values[..., 1] = np.nan
        case "infinity":
            values[0, 0, 0] = np.inf
        case "saturation":
            values = values * 200
    return values


def _broken_rule(node: Node) -> str | None:
    x, weight = node.array("input").shape, node.array("weight").shape
    if len(x) != 3 or len(weight) != 3:
        return f"input and weight must have three dimensions; they have the shapes {x} and {weight}"
    if weight[:2] != (x[1], 1):
        return f"weight has the shape {weight}; for {x[1]} channels it must be ({x[1]}, 1, k)"
    bias, past = node.value("bias"), node.value("past_state")
    if bias is not None and bias.shape != x[1:2]:
        return f"bias has the shape {bias.shape} instead of {x[1:2]}"
    expected = (*x[:2], weight[2] - 1)
    if past is not None and past.shape != expected:
        return f"past_state has the shape {past.shape} instead of {expected}"
    activation = node.text("activation", "none")
    return None if activation in ACTIVATIONS else f"there is no activation '{activation}'"


def truth(node: Node) -> Truth:
    """The sums in float64 with the error that may have come along; the state is moved."""
    if broken := _broken_rule(node):
        return Refusal(broken)
    x, weight, bias, past = node.array("input"), node.array("weight"), node.value("bias"), node.value("past_state")
    kernel, length, unit = weight.shape[2], x.shape[2], unit_of(x.dtype)
    padded = np.concatenate([np.zeros((*x.shape[:2], kernel - 1), x.dtype) if past is None else past, x], axis=2)
    state = Output("present_state", np.ascontiguousarray(padded[:, :, padded.shape[2] - (kernel - 1) :]))
    with np.errstate(all="ignore"):
        taps = [
            product(Approximate.exact(padded[:, :, j : j + length]), Approximate.exact(weight[:, 0, j, None]))
            for j in range(kernel)
        ]
        if bias is not None:
            taps.append(term(Approximate.exact(np.broadcast_to(bias[:, None], x.shape))))
        result = total(unit, *taps)
        if node.text("activation", "none") != "none":
            result = apply_silu(result, unit)
    certain = replace(result, error=np.where(np.isfinite(result.value), result.error, 0.0))
    return Outputs((output("output", certain, x.dtype), state))


def apply_silu(sums: Approximate, unit: float) -> Approximate:
    """x sigmoid(x): exp(-x) is off by 2 |x| ULP, too, which shows where x sigmoid(x) is small."""
    result = sums.apply(lambda x: x * sigmoid(x), SLOPE, (2 * SIGMOID_ULPS + 1) * unit)
    tail = 4 * unit * sums.value**2 * sigmoid(sums.value)
    return Approximate(result.value, result.error + np.nan_to_num(tail, nan=0.0, posinf=0.0))


CAUSAL_CONV = Operator("CausalConvWithState", samples, bindings, node, truth, NO_KERNEL)

OPERATORS = (CAUSAL_CONV, make_twin(CAUSAL_CONV, 27))
