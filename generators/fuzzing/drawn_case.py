"""A node that was drawn, as a case like any other."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial

import numpy as np

from epcheck.generators import operator as declarations
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.fuzzing.drawing import Drawn
from epcheck.generators.node import Node

PREFIX = "fuzz_"
"""What the names of samples begin with that nobody wrote."""


def case_of(drawn: Drawn) -> Case:
    """The case of a node: its id has a digest of all that the node is, so the same node has the same id."""
    node = drawn.node
    return Case(
        node.op_type,
        node.domain,
        node.since_version,
        "-".join(drawn.dtypes),
        PREFIX + digest(node),
        drawn.binding,
        partial(_build, drawn),
    )


def digest(node: Node) -> str:
    """Twelve hexadecimal digits that say what the node is: operator, attributes, and the bits of its inputs."""
    found = hashlib.sha256(f"{node.domain}:{node.op_type}:{node.since_version}:{node.outputs}".encode())
    for name, value in sorted(node.attributes.items()):
        found.update(f"{name}={value.tolist() if isinstance(value, np.ndarray) else value!r};".encode())
    for operand in node.inputs:
        if operand is None:
            found.update(b"-")
            continue
        value = operand.value
        found.update(f"{operand.name}:{value.dtype}{value.shape}{operand.parameter}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    if node.surroundings:
        found.update(repr(node.surroundings).encode())
    return found.hexdigest()[:12]


def _build(drawn: Drawn, case: Case) -> BuiltCase:
    """The case with its model. A node that DirectML's description has no words for has no lowering."""
    try:
        return declarations.build_case(drawn.operator, drawn.node, drawn.truth, case)
    except Exception:  # of `lower`, which no sample prepared for such a node
        without = replace(drawn.operator, lower=_lower_nothing)
        return declarations.build_case(without, drawn.node, drawn.truth, case)


def _lower_nothing(_node: Node) -> None:
    return None
