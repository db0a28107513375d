"""RNN, GRU, LSTM (7, 14, 22) -> DML_RNN_, DML_GRU_, DML_LSTM_OPERATOR_DESC.

What the pages leave open: a sequence longer than X (no sample: the DML EP accepts it and reads and writes beyond its
buffers, so that whatever runs next to it answers at random), Y beyond the end of a shorter sequence (any value is
accepted), a sequence of length 0 (no sample), and which alpha belongs to which function when functions without one
stand before it (no sample).
How the DML EP lowers them: DmlOperatorRecurrentNeuralNetwork.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.declaration.interaction import Interaction, Random
from epcheck.generators.declaration.optional_io import OptionalIO, each_alone
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values
from epcheck.generators.declaration.undefined_sample import LENGTH, Answer, UndefinedSample, UndefinedSamples
from epcheck.generators.directml.descriptions.recurrent.recurrent import lower_network
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Attribute, Node
from epcheck.generators.operator import Operator, declare
from epcheck.generators.operators.recurrent.recurrent.oracle import find_broken_rule, read_activations, truth
from epcheck.generators.operators.recurrent.recurrent.samples import (
    CELLS,
    Cell,
    RecurrentSample,
    bindings,
    node,
    samples,
)

DECLARES = (
    "RNN",
    "GRU",
    "LSTM",
)


def lower(cell: Cell, node: Node) -> Lowering | None:
    """None for a node that is refused, for layout 1, which the EP declines, and where nothing is executed."""
    if find_broken_rule(node, cell) is not None or node.integer("layout", 0):
        return None
    count = 2 * len(cell.activations)
    activations = read_activations(node, cell)[:count]
    return lower_network(node, activations)


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
