"""Changes of lone nodes, put into the whole model: new nodes take the place of the node; an opset is that of all nodes.

A node is changed by what `changes` gives for it alone. Names that come with the change are new in the whole model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import onnx
from onnx import defs

from epcheck.generators.claims import Claims
from epcheck.models.graph.values import bodies
from epcheck.models.placement import prediction
from epcheck.models.placement.change import Change, LoneNode, kind_of, opset_of
from epcheck.models.placement.changes import changes, rewrite_in_opset, substitute_definition

ONNX_DOMAINS = ("", "ai.onnx")

AskLone = Callable[[str, str], LoneNode]
"""(scope, name) -> the node of a model alone. Raises SubgraphError."""

Look = Callable[[onnx.ModelProto], AskLone]
"""How the nodes of a model are seen alone."""


class ApplyError(ValueError):
    """A change that cannot be made in the whole model; the message says why."""


def find_change(alone: LoneNode, words: str, claims: Claims | None) -> Change:
    """The change of a node that has these words, but for names of values. Raises ApplyError."""
    wanted = kind_of(words)
    for change in changes(alone, claims):
        if kind_of(change.words) == wanted:
            return change
    raise ApplyError("the change is none of this node, which differs in its constants or received values")


def replace_node(model: onnx.ModelProto, scope: str, alone: LoneNode, changed: onnx.ModelProto) -> None:
    """Put the nodes of a changed lone node in the place of the node, in the graph of that scope."""
    graph = find_graph(model, scope)
    at = find_node(graph, alone.node.name)
    if at < 0:
        raise ApplyError("an earlier change took the node away")
    taken = _Names(model)
    before = {tensor.name: tensor for tensor in alone.model.graph.initializer}
    constants = {name for node in alone.model.graph.node if node.op_type == "Constant" for name in node.output}
    interface = {*alone.node.output, *before, *constants, *(value.name for value in alone.model.graph.input)}
    renamed: dict[str, str] = {}
    tensors = [
        tensor for tensor in changed.graph.initializer
        if tensor.name not in before or tensor.SerializeToString() != before[tensor.name].SerializeToString()
    ]  # fmt: skip
    nodes = [node for node in changed.graph.node if not constants.intersection(node.output)]
    for name in (*(t.name for t in tensors), *(name for node in nodes for name in node.output)):
        if name and (name not in interface or name in before):
            renamed[name] = taken.make_value(name)
    new = [_with_names(node, renamed, alone.node.name, taken) for node in nodes]
    for tensor in tensors:
        graph.initializer.add().CopyFrom(tensor)
        graph.initializer[-1].name = renamed[tensor.name]
    every = [*graph.node[:at], *new, *graph.node[at + 1 :]]
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in every]
    del graph.node[:]
    graph.node.extend(kept)
    _forget_types(graph, {name for node in new for name in node.output} - {v.name for v in graph.output})


def convert_opset(
    model: onnx.ModelProto, opset: int, look: Look, chosen: Mapping[tuple[str, str], str], claims: Claims | None
) -> None:
    """Write a model in another opset: each node whose version that changes is converted alone, or becomes the operators
    that ONNX defines it by where that opset cannot express it. chosen: (scope, name) of nodes -> the words of the
    change that places it there. Raises ApplyError and SubgraphError, for the first node that cannot be written so; the
    model is then of no use."""
    for is_last in (False, True):
        ask = look(model)
        for scope, name in dict.fromkeys((*_list_rewritten(model, opset), *(chosen if is_last else ()))):
            alone = ask(scope, name)
            change = find_change(alone, chosen[scope, name], claims) if (scope, name) in chosen else None
            changed = change.model if change and opset_of(change.model) == opset else rewrite_in_opset(alone, opset)
            if changed is None and not is_last and not any(bodies(alone.node)):
                definition = next(substitute_definition(alone), None)
                if definition is not None:
                    replace_node(model, scope, alone, definition.model)
                    continue
            if changed is None:
                raise ApplyError(f"{alone.node.op_type} '{name}' cannot be written in opset {opset}")
            if is_last:
                replace_node(model, scope, alone, changed)
    for entry in model.opset_import:
        if entry.domain in ONNX_DOMAINS:
            entry.version = opset


def _list_rewritten(model: onnx.ModelProto, opset: int) -> list[tuple[str, str]]:
    """(scope, name) of the nodes that are other operators in that opset."""
    now = opset_of(model)
    return [
        (scope, node.name)
        for scope, graph in list_graphs(model.graph, "")
        for node in graph.node
        if _is_rewritten(node, now, opset)
    ]


def find_graph(model: onnx.ModelProto, scope: str) -> onnx.GraphProto:
    """The graph of a scope, as `NodePlacement` has it. Raises ApplyError where there is none."""
    if not scope:
        return model.graph
    found = next((graph for path, graph in list_graphs(model.graph, "") if path == scope), None)
    if found is None:
        raise ApplyError("the body that the node is in is there no more")
    return found


def find_node(graph: onnx.GraphProto, name: str) -> int:
    """The index of the node of that name; -1 where there is none."""
    return next((at for at, node in enumerate(graph.node) if node.name == name), -1)


def list_graphs(graph: onnx.GraphProto, scope: str) -> Iterator[tuple[str, onnx.GraphProto]]:
    """(scope, graph) of a graph and of all bodies in it."""
    yield scope, graph
    for node in graph.node:
        for attribute, body in bodies(node):
            yield from list_graphs(body, f"{scope}{node.name}.{attribute}/")


def _is_rewritten(node: onnx.NodeProto, now: int, opset: int) -> bool:
    """Whether a node is an operator of another version in that opset, that differs in more than its dtypes."""
    if node.domain not in ONNX_DOMAINS:
        return False
    versions = [prediction.since_version(node.op_type, each) for each in (now, opset)]
    return versions[0] != versions[1] and (not versions[1] or _signature(node.op_type, versions[0])
                                           != _signature(node.op_type, versions[1]))  # fmt: skip


def _signature(operator: str, version: int) -> object:
    """What a node of an operator means but for its dtypes: its inputs, outputs, attributes and their defaults."""
    schema = defs.get_schema(operator, version, "")
    formals = [
        [(each.name, each.option, each.is_homogeneous) for each in side] for side in (schema.inputs, schema.outputs)
    ]
    attributes = {
        name: (each.type, each.required, each.default_value.SerializeToString())
        for name, each in schema.attributes.items()
    }
    return formals, attributes


class _Names:
    """The names of a whole model, so that new ones differ from all."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._values: set[str] = set()
        self._nodes: set[str] = set()
        for _, graph in list_graphs(model.graph, ""):
            self._nodes.update(node.name for node in graph.node)
            self._values.update(name for node in graph.node for name in (*node.input, *node.output))
            self._values.update(value.name for value in (*graph.input, *graph.output, *graph.initializer))
            self._values.update(sparse.values.name for sparse in graph.sparse_initializer)

    def make_value(self, name: str) -> str:
        return _make_new(name, self._values)

    def make_node(self, name: str) -> str:
        return _make_new(name, self._nodes)


def _make_new(name: str, taken: set[str]) -> str:
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    taken.add(found)
    return found


def _with_names(node: onnx.NodeProto, renamed: Mapping[str, str], own: str, taken: _Names) -> onnx.NodeProto:
    """A node of a change in the whole model. own: the name of the node that is changed, which one of them keeps."""
    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    for names in (changed.input, changed.output):
        for at, name in enumerate(names):
            names[at] = renamed.get(name, name)
    if changed.name != own:
        changed.name = taken.make_node(changed.name or f"{own}_{changed.op_type}")
    return changed


def _forget_types(graph: onnx.GraphProto, names: set[str]) -> None:
    """Leave out what the graph declares of values that changed: runtimes infer it."""
    kept = [value for value in graph.value_info if value.name not in names]
    if len(kept) < len(graph.value_info):
        del graph.value_info[:]
        graph.value_info.extend(kept)
