"""Faults of RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node
from tests.mutants.mutant import attribute, inputs, misread

CELLS = {"RNN": 1, "GRU": 3, "LSTM": 4}


def without(*names: str) -> Callable[[Node], Node]:
    """The node without some of its inputs."""

    def change(node: Node) -> Node:
        return replace(node, inputs=tuple(None if o is not None and o.name in names else o for o in node.inputs))

    return change


def gates_permuted(order: tuple[int, ...]) -> Callable[[str, Array], Array]:
    """W, R and B with the rows of their gates in another order."""

    def change(name: str, value: Array) -> Array:
        if name not in ("W", "R", "B"):
            return value
        halves = 2 if name == "B" else 1
        rows = value.reshape(value.shape[0], halves, len(order), -1)
        return rows[:, :, list(order)].reshape(value.shape)

    return change


def bias_halves_exchanged(name: str, value: Array) -> Array:
    return np.roll(value, value.shape[-1] // 2, axis=-1) if name == "B" else value


def time_reversed(name: str, value: Array) -> Array:
    return value[::-1] if name == "X" else value


def half_precision(name: str, value: Array) -> Array:
    return value.astype(np.float16).astype(value.dtype) if name == "R" else value


MUTANTS = (
    *(
        mutant
        for operator in CELLS
        for mutant in (
            attribute(operator, "direction", None),
            attribute(operator, "clip", None),
            attribute(operator, "activations", None),
            attribute(operator, "activation_alpha", None),
            attribute(operator, "activation_beta", None),
            misread(operator, "B is ignored", without("B")),
            misread(operator, "sequence_lens is ignored", without("sequence_lens")),
            misread(operator, "initial_h is ignored", without("initial_h")),
            inputs(operator, "the sequence runs backward", time_reversed),
            inputs(operator, "R is read in half precision", half_precision),
        )
    ),
    inputs("GRU", "the gates are taken as r, z, h", gates_permuted((1, 0, 2))),
    inputs("GRU", "Wb and Rb are exchanged", bias_halves_exchanged),
    attribute("GRU", "linear_before_reset", None),
    attribute("GRU", "linear_before_reset", 1),
    inputs("LSTM", "the gates are taken as i, f, o, c", gates_permuted((0, 2, 1, 3))),
    misread("LSTM", "initial_c is ignored", without("initial_c")),
    misread("LSTM", "peepholes are ignored", without("P")),
    attribute("LSTM", "input_forget", None),
)
