"""com.microsoft::VarlenCausalConvWithState: a causal depthwise convolution of requests that are packed by token.

Source: ONNX Runtime's ContribOperators.md. The dynamic mode, with kernel_delta and previous_mask, is CUDA's alone:
"The CPU and WebGPU implementations reject" it, and it has no case. Bounds: those of CausalConvWithState.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate, output, product, term, total, unit_of
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.families.drawn import Drawn, DrawnSample
from epcheck.generators.node import Node
from epcheck.generators.operators.convolution_pooling.causal_convolution import apply_silu
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("com.microsoft::VarlenCausalConvWithState",)

BY_TOKEN = "input has 2 dimensions"


@dataclass(frozen=True, kw_only=True)
class PackedSample(DrawnSample):
    """lengths: of each request. kernel, dilation: of the taps. broken: what has another shape."""

    lengths: tuple[int, ...] = (5, 1, 7)
    channels: int = 6
    kernel: int = 4
    dilation: int = 1
    broken: str = ""


def samples() -> Iterator[PackedSample]:
    for activation in ("none", "silu", "swish"):
        for present in ((), ("bias",)):
            name = f"{activation}{'_bias' if present else ''}"
            yield PackedSample(name=name, attributes={"activation": activation}, present=present, outputs=2,
                               every_dtype=bool(present))  # fmt: skip
    yield PackedSample(name="defaults", outputs=2, every_dtype=True)
    for kernel, dilation in ((1, 1), (2, 1), (3, 2), (4, 3), (2, 9), (9, 1)):
        yield PackedSample(name=f"kernel_{kernel}_dilation_{dilation}", attributes={"dilation": dilation}, outputs=2,
                           kernel=kernel, dilation=dilation, present=("bias",))  # fmt: skip
    for lengths in ((1,), (1, 1, 1), (3, 2), (65, 1), (1025,), (2,) * 65):
        name = f"requests_{len(lengths)}_of_{lengths[0]}"
        yield PackedSample(name=name, lengths=lengths, outputs=2, attributes={"activation": "silu"})
    for channels in (1, 257):
        yield PackedSample(name=f"channels_{channels}", channels=channels, outputs=2)
    for capacity in (1, 4, 8):
        yield PackedSample(name=f"captures_{capacity}", attributes={"state_update_capacity": capacity}, outputs=3,
                           present=("capture_count",), every_dtype=capacity == 4)  # fmt: skip
    yield expect_refusal(PackedSample(name="unknown_activation", attributes={"activation": "relu"}, outputs=2))
    yield expect_refusal(PackedSample(name="dilation_0", attributes={"dilation": 0}, outputs=2))
    yield expect_refusal(PackedSample(name="state_of_another_length", broken="initial_state", outputs=2))
    yield expect_refusal(PackedSample(name="weight_of_other_channels", broken="weight", outputs=2))
    yield expect_refusal(PackedSample(name="bias_of_other_channels", broken="bias", present=("bias",), outputs=2))
    yield expect_refusal(PackedSample(name="captures_9", attributes={"state_update_capacity": 9}, outputs=3,
                                      present=("capture_count",)))  # fmt: skip


def draw(sample: PackedSample, context: CaseContext) -> Mapping[str, Array]:
    rng, channels, batch = context.rng, sample.channels, len(sample.lengths)
    shapes: dict[str, tuple[int, ...]] = {
        "input": (sum(sample.lengths), channels), "weight": (channels, 1, sample.kernel), "bias": (channels,),
        "initial_state": (batch, channels, (sample.kernel - 1) * sample.dilation),
    }  # fmt: skip
    if sample.broken:
        first, *others = shapes[sample.broken]
        shapes[sample.broken] = (first + 1, *others)
    found = {name: rng.uniform(-2, 2, shape).astype(context.dtype) for name, shape in shapes.items()}
    counts = np.resize(np.array([2, 5, 0, 20], np.int32), batch)
    bounds = np.cumsum((0, *sample.lengths)).astype(np.int32)
    return {**found, "cumulative_sequence_length": bounds, "capture_count": counts}


def _break_rule(node: Node) -> str:
    x, weight, state, bias = (node.value(name) for name in ("input", "weight", "initial_state", "bias"))
    assert x is not None
    assert weight is not None
    assert state is not None
    batch, dilation = node.array("cumulative_sequence_length").size - 1, node.integer("dilation", 1)
    if node.text("activation", "none") not in ("none", "silu", "swish"):
        return f"there is no activation '{node.text('activation', '')}'"
    if dilation < 1 or not 0 <= node.integer("state_update_capacity", 0) <= 8:
        return "dilation must be 1 or more, and state_update_capacity within [0, 8]"
    if weight.shape[:2] != (x.shape[1], 1) or (bias is not None and bias.shape != x.shape[1:]):
        return f"weight and bias must be of {x.shape[1]} channels"
    expected = (batch, x.shape[1], (weight.shape[2] - 1) * dilation)
    return "" if state.shape == expected else f"initial_state must have the shape {expected}, not {state.shape}"


def truth(node: Node) -> Truth:
    """Each request alone, behind its state."""
    if why := _break_rule(node):
        return Refusal(why)
    x, weight, bias = node.array("input"), node.array("weight"), node.value("bias")
    state, bounds = node.array("initial_state"), node.array("cumulative_sequence_length").tolist()
    kernel, dilation, kept = weight.shape[2], node.integer("dilation", 1), state.shape[2]
    unit, rows, finals = unit_of(x.dtype), [], []
    for request, (begin, end) in enumerate(itertools.pairwise(bounds)):
        padded = np.concatenate([state[request].T, x[begin:end]])
        taps = [
            product(Approximate.exact(padded[j * dilation : j * dilation + end - begin]),
                    Approximate.exact(np.broadcast_to(weight[:, 0, j], (end - begin, x.shape[1]))))
            for j in range(kernel)
        ]  # fmt: skip
        if bias is not None:
            taps.append(term(Approximate.exact(np.broadcast_to(bias, (end - begin, x.shape[1])))))
        made = total(unit, *taps)
        rows.append(made if node.text("activation", "none") == "none" else apply_silu(made, unit))
        finals.append(padded[len(padded) - kept :].T)
    joined = Approximate(*(np.concatenate(parts) for parts in zip(*((r.value, r.error) for r in rows), strict=True)))
    found = {
        "output": output("output", joined, x.dtype),
        "final_state": Output("final_state", np.ascontiguousarray(finals).reshape(state.shape)),
        "state_update": Output("state_update", _capture(node, x, bounds)),
    }
    return Outputs(tuple(found[name] for name in node.results))


def _capture(node: Node, x: Array, bounds: list[int]) -> Array:
    """The first tokens of each request, as many as are captured; zeros behind."""
    capacity, counts = node.integer("state_update_capacity", 0), node.value("capture_count")
    update = np.zeros((len(bounds) - 1, capacity, x.shape[1]), x.dtype)
    for request, count in enumerate([] if counts is None else counts.tolist()):
        taken = max(min(count, capacity, bounds[request + 1] - bounds[request]), 0)
        update[request, :taken] = x[bounds[request] : bounds[request] + taken]
    return update


OPERATORS = (
    Drawn("VarlenCausalConvWithState", samples, draw, truth, ("weight", "bias")).declare(without_rank_dtypes=BY_TOKEN),
)
