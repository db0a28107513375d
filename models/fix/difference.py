"""What differs between two models, node by node: nodes that are changed, added and gone, opsets, inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx
from onnx import helper, numpy_helper

from epcheck.models.graph import values
from epcheck.models.placement.apply import list_graphs
from epcheck.models.placement.placement import Placement
from epcheck.models.wrong_nodes.culprit import graph_node

SHOWN_ELEMENTS = 8
"""Elements of an attribute that a line shows at most."""


@dataclass(frozen=True)
class NodeDifference:
    """One node, or another part of the model, before and after. part: its name: of a node the bodies that it is in and
    its own, of an input or opset what it is. before, after: in words; empty where it is not there. placed_before,
    placed_after: the provider; empty where it has none."""

    part: str
    before: str
    after: str
    placed_before: str = ""
    placed_after: str = ""


def list_differences(
    before: onnx.ModelProto, after: onnx.ModelProto, placed: tuple[Placement | None, Placement | None]
) -> Iterator[NodeDifference]:
    """The differences of two models whose nodes have names: opsets, inputs, then nodes in the order of the later one;
    those that are gone first. placed: where their nodes run."""
    opsets = [{entry.domain or "ai.onnx": entry.version for entry in each.opset_import} for each in (before, after)]
    for domain in dict.fromkeys((*opsets[0], *opsets[1])):
        first, second = (str(each.get(domain, "")) for each in opsets)
        if first != second:
            yield NodeDifference(f"opset of {domain}", first, second)
    types = [{value.name: str(values.of(value.type)) for value in each.graph.input} for each in (before, after)]
    for name in dict.fromkeys((*types[0], *types[1])):
        if types[0].get(name) != types[1].get(name):
            yield NodeDifference(f"input '{name}'", types[0].get(name, ""), types[1].get(name, ""))
    nodes = [_nodes_of(each) for each in (before, after)]
    where = [{(n.scope, n.name): n.provider for n in each.nodes} if each else {} for each in placed]
    for key in (*(key for key in nodes[0] if key not in nodes[1]), *nodes[1]):
        first, second = (each.get(key, "") for each in nodes)
        if first != second:
            yield NodeDifference("".join(key), first, second, where[0].get(key, ""), where[1].get(key, ""))


def _nodes_of(model: onnx.ModelProto) -> dict[tuple[str, str], str]:
    scalars = {tensor.name: _number(tensor) for _, graph in list_graphs(model.graph, "") for tensor in graph.initializer
               if not tensor.dims or list(tensor.dims) == [1]}  # fmt: skip
    return {
        (scope, node.name): _text(node, scalars) for scope, graph in list_graphs(model.graph, "") for node in graph.node
    }


def _text(node: onnx.NodeProto, scalars: Mapping[str, str]) -> str:
    """`Reshape(x, shape) -> y, allowzero=1`. Constants of one element have their value."""
    inputs = ", ".join(f"{name}={scalars[name]}" if scalars.get(name) else name for name in node.input)
    domain = f"{node.domain}::" if node.domain not in ("", "ai.onnx") else ""
    attributes = "".join(f", {each.name}={_value(each)}" for each in sorted(node.attribute, key=lambda a: a.name))
    return f"{domain}{node.op_type}({inputs}) -> {', '.join(node.output)}{attributes}"


def _value(attribute: onnx.AttributeProto) -> str:
    if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
        return "a graph"
    if attribute.type == onnx.AttributeProto.TENSOR:
        return f"{values.NAMES.get(attribute.t.data_type, '?')}{list(attribute.t.dims)}"
    found = helper.get_attribute_value(attribute)
    if isinstance(found, bytes):
        return repr(found.decode("utf-8", "replace"))
    if isinstance(found, str | int | float):
        return f"{found:g}" if isinstance(found, float) else str(found)
    elements = list(found)
    return f"[{', '.join(map(str, elements[:SHOWN_ELEMENTS]))}{', …' if len(elements) > SHOWN_ELEMENTS else ''}]"


def _number(tensor: onnx.TensorProto) -> str:
    """The value of a tensor of one element; empty where it is not known."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.data_type == onnx.TensorProto.STRING:
        return ""
    try:
        return f"{numpy_helper.to_array(tensor).ravel()[0].item():.6g}"
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return ""


def name_node(model: onnx.ModelProto, scope: str, name: str) -> str:
    """A node in a sentence, with the bodies that it is in."""
    for path, graph in list_graphs(model.graph, ""):
        if path == scope:
            for at, node in enumerate(graph.node):
                if node.name == name:
                    here = onnx.ModelProto(graph=graph) if scope else model
                    return f"{graph_node(here, at)}{f' in {scope}' if scope else ''}"
    return f"`{scope}{name}`"
