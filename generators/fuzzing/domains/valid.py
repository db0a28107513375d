"""What the schema demands of every node: required attributes and inputs, and names that a graph has once."""

from __future__ import annotations

from onnx.defs import OpSchema

from epcheck.generators import schema
from epcheck.generators.node import Node

SINGLE = OpSchema.FormalParameterOption.Single


def why_not(node: Node) -> str:
    """What the node lacks that its schema demands, in words; empty where it is valid."""
    definition = schema.schema(node.op_type, node.since_version, node.domain)
    graphs = node.surroundings.graphs if node.surroundings else {}
    for name, attribute in definition.attributes.items():
        if attribute.required and name not in node.attributes and name not in graphs:
            return f"the attribute {name} is required"
        value = node.attributes.get(name)
        if isinstance(value, tuple) and not value and attribute.type != OpSchema.AttrType.INTS:
            return f"the attribute {name} has no elements"
    if unknown := node.attributes.keys() - definition.attributes.keys():
        return f"the schema has no attribute {min(unknown)}"
    if node.surroundings:
        return _why_not_around(node)
    for place, formal in enumerate(definition.inputs):
        if formal.option == SINGLE and (place >= len(node.inputs) or node.inputs[place] is None):
            return f"the input {formal.name} is required"
    if not definition.min_input <= len(node.inputs) <= definition.max_input:
        return f"there are {len(node.inputs)} inputs, and must be {definition.min_input} to {definition.max_input}"
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
