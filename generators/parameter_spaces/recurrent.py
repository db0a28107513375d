"""LSTM, GRU and RNN: every optional input and output, and the attributes that change what a step computes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.declaration.parameter_space import ParameterSpace, Parts, Values

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STATES = {"RNN": ("initial_h",), "GRU": ("initial_h",), "LSTM": ("initial_h", "initial_c")}
BOTH = (False, True)
LENGTHS = (1, 7, 17, 33)


def spaces() -> Iterator[ParameterSpace]:
    """In a stable order."""
    for name, gates in GATES.items():
        optional = dict.fromkeys(("B", "sequence_lens", *STATES[name]), BOTH)
        own = {"GRU": {"linear_before_reset": (0, 1)}, "LSTM": {"P": BOTH, "input_forget": (0, 1)}}.get(name, {})
        outputs = dict.fromkeys(("Y", "Y_h", "Y_c")[: 1 + len(STATES[name])], BOTH[::-1])
        choices = {
            "direction": ("forward", "reverse", "bidirectional"),
            "clip": (None, 0.5),
            **optional,
            **own,
            **outputs,
        }
        sizes = {"steps": 3, "batch": 2, "inputs": 3, "hidden": 2}
        borders = {"steps": LENGTHS, "inputs": LENGTHS, "hidden": LENGTHS, "batch": LENGTHS}
        yield ParameterSpace(name, sizes, partial(_cell, name, gates), choices, borders, (), partial(_is_asked, name))


def _is_asked(name: str, values: Values) -> bool:
    """At least one output is there."""
    return any(values[each] for each in ("Y", "Y_h", "Y_c")[: 1 + len(STATES[name])])


def _cell(name: str, gates: int, values: Values, rng: np.random.Generator) -> Parts:
    directions = 2 if values["direction"] == "bidirectional" else 1
    steps, batch, inputs, hidden = (values[each] for each in ("steps", "batch", "inputs", "hidden"))

    def drawn(*shape: int) -> Array:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    state = drawn(directions, batch, hidden), drawn(directions, batch, hidden)
    operands: list[Array | None] = [
        drawn(steps, batch, inputs),
        drawn(directions, gates * hidden, inputs),
        drawn(directions, gates * hidden, hidden),
        drawn(directions, 2 * gates * hidden) if values["B"] else None,
        rng.integers(1, steps, batch, endpoint=True).astype(np.int32) if values["sequence_lens"] else None,
        *(array if values[each] else None for each, array in zip(STATES[name], state, strict=False)),
    ]
    if name == "LSTM":
        operands.append(drawn(directions, 3 * hidden) if values["P"] else None)
    while operands[-1] is None:
        operands.pop()
    attributes = {
        each: values[each] for each in ("direction", "clip", "linear_before_reset", "input_forget") if values.get(each)
    }
    outputs = tuple(values[each] for each in ("Y", "Y_h", "Y_c")[: 1 + len(STATES[name])])
    return Parts(tuple(operands), {**attributes, "hidden_size": hidden}, (1, 2), outputs)
