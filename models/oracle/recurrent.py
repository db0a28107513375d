"""RNN, GRU and LSTM in float64: the values of the suite's truth, without its bounds, in less time.

DynamicQuantizeLSTM quantises X and each hidden state as DynamicQuantizeLinear does: the suite's truth has an LSTM of
real values, and takes the difference into its bound, which a whole model cannot. ONNX Runtime takes the range of the
rows that one thread computes (docs/findings/recurrent.md): with one thread, as in a worker, of the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from epcheck.generators.operators.recurrent import quantized_lstm
from epcheck.generators.operators.recurrent.recurrent import oracle
from epcheck.generators.operators.recurrent.recurrent.samples import CELLS, Cell

QUANTIZED = "DynamicQuantizeLSTM"

Read = Callable[[Array], Array]
"""How a node reads X and its hidden states."""


def evaluate(node: Node) -> dict[str, Array] | None:
    """The values of Y, Y_h and Y_c, as far as the cell has them; None for a node that breaks the standard, of which the
    suite says more."""
    if node.op_type == QUANTIZED:
        return _evaluate(quantized_lstm.widen_weights(node), CELLS["LSTM"], quantise)
    return _evaluate(node, CELLS[node.op_type], lambda value: value)


def quantise(values: Array) -> Array:
    """What 255 steps between the least and the greatest value, 0 among them, can hold (DynamicQuantizeLinear)."""
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    scale = (high - low) / 255
    if not np.isfinite(scale) or scale == 0:
        return values
    zero = np.rint(np.clip(-low / scale, 0, 255))
    return np.asarray((np.clip(np.rint(values / scale) + zero, 0, 255) - zero) * scale)


def _evaluate(node: Node, cell: Cell, read: Read) -> dict[str, Array] | None:
    if oracle.find_broken_rule(node, cell) is not None:
        return None
    batch_first = bool(node.integer("layout", 0))
    x = node.array("X").astype(np.float64, copy=False)
    steps = read(np.swapaxes(x, 0, 1) if batch_first else x)
    runs = [_run(node, cell, index, steps, read) for index in range(node.array("W").shape[0])]
    y, h, c = (np.stack([run[part] for run in runs], axis) for part, axis in ((0, 1), (1, 0), (2, 0)))
    if batch_first:
        y, h, c = np.moveaxis(y, 2, 0), np.moveaxis(h, 1, 0), np.moveaxis(c, 1, 0)
    return {"Y": y, "Y_h": h, "Y_c": c}


def _run(node: Node, cell: Cell, index: int, steps: Array, read: Read) -> tuple[Array, Array, Array]:
    """One direction: Y [seq, batch, hidden], Y_h and Y_c [batch, hidden]. A sequence that is over keeps its state."""
    seq, batch, _ = steps.shape
    direction = oracle.read_direction(node, cell, index)
    hidden = direction.w.shape[1]
    lens = node.value("sequence_lens")
    h, c = (oracle.read_initial(node, name, index, batch, hidden).value for name in ("initial_h", "initial_c"))
    products = [(steps.reshape(seq * batch, -1) @ weights.T).reshape(seq, batch, hidden) for weights in direction.w]
    r = [np.ascontiguousarray(weights.T) for weights in direction.r]
    backward = index == 1 or node.text("direction", "forward") == "reverse"
    y = np.zeros((seq, batch, hidden))
    for t in reversed(range(seq)) if backward else range(seq):
        after = _STEPS[cell.name](direction, _Sums([product[t] for product in products], r, read(h)), c)
        active = np.ones((batch, 1), bool) if lens is None else (t < lens)[:, None]
        h, c = (np.where(active, new, old) for new, old in zip(after, (h, c), strict=True))
        y[t] = np.where(active, after[0], 0.0)
    return y, h, c


@dataclass(frozen=True)
class _Sums:
    """What one step reads. x: X * W^T of each gate, [batch, hidden]. r: R^T of each gate. h: the hidden state."""

    x: list[Array]
    r: list[Array]
    h: Array


State = tuple[Array, Array]
"""The hidden state and the cell state, [batch, hidden] each; only LSTM has the latter."""


def _limit(d: oracle.Direction, x: Array) -> Array:
    return np.clip(x, -d.clip, d.clip) if np.isfinite(d.clip) else x


def _gate(d: oracle.Direction, sums: _Sums, index: int, h: Array) -> Array:
    """X * W^T + H * R^T + Wb + Rb of one gate."""
    return np.asarray(sums.x[index] + h @ sums.r[index] + (d.wb[index] + d.rb[index]))


def _rnn(d: oracle.Direction, sums: _Sums, c: Array) -> State:
    return d.activations[0].of(_limit(d, _gate(d, sums, 0, sums.h))), c


def _gru(d: oracle.Direction, sums: _Sums, c: Array) -> State:
    f, g = d.activations
    z, r = (f.of(_limit(d, _gate(d, sums, index, sums.h))) for index in (0, 1))
    hidden = sums.x[2] + r * (sums.h @ sums.r[2] + d.rb[2]) + d.wb[2] if d.flag else _gate(d, sums, 2, r * sums.h)
    return (1 - z) * g.of(_limit(d, hidden)) + z * sums.h, c


def _lstm(d: oracle.Direction, sums: _Sums, c: Array) -> State:
    f, g, activation = d.activations

    def gate(index: int, peephole: int, of: Array) -> Array:
        seen = d.p[peephole] * of if d.p.size else 0.0
        return f.of(_limit(d, _gate(d, sums, index, sums.h) + seen))

    i = gate(0, 0, c)
    forget = 1 - i if d.flag else gate(2, 2, c)
    cell = forget * c + i * g.of(_limit(d, _gate(d, sums, 3, sums.h)))
    return gate(1, 1, cell) * activation.of(_limit(d, cell)), cell


_STEPS: dict[str, Callable[[oracle.Direction, _Sums, Array], State]] = {
    "RNN": _rnn, "GRU": _gru, "LSTM": _lstm,
}  # fmt: skip
