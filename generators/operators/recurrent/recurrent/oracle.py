"""What the pages of RNN, GRU and LSTM say of a node.

The truth takes the page's equations step by step in float64; the bound is the error that a provider accumulates over
the steps, see `running_error`: each step passes on the error of its hidden state through |R| and the activation's
Lipschitz constant, and adds gamma(n) for its sums and the ULP of the activation. A clip that reaches the cell state
clips it as the input of the activation h, not in Y_c. input_forget is the coupled gate of the literature: f = 1 - i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate, Terms, dot, output, product, term, total, unit_of
from epcheck.generators.node import Node
from epcheck.generators.operators.recurrent.recurrent.samples import CELLS, RECURRENT, Cell
from epcheck.generators.oracle_math.activations import Activation, consume
from epcheck.generators.truth import Outputs, Refusal, Truth


@dataclass(frozen=True)
class Direction:
    """The weights of one direction, float64.

    w, r: [gates, hidden, ...]. wb, rb: [gates, hidden]. p: [peepholes, hidden], or empty.
    """

    w: Array
    r: Array
    wb: Array
    rb: Array
    p: Array
    activations: list[Activation]
    clip: float
    flag: bool
    unit: float

    def gate(self, *terms: Terms) -> Approximate:
        """The input of an activation: the sum of its terms, clipped."""
        return self.limit(total(self.unit, *terms))

    def limit(self, x: Approximate) -> Approximate:
        """Clipping moves no two values apart, so the error stays."""
        return replace(x, value=np.clip(x.value, -self.clip, self.clip))

    def sums(self, index: int, x: Approximate, h: Approximate) -> tuple[Terms, ...]:
        """X * W^T + H * R^T + Wb + Rb of one gate."""
        return (dot(x, self.w[index]), dot(h, self.r[index]), _constant(self.wb[index]), _constant(self.rb[index]))


def _constant(value: Array) -> Terms:
    return term(Approximate.exact(value))


State = tuple[Approximate, Approximate]
"""The hidden state and the cell state, [batch, hidden] each; only LSTM has the latter."""


def _rnn(d: Direction, x: Approximate, state: State) -> State:
    (f,) = d.activations
    return f(d.gate(*d.sums(0, x, state[0])), d.unit), state[1]


def _gru(d: Direction, x: Approximate, state: State) -> State:
    f, g = d.activations
    h = state[0]
    z, r = (f(d.gate(*d.sums(index, x, h)), d.unit) for index in (0, 1))
    hidden: tuple[Terms, ...]
    if d.flag:
        reset = product(r, total(d.unit, dot(h, d.r[2]), _constant(d.rb[2])))
        hidden = (dot(x, d.w[2]), reset, _constant(d.wb[2]))
    else:
        hidden = d.sums(2, x, total(d.unit, product(r, h)))
    candidate = g(d.gate(*hidden), d.unit)
    keep = total(d.unit, _constant(np.ones_like(z.value)), term(z, -1))
    return total(d.unit, product(keep, candidate), product(z, h)), state[1]


def _lstm(d: Direction, x: Approximate, state: State) -> State:
    f, g, activation = d.activations
    h, c = state

    def peephole(index: int, of: Approximate) -> tuple[Terms, ...]:
        return (product(Approximate.exact(np.broadcast_to(d.p[index], of.value.shape)), of),) if d.p.size else ()

    i = f(d.gate(*d.sums(0, x, h), *peephole(0, c)), d.unit)
    if d.flag:
        forget = total(d.unit, _constant(np.ones_like(i.value)), term(i, -1))
    else:
        forget = f(d.gate(*d.sums(2, x, h), *peephole(2, c)), d.unit)
    candidate = g(d.gate(*d.sums(3, x, h)), d.unit)
    cell = total(d.unit, product(forget, c), product(i, candidate))
    o = f(d.gate(*d.sums(1, x, h), *peephole(1, cell)), d.unit)
    return total(d.unit, product(o, activation(d.limit(cell), d.unit))), cell


STEPS: dict[str, Callable[[Direction, Approximate, State], State]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def _keep(state: Approximate) -> Approximate:
    return state


def truth(node: Node) -> Truth:
    """The page's equations, a step at a time; NaN and infinity go where float64 takes them."""
    return judge_node(node, CELLS[node.op_type])


def judge_node(node: Node, cell: Cell, blur: Callable[[Approximate], Approximate] = _keep) -> Truth:
    """The same of a provider that does not read X and its own hidden states as they are. blur: how it reads them."""
    if (reason := find_broken_rule(node, cell)) is not None:
        return Refusal(reason)
    x = node.array("X")
    layout = bool(node.integer("layout", 0))
    steps = np.swapaxes(x, 0, 1) if layout else x
    with np.errstate(all="ignore"):
        read = blur(Approximate.exact(steps))
        runs = [_run(node, cell, index, read, blur) for index in range(node.array("W").shape[0])]
    y, h, c = (stack_parts([run[part] for run in runs], axis) for part, axis in ((0, 1), (1, 0), (2, 0)))
    if layout:
        y, h, c = _move_axis(y, 2, 0), _move_axis(h, 1, 0), _move_axis(c, 1, 0)
    found = {"Y": y, "Y_h": h, "Y_c": c}
    return Outputs(tuple(output(name, found[name], x.dtype) for name in node.results))


def stack_parts(parts: list[Approximate], axis: int) -> Approximate:
    return Approximate(np.stack([p.value for p in parts], axis), np.stack([p.error for p in parts], axis))


def _move_axis(state: Approximate, source: int, target: int) -> Approximate:
    return Approximate(np.moveaxis(state.value, source, target), np.moveaxis(state.error, source, target))


def _run(
    node: Node, cell: Cell, index: int, steps: Approximate, blur: Callable[[Approximate], Approximate]
) -> tuple[Approximate, Approximate, Approximate]:
    """One direction: Y [seq, batch, hidden], Y_h and Y_c [batch, hidden]. A sequence that is over keeps its state."""
    seq, batch, _ = steps.value.shape
    direction = read_direction(node, cell, index)
    hidden = direction.w.shape[1]
    lens = node.value("sequence_lens")
    lens = np.full(batch, seq) if lens is None else lens
    state: State = (
        read_initial(node, "initial_h", index, batch, hidden),
        read_initial(node, "initial_c", index, batch, hidden),
    )
    backward = index == 1 or node.text("direction", "forward") == "reverse"
    rows: list[Approximate] = [state[0]] * seq
    for t in reversed(range(seq)) if backward else range(seq):
        active = (t < lens)[:, None]
        x = Approximate(steps.value[t], steps.error[t])
        h, c = STEPS[cell.name](direction, x, (blur(state[0]), state[1]))
        state = h.where(active, state[0]), c.where(active, state[1])
        rows[t] = h.where(active, Approximate(np.zeros_like(h.value), np.full_like(h.value, np.inf)))
    empty = Approximate.exact(np.zeros((0, batch, hidden)))
    return (stack_parts(rows, 0) if rows else empty), *state


def read_initial(node: Node, name: str, index: int, batch: int, hidden: int) -> Approximate:
    state = node.value(name)
    if state is None:
        return Approximate.exact(np.zeros((batch, hidden)))
    return Approximate.exact(state[:, index] if node.integer("layout", 0) else state[index])


def read_direction(node: Node, cell: Cell, index: int) -> Direction:
    w, r = (node.array(name)[index].astype(np.float64) for name in ("W", "R"))
    hidden = r.shape[-1]
    bias = node.value("B")
    biases = np.zeros(2 * len(w)) if bias is None else bias[index].astype(np.float64)
    wb, rb = biases.reshape(2, cell.gates, hidden)
    p = node.value("P")
    count = len(cell.activations)
    flag = {"GRU": "linear_before_reset", "LSTM": "input_forget"}.get(cell.name, "")
    return Direction(
        w.reshape(cell.gates, hidden, -1),
        r.reshape(cell.gates, hidden, hidden),
        wb,
        rb,
        np.zeros(0) if p is None else p[index].astype(np.float64).reshape(-1, hidden),
        read_activations(node, cell)[index * count : (index + 1) * count],
        node.number("clip", np.inf),
        bool(node.attributes.get(flag, 0)),
        unit_of(node.array("W").dtype),
    )


def _names(node: Node, cell: Cell) -> tuple[str, ...]:
    names = node.attributes.get("activations", cell.activations * node.array("W").shape[0])
    return tuple(str(name) for name in names)


def read_activations(node: Node, cell: Cell) -> list[Activation]:
    alphas, betas = (node.attributes.get(f"activation_{which}", ()) for which in ("alpha", "beta"))
    return consume(_names(node, cell), tuple(alphas), tuple(betas))  # type: ignore[arg-type]


def find_broken_rule(node: Node, cell: Cell) -> str | None:
    """The first rule of the page that the node breaks."""
    x, r = node.array("X"), node.array("R")
    direction = node.text("direction", "forward")
    if direction not in ("forward", "reverse", "bidirectional"):
        return f"direction '{direction}' is none of forward, reverse, bidirectional"
    dirs = 2 if direction == "bidirectional" else 1
    if x.ndim != 3:
        return f"X must have 3 dimensions, not {x.ndim}"
    batch_axis, hidden = (0, r.shape[-1]) if node.integer("layout", 0) else (1, r.shape[-1])
    seq, batch, rows = x.shape[1 - batch_axis], x.shape[batch_axis], cell.gates * r.shape[-1]
    state = (batch, dirs, hidden) if node.integer("layout", 0) else (dirs, batch, hidden)
    shapes = {"W": (dirs, rows, x.shape[-1]), "R": (dirs, rows, hidden), "B": (dirs, 2 * rows), "initial_h": state,
              "initial_c": state, "sequence_lens": (batch,), "P": (dirs, cell.peepholes * hidden)}  # fmt: skip
    for name, shape in shapes.items():
        value = node.value(name)
        if value is not None and value.shape != shape:
            return f"{name} must have the shape {shape}, not {value.shape}"
    if node.integer("hidden_size", hidden) != hidden:
        return f"hidden_size is {node.integer('hidden_size', hidden)} where R has {hidden}"
    lens = node.value("sequence_lens")
    if lens is not None and (lens > seq).any():
        return f"a sequence of length {int(lens.max())} does not fit into X, which has {seq} steps"
    names = _names(node, cell)
    if len(names) != dirs * len(cell.activations):
        return f"activations must be {dirs * len(cell.activations)}, not {len(names)}"
    unknown = [name for name in names if name not in RECURRENT]
    return f"'{unknown[0]}' is no activation function" if unknown else None
