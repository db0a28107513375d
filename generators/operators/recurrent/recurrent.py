"""RNN, GRU, LSTM (7, 14, 22) -> DML_RNN_, DML_GRU_, DML_LSTM_OPERATOR_DESC.

Sources: the operator pages. The truth takes the page's equations step by step in float64; the bound is the error that a
provider accumulates over the steps, see `running_error`: each step passes on the error of its hidden state through |R|
and the activation's Lipschitz constant, and adds gamma(n) for its sums and the ULP of the activation.

What the pages leave open: a sequence longer than X (no sample: the DML EP accepts it and reads and writes beyond its
buffers, so that whatever runs next to it answers at random), Y beyond the end of a shorter sequence (any value is
accepted), a sequence of length 0 (no sample), and which alpha belongs to which function when functions without one
stand before it (no sample). A clip that reaches the cell state clips it as the input of the activation h, not in Y_c.
input_forget is the coupled gate of the literature: f = 1 - i.
How the DML EP lowers them: DmlOperatorRecurrentNeuralNetwork.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds.running_error import Approximate, Terms, dot, output, product, term, total, unit_of
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.declaration.interaction import Interaction, Random
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.declaration.undefined_sample import LENGTH, Answer, UndefinedSample, UndefinedSamples
from epcheck.generators.directml.descriptions.recurrent.recurrent import lowered
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import Operator, declare
from epcheck.generators.oracle_math.activations import FUNCTIONS, Activation, consumed
from epcheck.generators.truth import Outputs, Refusal, Truth

DECLARES = (
    "RNN",
    "GRU",
    "LSTM",
)

RECURRENT = {name: function for name, function in FUNCTIONS.items() if name != "Selu"}
"""The functions that the pages name."""


@dataclass(frozen=True)
class Cell:
    """What tells the three operators apart.

    gates: rows of hidden_size in W. activations: the defaults of one direction. outputs: all of them.
    peepholes: rows of hidden_size in P.
    """

    name: str
    gates: int
    activations: tuple[str, ...]
    outputs: tuple[str, ...]
    peepholes: int = 0


CELLS = {
    "RNN": Cell("RNN", 1, ("Tanh",), ("Y", "Y_h")),
    "GRU": Cell("GRU", 3, ("Sigmoid", "Tanh"), ("Y", "Y_h")),
    "LSTM": Cell("LSTM", 4, ("Sigmoid", "Tanh", "Tanh"), ("Y", "Y_h", "Y_c"), 3),
}


@dataclass(frozen=True, kw_only=True)
class RecurrentSample(Sample):
    """sizes: seq_length, batch_size, input_size, hidden_size. present: the optional inputs that the node has.

    lens: sequence_lens, where it is present. outputs: those asked for; None for all. attributes: of the
    node. values: what X looks like, see `_x`. broken: what makes the node invalid, see `_break`.
    """

    sizes: tuple[int, int, int, int] = (4, 3, 5, 6)
    present: tuple[str, ...] = ()
    lens: tuple[int, ...] = ()
    outputs: tuple[str, ...] | None = None
    attributes: tuple[tuple[str, Attribute], ...] = ()
    values: str = "small"
    broken: str = ""

    @property
    def directions(self) -> int:
        return 2 if dict(self.attributes).get("direction") == "bidirectional" else 1

    @property
    def layout(self) -> bool:
        return dict(self.attributes).get("layout") == 1


def samples(cell: Cell) -> Iterator[RecurrentSample]:
    yield RecurrentSample(name="defaults", every_dtype=True)
    yield from _directions(cell)
    yield from _inputs(cell)
    yield from _outputs(cell)
    yield from _activations(cell)
    yield from _flags(cell)
    yield from _sizes()
    yield from _values(cell)
    yield from map(expect_refusal, _refused(cell))


def _directions(cell: Cell) -> Iterator[RecurrentSample]:
    everything = _optional(cell)
    for direction in ("forward", "reverse", "bidirectional"):
        direction_attribute = (("direction", direction),)
        yield RecurrentSample(name=direction, attributes=direction_attribute, every_dtype=direction != "forward")
        yield RecurrentSample(
            name=f"{direction}_all_inputs",
            present=everything,
            lens=(2, 4, 1),
            attributes=direction_attribute,
            every_dtype=direction == "bidirectional",
        )
        yield RecurrentSample(name=f"{direction}_variable_lengths", present=("sequence_lens",), lens=(1, 4, 3),
                              attributes=direction_attribute)  # fmt: skip
        yield RecurrentSample(
            name=f"{direction}_variable_lengths_last_only",
            present=("sequence_lens", "B"),
            lens=(3, 1, 2),
            outputs=cell.outputs[1:],
            attributes=direction_attribute,
            every_dtype=direction == "reverse",
        )
        for layout in (0, 1):
            attributes = (*direction_attribute, ("layout", layout))
            yield RecurrentSample(name=f"{direction}_layout_{layout}", attributes=attributes)
            yield RecurrentSample(
                name=f"{direction}_layout_{layout}_all_inputs",
                present=everything,
                lens=(2, 4, 3),
                attributes=attributes,
            )


def _optional(cell: Cell) -> tuple[str, ...]:
    return ("B", "sequence_lens", "initial_h") + (("initial_c", "P") if cell.peepholes else ())


def _inputs(cell: Cell) -> Iterator[RecurrentSample]:
    for count in (1, 2):
        for present in combinations(_optional(cell), count):
            name = "with_" + "_and_".join(part.lower() for part in present)
            yield RecurrentSample(name=name, present=present, lens=(4, 4, 4), every_dtype=present in (("B",), ("P",)))
    yield RecurrentSample(name="with_all_inputs", present=_optional(cell), lens=(4, 4, 4), every_dtype=True)
    yield RecurrentSample(name="lengths_all_1", present=("sequence_lens",), lens=(1, 1, 1))
    yield RecurrentSample(name="no_hidden_size", attributes=(("hidden_size", ()),))


def _outputs(cell: Cell) -> Iterator[RecurrentSample]:
    for count in range(1, len(cell.outputs)):
        for asked in combinations(cell.outputs, count):
            for direction in ("forward", "bidirectional"):
                yield RecurrentSample(
                    name=f"only_{'_and_'.join(asked).lower()}_{direction}",
                    outputs=asked,
                    present=("B", "initial_h"),
                    attributes=(("direction", direction),),
                )


def _activations(cell: Cell) -> Iterator[RecurrentSample]:
    """Every function in every place; with alpha and beta where no other function could take them instead."""
    for position, _ in enumerate(cell.activations):
        for name, function in RECURRENT.items():
            names = (*cell.activations[:position], name, *cell.activations[position + 1 :])
            needed = any(map(np.isnan, function.parameters.values()))
            if not needed and (position == 0 or names != cell.activations):
                yield RecurrentSample(
                    name=f"activation_{'fgh'[position]}_{name.lower()}",
                    present=("B",),
                    attributes=(("activations", names),),
                )
            if function.parameters and position == 0:
                yield RecurrentSample(
                    name=f"activation_f_{name.lower()}_with_parameters",
                    present=("B", "initial_h"),
                    attributes=(("activations", names), *_parameters((name,))),
                )
    for combination in (("HardSigmoid", "ScaledTanh", "Affine"), ("Affine", "HardSigmoid", "ScaledTanh")):
        for direction in ("forward", "bidirectional"):
            names = combination[: len(cell.activations)]
            if direction == "bidirectional":
                names += tuple(reversed(names))
            yield RecurrentSample(
                name=f"activations_{names[0].lower()}_first_each_with_parameters_{direction}",
                attributes=(("activations", names), ("direction", direction), *_parameters(names)),
            )
    for direction in ("reverse", "bidirectional"):
        names = ("LeakyRelu", "Elu", "ThresholdedRelu")[: len(cell.activations)]
        names += ("Softsign", "Relu", "Softplus")[: len(cell.activations)] if direction == "bidirectional" else ()
        yield RecurrentSample(
            name=f"activations_differ_{direction}",
            present=("B",),
            attributes=(("activations", names), ("direction", direction), *_parameters(names)),
        )


def _parameters(names: tuple[str, ...]) -> tuple[tuple[str, Attribute], ...]:
    """alpha and beta for every function that takes them: different from the defaults and from each other."""
    values = {"Affine": (0.5, 0.25), "LeakyRelu": (0.25, 0), "ThresholdedRelu": (0.0625, 0), "ScaledTanh": (1.5, 0.5),
              "HardSigmoid": (0.25, 0.375), "Elu": (0.5, 0)}  # fmt: skip
    alphas = tuple(float(values[name][0]) for name in names if "alpha" in RECURRENT[name].parameters)
    betas = tuple(float(values[name][1]) for name in names if "beta" in RECURRENT[name].parameters)
    return (("activation_alpha", alphas),) + ((("activation_beta", betas),) if betas else ())


def _flags(cell: Cell) -> Iterator[RecurrentSample]:
    for name, clip in {"0_5": 0.5, "0_0625": 0.0625, "100": 100.0}.items():
        for direction in ("forward", "bidirectional"):
            yield RecurrentSample(
                name=f"clip_{name}_{direction}",
                present=("B",),
                attributes=(("clip", clip), ("direction", direction)),
                every_dtype=name == "0_5" and direction == "forward",
            )
    flag = {"GRU": "linear_before_reset", "LSTM": "input_forget"}.get(cell.name)
    if flag is None:
        return
    for value in (0, 1):
        for direction in ("forward", "reverse", "bidirectional"):
            attributes: tuple[tuple[str, Attribute], ...] = ((flag, value), ("direction", direction))
            yield RecurrentSample(name=f"{flag}_{value}_{direction}", attributes=attributes)
            yield RecurrentSample(
                name=f"{flag}_{value}_{direction}_all_inputs",
                present=_optional(cell),
                lens=(4, 2, 3),
                attributes=attributes,
                every_dtype=value == 1 and direction == "forward",
            )
        yield RecurrentSample(
            name=f"{flag}_{value}_clip", present=("B", "initial_h"), attributes=((flag, value), ("clip", 0.25))
        )


def _sizes() -> Iterator[RecurrentSample]:
    for name, sizes in {
        "all_sizes_1": (1, 1, 1, 1),
        "one_step": (1, 3, 5, 6),
        "batch_1": (4, 1, 5, 6),
        "input_1": (4, 3, 1, 6),
        "hidden_1": (4, 3, 5, 1),
        "odd_sizes": (7, 5, 17, 33),
        "hidden_64": (3, 2, 8, 64),
        "input_129": (2, 2, 129, 4),
        "batch_65": (2, 65, 3, 4),
        "long_sequence": (65, 2, 3, 4),
    }.items():
        for direction in ("forward", "bidirectional"):
            yield RecurrentSample(
                name=f"{name}_{direction}", sizes=sizes, present=("B",), attributes=(("direction", direction),)
            )


def _values(cell: Cell) -> Iterator[RecurrentSample]:
    yield RecurrentSample(name="zeros", values="zeros", present=("B",))
    yield RecurrentSample(name="saturated", values="saturated", every_dtype=True)
    yield RecurrentSample(name="nan_in_one_sequence", values="nan", every_dtype=True)
    yield RecurrentSample(name="nan_in_one_sequence_reverse", values="nan", attributes=(("direction", "reverse"),))
    yield RecurrentSample(name="nan_in_padding", values="nan_at_the_end", present=("sequence_lens",), lens=(4, 3, 4),
                          outputs=cell.outputs[1:])  # fmt: skip


def _refused(cell: Cell) -> Iterator[RecurrentSample]:
    for broken in ("x_rank_2", "w_input_size", "w_directions", "r_hidden_size", "b_length", "initial_h_batch",
                   "sequence_lens_count"):  # fmt: skip
        inputs = {"b_length": ("B",), "initial_h_batch": ("initial_h",), "sequence_lens_count": ("sequence_lens",)}
        yield RecurrentSample(name=broken, broken=broken, present=inputs.get(broken, ()), lens=(4, 4, 4))
    yield RecurrentSample(name="hidden_size_differs", attributes=(("hidden_size", 7),))
    yield RecurrentSample(name="unknown_direction", attributes=(("direction", "sideways"),))
    unknown = ("Signum", *cell.activations[1:])
    yield RecurrentSample(name="unknown_activation", attributes=(("activations", unknown),))
    if len(cell.activations) > 1:
        yield RecurrentSample(name="too_few_activations", attributes=(("activations", cell.activations[:1]),))


def bindings(cell: Cell, sample: RecurrentSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    attributes = schema.schema(cell.name, since_version).attributes
    if not all(name in attributes for name, _ in sample.attributes):
        return ()
    if dtypes != ("float32",):
        return (graph.INITIALIZER,) if sample.every_dtype else ()
    if since_version != newest_claimed_version(cell.name):
        return (graph.INITIALIZER,)
    return tuple(graph.BINDINGS) if sample.every_dtype else (graph.INITIALIZER, graph.RUNTIME)


def node(cell: Cell, sample: RecurrentSample, context: CaseContext) -> Node:
    """X [seq, batch, input], W [dirs, gates * hidden, input], R [dirs, gates * hidden, hidden] and what is optional.

    With layout 1 the batch comes first in X and in the initial states. sequence_lens is int32, the rest one dtype.
    """
    values = {name: value.astype(context.dtype) if value.dtype.kind == "f" else value
              for name, value in _arrays(cell, sample, context).items()}  # fmt: skip
    _break(sample.broken, values)
    signature = schema.schema(cell.name, context.since_version)
    inputs = [
        Operand(formal.name, values[formal.name], parameter=formal.name in ("W", "R", "B", "P"))
        if formal.name in values
        else None
        for formal in signature.inputs
    ]
    while inputs[-1] is None:
        inputs.pop()
    asked = cell.outputs if sample.outputs is None else sample.outputs
    outputs = [name if name in asked else "" for name in cell.outputs]
    while not outputs[-1]:
        outputs.pop()
    attributes = {"hidden_size": sample.sizes[3], **dict(sample.attributes)}
    if attributes["hidden_size"] == ():
        del attributes["hidden_size"]
    return Node(cell.name, "", context.since_version, tuple(inputs), tuple(outputs), attributes)


def _arrays(cell: Cell, sample: RecurrentSample, context: CaseContext) -> dict[str, Array]:
    """Weights shrink with the number of terms, so that the activations see all of their curve and not its ends."""
    _, batch, width, hidden = sample.sizes
    dirs, rows, rng = sample.directions, cell.gates * hidden, context.rng
    state = (batch, dirs, hidden) if sample.layout else (dirs, batch, hidden)
    values = {
        "X": _x(sample, context),
        "W": rng.uniform(-1.5, 1.5, (dirs, rows, width)) / np.sqrt(width),
        "R": rng.uniform(-1.5, 1.5, (dirs, rows, hidden)) / np.sqrt(hidden),
        "B": rng.uniform(-1, 1, (dirs, 2 * rows)),
        "sequence_lens": np.array(sample.lens, np.int32),
        "initial_h": rng.uniform(-1, 1, state),
        "initial_c": rng.uniform(-1, 1, state),
        "P": rng.uniform(-1, 1, (dirs, cell.peepholes * hidden)),
    }
    return {name: values[name] for name in ("X", "W", "R", *sample.present)}


def _x(sample: RecurrentSample, context: CaseContext) -> Array:
    seq, batch, width, _ = sample.sizes
    x = context.rng.uniform(-2, 2, (seq, batch, width))
    match sample.values:
        case "zeros":
            x[:] = 0
        case "saturated":
            x *= 100
        case "nan":
            x[1, 1, 0] = np.nan
        case "nan_at_the_end":
            x[-1, 1] = np.nan
    return x.swapaxes(0, 1) if sample.layout else x


def _break(broken: str, values: dict[str, Array]) -> None:
    match broken:
        case "x_rank_2":
            values["X"] = values["X"][0]
        case "w_input_size":
            values["W"] = values["W"][..., 1:]
        case "w_directions":
            values["W"], values["R"] = (np.repeat(values[name], 2, axis=0) for name in ("W", "R"))
        case "r_hidden_size":
            values["R"] = values["R"][..., 1:]
        case "b_length":
            values["B"] = values["B"][:, 1:]
        case "initial_h_batch":
            values["initial_h"] = values["initial_h"][:, 1:]
        case "sequence_lens_count":
            values["sequence_lens"] = values["sequence_lens"][1:]


@dataclass(frozen=True)
class _Direction:
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
        return self.clipped(total(self.unit, *terms))

    def clipped(self, x: Approximate) -> Approximate:
        """Clipping moves no two values apart, so the error stays."""
        return replace(x, value=np.clip(x.value, -self.clip, self.clip))

    def sums(self, index: int, x: Approximate, h: Approximate) -> tuple[Terms, ...]:
        """X * W^T + H * R^T + Wb + Rb of one gate."""
        return (dot(x, self.w[index]), dot(h, self.r[index]), _constant(self.wb[index]), _constant(self.rb[index]))


def _constant(value: Array) -> Terms:
    return term(Approximate.exact(value))


State = tuple[Approximate, Approximate]
"""The hidden state and the cell state, [batch, hidden] each; only LSTM has the latter."""


def _rnn(d: _Direction, x: Approximate, state: State) -> State:
    (f,) = d.activations
    return f(d.gate(*d.sums(0, x, state[0])), d.unit), state[1]


def _gru(d: _Direction, x: Approximate, state: State) -> State:
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


def _lstm(d: _Direction, x: Approximate, state: State) -> State:
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
    return total(d.unit, product(o, activation(d.clipped(cell), d.unit))), cell


STEPS: dict[str, Callable[[_Direction, Approximate, State], State]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def truth(node: Node) -> Truth:
    """The page's equations, a step at a time; NaN and infinity go where float64 takes them."""
    cell = CELLS[node.op_type]
    if (reason := _broken_rule(node, cell)) is not None:
        return Refusal(reason)
    x = node.array("X")
    layout = bool(node.integer("layout", 0))
    steps = np.swapaxes(x, 0, 1) if layout else x
    with np.errstate(all="ignore"):
        runs = [_run(node, cell, index, np.asarray(steps, np.float64)) for index in range(node.array("W").shape[0])]
    y, h, c = (_stacked([run[part] for run in runs], axis) for part, axis in ((0, 1), (1, 0), (2, 0)))
    if layout:
        y, h, c = _moved(y, 2, 0), _moved(h, 1, 0), _moved(c, 1, 0)
    found = {"Y": y, "Y_h": h, "Y_c": c}
    return Outputs(tuple(output(name, found[name], x.dtype) for name in node.results))


def _stacked(parts: list[Approximate], axis: int) -> Approximate:
    return Approximate(np.stack([p.value for p in parts], axis), np.stack([p.error for p in parts], axis))


def _moved(state: Approximate, source: int, target: int) -> Approximate:
    return Approximate(np.moveaxis(state.value, source, target), np.moveaxis(state.error, source, target))


def _run(node: Node, cell: Cell, index: int, steps: Array) -> tuple[Approximate, Approximate, Approximate]:
    """One direction: Y [seq, batch, hidden], Y_h and Y_c [batch, hidden]. A sequence that is over keeps its state."""
    seq, batch, _ = steps.shape
    direction = _direction(node, cell, index)
    hidden = direction.w.shape[1]
    lens = node.value("sequence_lens")
    lens = np.full(batch, seq) if lens is None else lens
    state: State = (
        _initial(node, "initial_h", index, batch, hidden),
        _initial(node, "initial_c", index, batch, hidden),
    )
    backward = index == 1 or node.text("direction", "forward") == "reverse"
    rows: list[Approximate] = [state[0]] * seq
    for t in reversed(range(seq)) if backward else range(seq):
        active = (t < lens)[:, None]
        h, c = STEPS[cell.name](direction, Approximate.exact(steps[t]), state)
        state = h.where(active, state[0]), c.where(active, state[1])
        rows[t] = h.where(active, Approximate(np.zeros_like(h.value), np.full_like(h.value, np.inf)))
    empty = Approximate.exact(np.zeros((0, batch, hidden)))
    return (_stacked(rows, 0) if rows else empty), *state


def _initial(node: Node, name: str, index: int, batch: int, hidden: int) -> Approximate:
    state = node.value(name)
    if state is None:
        return Approximate.exact(np.zeros((batch, hidden)))
    return Approximate.exact(state[:, index] if node.integer("layout", 0) else state[index])


def _direction(node: Node, cell: Cell, index: int) -> _Direction:
    w, r = (node.array(name)[index].astype(np.float64) for name in ("W", "R"))
    hidden = r.shape[-1]
    bias = node.value("B")
    biases = np.zeros(2 * len(w)) if bias is None else bias[index].astype(np.float64)
    wb, rb = biases.reshape(2, cell.gates, hidden)
    p = node.value("P")
    count = len(cell.activations)
    flag = {"GRU": "linear_before_reset", "LSTM": "input_forget"}.get(cell.name, "")
    return _Direction(
        w.reshape(cell.gates, hidden, -1),
        r.reshape(cell.gates, hidden, hidden),
        wb,
        rb,
        np.zeros(0) if p is None else p[index].astype(np.float64).reshape(-1, hidden),
        _activations_of(node, cell)[index * count : (index + 1) * count],
        node.number("clip", np.inf),
        bool(node.attributes.get(flag, 0)),
        unit_of(node.array("W").dtype),
    )


def _names(node: Node, cell: Cell) -> tuple[str, ...]:
    names = node.attributes.get("activations", cell.activations * node.array("W").shape[0])
    return tuple(str(name) for name in names)


def _activations_of(node: Node, cell: Cell) -> list[Activation]:
    alphas, betas = (node.attributes.get(f"activation_{which}", ()) for which in ("alpha", "beta"))
    return consumed(_names(node, cell), tuple(alphas), tuple(betas))  # type: ignore[arg-type]


def _broken_rule(node: Node, cell: Cell) -> str | None:
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


def lower(cell: Cell, node: Node) -> Lowering | None:
    """None for a node that is refused, for layout 1, which the EP declines, and where nothing is executed."""
    if _broken_rule(node, cell) is not None or node.integer("layout", 0):
        return None
    count = 2 * len(cell.activations)
    activations = _activations_of(node, cell)[:count]
    return lowered(node, activations)


def _operator(cell: Cell) -> Operator[RecurrentSample]:
    return Operator(
        cell.name,
        partial(samples, cell),
        partial(bindings, cell),
        partial(node, cell),
        truth,
        partial(lower, cell),
    )


BESIDE_RELU: Mapping[str, Mapping[str, Attribute]] = {
    "clip": {"clip": 0.3},
    "peepholes": {},
    "coupled_gates": {"input_forget": 1},
}
"""What meets Relu in an LSTM."""

INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "GRU": (
        Interaction("linear_before_reset_and_64_hidden",
                (Random((3, 2, 8), -1, 1), Random((1, 192, 8), -0.3, 0.3), Random((1, 192, 64), -0.1, 0.1)),
                {"hidden_size": 64, "linear_before_reset": 1}, "float32", 2),
        Interaction("linear_before_reset_and_relu",
                (Random((3, 2, 3), -1, 1), Random((1, 12, 3), -1, 1), Random((1, 12, 4), -0.5, 0.5)),
                {"hidden_size": 4, "linear_before_reset": 1, "activations": ("Sigmoid", "Relu")}, "float32", 2),
        Interaction("clip_and_activations",
                (Random((3, 2, 3), -3, 3), Random((1, 12, 3), -1, 1), Random((1, 12, 4), -0.5, 0.5)),
                {"hidden_size": 4, "clip": 0.3, "activations": ("HardSigmoid", "Tanh")}, "float32", 2),
    ),
    "RNN": (
        Interaction("clip_and_relu",
                (Random((3, 2, 3), -3, 3), Random((1, 4, 3), -1, 1), Random((1, 4, 4), -0.5, 0.5)),
                {"hidden_size": 4, "clip": 0.5, "activations": ("Relu",)}, "float32", 2),
        Interaction("two_directions_of_affine_with_other_numbers",
                (Random((3, 2, 3), -1, 1), Random((2, 4, 3), -1, 1), Random((2, 4, 4), -0.5, 0.5)),
                {"hidden_size": 4, "direction": "bidirectional", "activations": ("Affine", "Affine"),
                 "activation_alpha": (0.3, 0.4), "activation_beta": (0.1, 0.9)}, "float32", 2),
    ),
    "LSTM": (
        *(
        Interaction(f"{name}_and_relu",
                    (Random((3, 2, 3), -1, 1), Random((1, 16, 3), -1, 1), Random((1, 16, 4), -0.5, 0.5), None, None,
                    None, None,
                     Random((1, 12), -1, 1) if name == "peepholes" else None)[: 8 if name == "peepholes" else 3],
                    {"hidden_size": 4, "activations": ("Sigmoid", "Tanh", "Relu"), **attributes}, "float32", 3)
        for name, attributes in BESIDE_RELU.items()
    ),
    ),
}  # fmt: skip

OPTIONAL_IO: Mapping[str, tuple[OptionalIO, ...]] = {
    "LSTM": (
        OptionalIO(
            "forward_all_inputs",
            inputs=each_alone("B", "sequence_lens", "initial_h", "initial_c", "P"),
        ),
    ),
}


def _undefined_lengths(gates: int, outputs: int) -> UndefinedSamples:
    x, w, r = (np.full(shape, 0.25, np.float32) for shape in ((2, 1, 3), (1, gates * 2, 3), (1, gates * 2, 2)))
    every = Answer(np.zeros((2, 1, 1, 2), np.float32))
    last = Answer(np.zeros((1, 1, 2), np.float32))
    for name, length in (("length_beyond_the_steps", 5), ("length_below_0", -1)):
        inputs = (x, w, r, None, np.array([length], np.int32))
        answers = (every, *[last] * (outputs - 1))
        yield UndefinedSample(name, "float32", LENGTH, inputs, answers, {"hidden_size": 2})


UNDEFINED = {
    "RNN": partial(_undefined_lengths, 1, 2),
    "GRU": partial(_undefined_lengths, 3, 2),
    "LSTM": partial(_undefined_lengths, 4, 3),
}


STATES = {"RNN": ("initial_h",), "GRU": ("initial_h",), "LSTM": ("initial_h", "initial_c")}
BOTH = (False, True)
LENGTHS = (1, 7, 17, 33)


def _make_space(cell: Cell) -> ParameterSpace:
    own = {"GRU": {"linear_before_reset": (0, 1)}, "LSTM": {"P": BOTH, "input_forget": (0, 1)}}.get(cell.name, {})
    choices = {
        "direction": ("forward", "reverse", "bidirectional"),
        "clip": (None, 0.5),
        **dict.fromkeys(("B", "sequence_lens", *STATES[cell.name]), BOTH),
        **own,
        **dict.fromkeys(cell.outputs, BOTH[::-1]),
    }
    return ParameterSpace(
        {"steps": 3, "batch": 2, "inputs": 3, "hidden": 2},
        partial(_make_parts, cell),
        choices,
        dict.fromkeys(("steps", "inputs", "hidden", "batch"), LENGTHS),
        (),
        lambda values: any(values[name] for name in cell.outputs),
    )


def _make_parts(cell: Cell, values: Values, rng: np.random.Generator) -> Parts:
    directions = 2 if values["direction"] == "bidirectional" else 1
    steps, batch, inputs, hidden = (values[name] for name in ("steps", "batch", "inputs", "hidden"))

    def draw(*shape: int) -> Array:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    state = draw(directions, batch, hidden), draw(directions, batch, hidden)
    operands: list[Array | None] = [
        draw(steps, batch, inputs),
        draw(directions, cell.gates * hidden, inputs),
        draw(directions, cell.gates * hidden, hidden),
        draw(directions, 2 * cell.gates * hidden) if values["B"] else None,
        rng.integers(1, steps, batch, endpoint=True).astype(np.int32) if values["sequence_lens"] else None,
        *(array if values[name] else None for name, array in zip(STATES[cell.name], state, strict=False)),
    ]
    if cell.name == "LSTM":
        operands.append(draw(directions, 3 * hidden) if values["P"] else None)
    while operands[-1] is None:
        operands.pop()
    names = ("direction", "clip", "linear_before_reset", "input_forget")
    attributes = {name: values[name] for name in names if values.get(name)}
    outputs = tuple(values[name] for name in cell.outputs)
    return Parts(tuple(operands), {**attributes, "hidden_size": hidden}, (1, 2), outputs)


PARAMETER_SPACES = {name: _make_space(cell) for name, cell in CELLS.items()}

OPERATORS = declare(
    tuple(map(_operator, CELLS.values())),
    interactions=INTERACTIONS,
    optional_io=OPTIONAL_IO,
    undefined=UNDEFINED,
    parameter_spaces=PARAMETER_SPACES,
)
