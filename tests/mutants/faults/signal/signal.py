"""Faults of DFT and STFT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.node import Node, Operand
from tests.mutants.mutant import attribute, inputs, misread, outputs


def without(name: str) -> Callable[[Node], Node]:
    """The node without one of its inputs."""
    return lambda node: replace(
        node, inputs=tuple(None if o is not None and o.name == name else o for o in node.inputs)
    )


def next_axis(node: Node) -> Node:
    """The axis after the one that is asked for, as an attribute or an input."""
    inputs = tuple(Operand("axis", o.value + 1) if o is not None and o.name == "axis" else o for o in node.inputs)
    attributes = dict(node.attributes)
    if "axis" in attributes:
        attributes["axis"] = node.integer("axis", 0) + 1
    return replace(node, inputs=inputs, attributes=attributes)


def imaginary_part_lost(name: str, value: Array) -> Array:
    if name not in ("input", "signal") or value.shape[-1] != 2:
        return value
    return value * np.array([1, 0], value.dtype)


def conjugated(value: Array) -> Array:
    return value * np.array([1, -1], value.dtype) if value.shape[-1] == 2 else value


def step_is_one(name: str, value: Array) -> Array:
    return np.ones_like(value) if name == "frame_step" else value


MUTANTS = (
    attribute("DFT", "inverse", None),
    attribute("DFT", "onesided", None),
    misread("DFT", "dft_length is ignored", without("dft_length")),
    misread("DFT", "the next axis is taken", next_axis),
    misread("DFT", "the input axis is ignored", without("axis")),
    inputs("DFT", "the imaginary part is lost", imaginary_part_lost),
    outputs("DFT", "the spectrum turns the other way", conjugated),
    outputs("DFT", "scaled by 1.001", lambda value: (value * value.dtype.type(1.001)).astype(value.dtype)),
    attribute("STFT", "onesided", None),
    attribute("STFT", "onesided", 0),
    misread("STFT", "the window is ignored", without("window")),
    inputs("STFT", "frame_step is 1", step_is_one),
    inputs("STFT", "the imaginary part is lost", imaginary_part_lost),
    outputs("STFT", "the spectrum turns the other way", conjugated),
)
