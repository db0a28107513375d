"""Cut a part out of a model as a model of its own: any nodes, with the values that they received in a run.

onnx.utils.extract_model and onnx_ir's extraction take what lies between named values. Here the nodes are known: a
single one, those of a fusion, or all before a cut. Their values come from a run, so that types need not be inferred.
The model may be one that a checker or an intermediate representation refuses. So the protobuf itself is cut:
initializers with their external data, functions, opset imports and bodies stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.values import bodies
from epcheck.models.graph.wiring import Wiring, find_captured_names

RECEIVED = "received:"
"""Prefix of a value that a node of a disconnected model receives, so that no other node makes it."""

IDENTITY_OF = "identity_of:"
"""Prefix of the output of an Identity that `behind_identities` adds."""


class SubgraphError(ValueError):
    """A part that cannot be a model of its own; the message says why."""


def with_outputs(wiring: Wiring, names: Iterable[str]) -> onnx.ModelProto:
    """The whole model, with these values as further outputs."""
    model = onnx.ModelProto()
    model.CopyFrom(wiring.model)
    present = set(wiring.outputs)
    model.graph.output.extend(_make_value_info(wiring, name) for name in dict.fromkeys(names) if name not in present)
    return model


def behind_identities(wiring: Wiring, model: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model with an Identity behind each output that a node reads as well and that is no output of the whole model.
    The Identity's output replaces it, and has the same name with the prefix IDENTITY_OF. None where there is no such
    tensor.

    DirectML's provider fuses a MatMul, Gemm, Conv or Add with the activation that is its only reader, also where it is
    an output besides, and creates no session then (onnxruntime-directml 1.24.4, docs/findings.md).
    """
    read = {name for node in model.graph.node for name in _names(node)}
    names = {output.name for output in model.graph.output if output.name in read} - set(wiring.outputs)
    tapped = {name for name in names if not wiring.is_sequence(name)}
    if not tapped:
        return None
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for output in changed.graph.output:
        if output.name in tapped:
            changed.graph.node.append(helper.make_node("Identity", [output.name], [IDENTITY_OF + output.name]))
            output.name = IDENTITY_OF + output.name
    return changed


def extract(
    wiring: Wiring, nodes: Iterable[int], values: Mapping[str, Feed], outputs: Sequence[str] | None = None
) -> onnx.ModelProto:
    """These nodes as a model whose inputs are the values that they receive from other nodes; see `select_feeds` for its
    feeds.

    values: that the nodes receive. An input has the type that the model declares, else that of its value. A value that
    depends on constants alone becomes an initializer. outputs: names; by default the values that other nodes read, or
    those of the last node where there are none. Raises SubgraphError for an input whose type is not known.
    """
    chosen = sorted(set(nodes))
    model = _shell(wiring)
    inside = {name for node in chosen for name in wiring.list_outputs(node)}
    _add_inputs(wiring, model, chosen, values, inside)
    _add_copies(model.graph.node, (wiring.model.graph.node[node] for node in _with_constants(wiring, chosen)))
    leaving = _leaving(wiring, chosen) if outputs is None else outputs
    model.graph.output.extend(_make_value_info(wiring, name) for name in leaving)
    _add_what_is_used(wiring, model)
    return model


def select_feeds(wiring: Wiring, nodes: Iterable[int], values: Mapping[str, Feed]) -> dict[str, Feed]:
    """The feeds of the model of `extract`: those of `values` that the nodes receive and do not make. Raises
    SubgraphError for a value that is missing."""
    chosen = set(nodes)
    inside = {name for node in chosen for name in wiring.list_outputs(node)}
    names = dict.fromkeys(
        name for node in sorted(chosen) for name in wiring.list_received_values(node) if name not in inside
    )
    missing = [name for name in names if name not in values]
    if missing:
        raise SubgraphError(f"the value '{missing[0]}' is not known")
    return {name: values[name] for name in names if name not in wiring.fixed}


def disconnect_nodes(
    wiring: Wiring, nodes: Iterable[int], values: Mapping[str, Feed]
) -> tuple[onnx.ModelProto, dict[str, Feed]]:
    """A model in which each of these nodes receives its values as inputs and none from another node; and its feeds. One
    session shows what each node does alone. The nodes must hold no graphs."""
    model = _shell(wiring)
    feeds: dict[str, Feed] = {}
    chosen = sorted(set(nodes))
    _add_copies(model.graph.node, (wiring.model.graph.node[node] for node in _with_constants(wiring, chosen)))
    own = {name for node in chosen for name in wiring.list_outputs(node)}
    for node in model.graph.node:
        names = [name and (name if name in wiring.constants else RECEIVED + name) for name in node.input]
        node.ClearField("input")
        node.input.extend(names)
    for name in dict.fromkeys(name for node in chosen for name in wiring.list_received_values(node)):
        value = values[name]
        if name in wiring.fixed and isinstance(value, np.ndarray):
            _add_copies(model.graph.initializer, [numpy_helper.from_array(value, RECEIVED + name)])
        else:
            feeds[RECEIVED + name] = value
            model.graph.input.append(_make_value_info(wiring, name, values, rename=RECEIVED + name))
    model.graph.output.extend(_make_value_info(wiring, name) for name in own)
    _add_what_is_used(wiring, model)
    return model, feeds


def of_body(
    wiring: Wiring, body: onnx.GraphProto, values: Mapping[str, Feed]
) -> tuple[onnx.ModelProto, dict[str, Feed]]:
    """A body of a node as a model, and its feeds. Its inputs, and the values that it reads from outside, are inputs of
    the model; what depends on constants alone becomes initializers. The indices of its nodes are those in the body.

    values: of both, by name. Raises SubgraphError for a value that is missing or has no known type.
    """
    model = _shell(wiring)
    model.graph.CopyFrom(body)
    own = [value.name for value in model.graph.input]
    outside = [name for name in dict.fromkeys(find_captured_names(body)) if name not in own]
    for value in (*model.graph.input, *model.graph.output):
        if value.type.HasField("tensor_type") and not value.type.tensor_type.elem_type:
            value.ClearField("type")
    for value in model.graph.input:
        if value.type.WhichOneof("value") is None:
            value.type.CopyFrom(_element_type(value.name, values.get(value.name)))
    stored = {tensor.name: tensor for tensor in wiring.model.graph.initializer if tensor.name in wiring.constants}
    for name in outside:
        value = values.get(name)
        if name in stored:
            _add_copies(model.graph.initializer, [stored[name]])
        elif name in wiring.fixed and isinstance(value, np.ndarray) and value.dtype.kind not in "OSU":
            _add_copies(model.graph.initializer, [numpy_helper.from_array(value, name)])
        else:
            own.append(name)
            model.graph.input.append(_make_value_info(wiring, name, values, needed=True))
    missing = [name for name in own if name not in values]
    if missing:
        raise SubgraphError(f"the value '{missing[0]}' is not known")
    model.functions.extend(_functions(wiring.model.functions, model.graph.node))
    return model, {name: values[name] for name in own}


def _element_type(name: str, value: Feed) -> onnx.TypeProto:
    """The type of a tensor of any shape."""
    if not isinstance(value, np.ndarray):
        raise SubgraphError(f"the type of the value '{name}' is not known")
    found = onnx.TypeProto()
    found.tensor_type.elem_type = _tensor_type(value).tensor_type.elem_type
    return found


def _shell(wiring: Wiring) -> onnx.ModelProto:
    whole = wiring.model
    model = onnx.ModelProto(ir_version=whole.ir_version, opset_import=whole.opset_import, producer_name="epcheck")
    model.graph.name = whole.graph.name or "graph"
    return model


def _add_inputs(
    wiring: Wiring, model: onnx.ModelProto, chosen: Sequence[int], values: Mapping[str, Feed], inside: set[str]
) -> None:
    names = dict.fromkeys(name for node in chosen for name in wiring.list_received_values(node) if name not in inside)
    for name in names:
        value = values.get(name)
        if name in wiring.fixed and isinstance(value, np.ndarray):
            _add_copies(model.graph.initializer, [numpy_helper.from_array(value, name)])
        else:
            model.graph.input.append(_make_value_info(wiring, name, values, needed=True))


def _leaving(wiring: Wiring, chosen: Sequence[int]) -> list[str]:
    """The values that other nodes read, or those of the last node where there are none. Raises SubgraphError."""
    if not chosen:  # functions may have empty bodies
        raise SubgraphError("the model has no node")
    own = set(chosen)
    elsewhere = {name for node in range(wiring.nodes) if node not in own for name in wiring.reads[node]}
    elsewhere.update(wiring.outputs)
    made = [name for node in chosen for name in wiring.list_outputs(node)]
    return [name for name in made if name in elsewhere] or list(wiring.list_outputs(chosen[-1]))


def _with_constants(wiring: Wiring, chosen: Sequence[int]) -> list[int]:
    """The nodes and the `Constant` nodes that they read."""
    read = {name for node in chosen for name in wiring.reads[node]}
    made = {wiring.producer[name] for name in read if name in wiring.constants and name in wiring.producer}
    return sorted(made | set(chosen))


def _make_value_info(
    wiring: Wiring, name: str, values: Mapping[str, Feed] | None = None, needed: bool = False, rename: str = ""
) -> onnx.ValueInfoProto:
    """The value with its type. needed: raise SubgraphError without a type; of outputs a runtime infers it."""
    info = onnx.ValueInfoProto(name=rename or name)
    declared = wiring.types.get(name)
    value = None if values is None else values.get(name)
    if declared is not None:
        info.type.CopyFrom(declared)
        if (
            isinstance(value, np.ndarray)
            and info.type.HasField("tensor_type")
            and not info.type.tensor_type.HasField("shape")
        ):
            info.type.tensor_type.shape.CopyFrom(_tensor_type(value).tensor_type.shape)
    elif isinstance(value, np.ndarray):
        info.type.CopyFrom(_tensor_type(value))
    elif needed:
        raise SubgraphError(f"the type of the value '{name}' is not known")
    return info


def _tensor_type(value: Array) -> onnx.TypeProto:
    element = onnx.TensorProto.STRING if value.dtype.kind in "OSU" else helper.np_dtype_to_tensor_dtype(value.dtype)
    found: onnx.TypeProto = helper.make_tensor_type_proto(element, value.shape)
    return found


def _add_what_is_used(wiring: Wiring, model: onnx.ModelProto) -> None:
    """Initializers and functions that the nodes of the part refer to."""
    graph, part = wiring.model.graph, model.graph
    names = {name for node in part.node for name in _names(node)}
    _add_copies(part.initializer, (t for t in graph.initializer if t.name in names and t.name in wiring.constants))
    _add_copies(part.sparse_initializer, (t for t in graph.sparse_initializer if t.values.name in names))
    part.quantization_annotation.extend(a for a in graph.quantization_annotation if a.tensor_name in names)
    model.functions.extend(_functions(wiring.model.functions, part.node))


def _add_copies(field: Any, messages: Iterable[Any]) -> None:
    """Append copies of messages to a repeated field. Its own `extend` and `append` serialize and parse each message,
    which takes 20 times as long for a tensor of 26 MB (protobuf 7.36)."""
    for message in messages:
        field.add().CopyFrom(message)


def _names(node: onnx.NodeProto) -> Iterator[str]:
    yield from node.input
    for _, body in bodies(node):
        for inner in body.node:
            yield from _names(inner)
        yield from (output.name for output in body.output)


def _functions(
    functions: Sequence[onnx.FunctionProto], nodes: Iterable[onnx.NodeProto]
) -> Iterator[onnx.FunctionProto]:
    """The functions that the nodes call, and those that these call, in the model's order."""
    by_name = {(function.domain, function.name): function for function in functions}
    called: set[tuple[str, str]] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        pending.extend(inner for _, body in bodies(node) for inner in body.node)
        key = (node.domain, node.op_type)
        if key in by_name and key not in called:
            called.add(key)
            pending.extend(by_name[key].node)
    yield from (function for key, function in by_name.items() if key in called)
