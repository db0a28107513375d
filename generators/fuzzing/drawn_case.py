"""A node that was drawn, as a case like any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from epcheck.generators import operator as declarations
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.fuzzing.drawing import Drawn
from epcheck.generators.fuzzing.node_digest import digest
from epcheck.generators.node import Node
from epcheck.generators.serialization.node_json import SerializedNode

PREFIX = "fuzz_"
"""What the names of samples begin with that nobody wrote."""


def case_of(drawn: Drawn) -> Case:
    """The case of a node."""
    return identify_node(drawn.serialized, partial(_build, drawn))


def identify_node(found: SerializedNode, builder: Callable[[Case], BuiltCase], source: str = "") -> Case:
    """The case of a node: its id has a digest of all that the node is, so the same node has the same id."""
    node = found.node
    return Case(
        node.op_type,
        node.domain,
        node.since_version,
        "-".join(found.dtypes),
        PREFIX + digest(node),
        found.binding,
        builder,
        source=source,
    )


def _build(drawn: Drawn, case: Case) -> BuiltCase:
    """The case with its model. A node that DirectML's description has no words for has no lowering."""
    try:
        return declarations.build_case(drawn.operator, drawn.node, drawn.truth, case)
    except Exception:  # of `lower`, which no sample prepared for such a node
        without = replace(drawn.operator, lower=_lower_nothing)
        return declarations.build_case(without, drawn.node, drawn.truth, case)


def _lower_nothing(_node: Node) -> None:
    return None
