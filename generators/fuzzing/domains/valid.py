"""What the schema demands of every node: required attributes and inputs, and names that a graph has once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from onnx.defs import OpSchema

from epcheck.generators import schema
from epcheck.generators.node import Node

SINGLE = OpSchema.FormalParameterOption.Single


@dataclass(frozen=True)
class _Demands:
    """attributes: (name, whether it is required, whether its list may be empty) of each; names: theirs. inputs: (place,
    name) of those that are required. counts: of inputs, at least and at most."""

    attributes: tuple[tuple[str, bool, bool], ...]
    names: frozenset[str]
    inputs: tuple[tuple[int, str], ...]
    counts: tuple[int, int]


@cache
def _demands(op_type: str, since_version: int, domain: str) -> _Demands:
    definition = schema.schema(op_type, since_version, domain)
    attributes = definition.attributes.items()
    return _Demands(
        tuple((name, each.required, each.type == OpSchema.AttrType.INTS) for name, each in attributes),
        frozenset(definition.attributes),
        tuple((place, formal.name) for place, formal in enumerate(definition.inputs) if formal.option == SINGLE),
        (definition.min_input, definition.max_input),
    )


def why_not(node: Node) -> str:
    """What the node lacks that its schema demands, in words; empty where it is valid."""
    demands = _demands(node.op_type, node.since_version, node.domain)
    graphs = node.surroundings.graphs if node.surroundings else {}
    for name, is_required, may_be_empty in demands.attributes:
        value = node.attributes.get(name)
        if value is None and is_required and name not in node.attributes and name not in graphs:
            return f"the attribute {name} is required"
        if isinstance(value, tuple) and not value and not may_be_empty:
            return f"the attribute {name} has no elements"
    if unknown := node.attributes.keys() - demands.names:
        return f"the schema has no attribute {min(unknown)}"
    if node.surroundings:
        return _why_not_around(node)
    for place, name in demands.inputs:
        if place >= len(node.inputs) or node.inputs[place] is None:
            return f"the input {name} is required"
    least, most = demands.counts
    if not least <= len(node.inputs) <= most:
        return f"there are {len(node.inputs)} inputs, and must be {least} to {most}"
    names = [operand.name for operand in node.inputs if operand is not None]
    return "" if len(set(names)) == len(names) else "two inputs have one name"


def _why_not_around(node: Node) -> str:
    around = node.surroundings
    assert around is not None
    definition = schema.schema(node.op_type, node.since_version, node.domain)
    least, most = definition.min_input, definition.max_input
    if not least <= len(around.inputs) <= most:
        return f"there are {len(around.inputs)} inputs, and must be {least} to {most}"
    made = {operand.name for operand in node.inputs if operand is not None}
    names = [proto.name for proto in (*around.before, *around.after) if proto.name]
    if len(set(names)) != len(names):
        return "two nodes have one name"
    for proto in around.before:
        if missing := set(filter(None, proto.input)) - made:
            return f"nothing makes the value {min(missing)}"
        made |= set(proto.output)
    if missing := set(filter(None, around.inputs)) - made:
        return f"nothing makes the value {min(missing)}"
    made |= set(around.outputs)
    for proto in around.after:
        if missing := set(filter(None, proto.input)) - made:
            return f"nothing makes the value {min(missing)}"
        made |= set(proto.output)
    missing = set(node.results) - made
    return f"nothing makes the output {min(missing)}" if missing else ""
