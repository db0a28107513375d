"""com.microsoft::DynamicQuantizeLSTM: an LSTM whose weights are quantised, and which quantises X and its hidden states.

Source: ONNX Runtime's ContribOperators.md, which leaves the equations to the page of LSTM-7 and has W and R transposed.
It does not say how X is quantised; DynamicQuantizeLinear puts 255 steps between the least and the greatest value, 0
among them, and is off by half of one, or by one at the ends. The truth is the LSTM of the real weights, and the bound
what such an error makes of each step. It grows with the steps and the weights, so that samples have two steps, or one
where they are large. NaN, infinities and X beyond the curve of the activations have no sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate
from epcheck.generators.case import CaseContext
from epcheck.generators.families.drawn import MICROSOFT
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import NO_KERNEL, Operator
from epcheck.generators.operators.recurrent.recurrent import oracle
from epcheck.generators.operators.recurrent.recurrent.samples import CELLS, RecurrentSample
from epcheck.generators.operators.recurrent.recurrent.samples import node as make_lstm
from epcheck.generators.operators.recurrent.recurrent.samples import samples as lstm_samples
from epcheck.generators.truth import Truth

DECLARES = ("com.microsoft::DynamicQuantizeLSTM",)

CELL = CELLS["LSTM"]
OF_LSTM = 7
"""The version of LSTM without the attribute `layout`."""
LEFT_OUT = (
    "layout",
    "nan",
    "saturated",
    "long_sequence",
    "activation_",
    "activations_differ",
    "no_hidden_size",
    "batch_65",
)
ONE_STEP = ("odd_sizes", "hidden_64", "input_129")
THREE = "X has 3 dimensions"


@dataclass(frozen=True, kw_only=True)
class QuantisedSample(RecurrentSample):
    """columns: W and R have a scale and a zero point for each gate's neuron. zero: of both, from the middle. differ:
    the zero points of columns differ."""

    columns: bool = False
    zero: int = 3
    differ: bool = False


def samples() -> Iterator[QuantisedSample]:
    """Those of LSTM, but for `LEFT_OUT`, and the ways to quantise weights."""
    for sample in lstm_samples(CELL):
        if not any(part in sample.name for part in LEFT_OUT):
            _, *others = sample.sizes
            large = sample.name.startswith(ONE_STEP)
            present = (*sample.present, "initial_h") if large else sample.present
            lens = tuple(min(length, 2) for length in sample.lens)
            sizes = (1 if large or sample.sizes[0] == 1 else 2, *others)
            yield QuantisedSample(**{**vars(sample), "sizes": sizes, "lens": lens, "present": present})
    for direction in ("forward", "bidirectional"):
        own = (("direction", direction),)
        base = QuantisedSample(name="", sizes=(2, 3, 5, 6), attributes=own, present=("initial_h",), every_dtype=True)
        yield replace(base, name=f"columns_{direction}", columns=True, zero=0)
        yield replace(base, name=f"columns_with_zero_point_{direction}", columns=True)
        yield replace(base, name=f"columns_of_other_zero_points_{direction}", columns=True, differ=True)
        yield replace(base, name=f"zero_point_middle_{direction}", zero=0)
        yield replace(base, name=f"zero_point_high_{direction}", zero=100)
        yield replace(base, name=f"zero_point_low_{direction}", zero=-100)


def bindings(sample: QuantisedSample, _version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if dtypes != ("uint8",):
        return (graph.INITIALIZER, graph.RUNTIME) if sample.every_dtype else ()
    return tuple(graph.BINDINGS) if sample.every_dtype else (graph.INITIALIZER,)


def _quantise(weights: Array, sample: QuantisedSample, dtype: np.dtype[np.generic]) -> tuple[Array, Array, Array]:
    """(levels, scales, zero points): what W and R stand for afterwards is near the weights."""
    columns = weights.shape[-1]
    middle = 128 if dtype == np.uint8 else 0
    shape = (weights.shape[0], columns) if sample.columns else weights.shape[:1]
    zero = np.full(shape, middle + sample.zero)
    if sample.differ:
        zero = zero + np.arange(columns) % 3
    scale = np.full(shape, np.abs(weights).max() / 100)
    scale *= 1 + np.arange(scale.size).reshape(shape) % 4 / 4
    per_column = (slice(None), None) if sample.columns else (slice(None), None, None)
    info = np.iinfo(dtype)  # type: ignore[type-var]
    levels = np.clip(np.rint(weights / scale[per_column]) + zero[per_column], info.min, info.max)
    return levels.astype(dtype), scale.astype(np.float32), zero.astype(dtype)


def node(sample: QuantisedSample, context: CaseContext) -> Node:
    """X, B, P and the states are float32, W and R of the case's dtype."""
    made = make_lstm(CELL, sample, replace(context, since_version=OF_LSTM, dtypes=(np.dtype(np.float32),)))
    inputs = list(made.inputs) + [None] * (8 - len(made.inputs))
    for place, name in ((1, "W"), (2, "R")):
        turned = np.swapaxes(made.array(name), 1, 2)
        levels, scale, zero = _quantise(turned, sample, context.dtype)
        inputs[place] = Operand(name, levels, parameter=True)
        inputs += [Operand(f"{name}_scale", scale, parameter=True), Operand(f"{name}_zero_point", zero, parameter=True)]
    return Node("DynamicQuantizeLSTM", MICROSOFT, context.since_version, tuple(inputs), made.outputs, made.attributes)


def _blur(state: Approximate) -> Approximate:
    """What is quantised to 255 steps between its least and its greatest value; only the ends are off by a whole one."""
    low, high = (state.value - state.error).min(initial=0), (state.value + state.error).max(initial=0)
    step = (high - low) / 255
    at_end = (state.value - state.error < low + step) | (state.value + state.error > high - step)
    return Approximate(state.value, state.error + np.where(at_end, step, step / 2))


def truth(node: Node) -> Truth:
    """What the page of LSTM says of the weights that the levels stand for."""
    return oracle.judge_node(widen_weights(node), CELL, _blur)


def widen_weights(node: Node) -> Node:
    """The LSTM of the weights that the levels stand for."""
    inputs = list(node.inputs[:8])
    for place, name in ((1, "W"), (2, "R")):
        scale, zero = (node.array(f"{name}_{part}").astype(np.float64) for part in ("scale", "zero_point"))
        levels = node.array(name).astype(np.float64)
        if len(levels) != len(scale):
            scale, zero = scale[:1], zero[:1]  # W has other directions than the node, which is refused
        scale, zero = (x.reshape(len(x), 1, -1) for x in (scale, zero))
        real = (levels - zero) * scale
        inputs[place] = Operand(name, np.swapaxes(real, 1, 2).astype(np.float32))
    return Node("LSTM", "", OF_LSTM, tuple(inputs), node.outputs, node.attributes)


OPERATORS = (
    Operator("DynamicQuantizeLSTM", samples, bindings, node, truth, NO_KERNEL, ("T2",), MICROSOFT,
             without_rank_dtypes=THREE),
)  # fmt: skip
