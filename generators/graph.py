"""From a node to a serialized model: of that node alone, or of it and its surroundings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np
import onnx
from onnx import helper, numpy_helper

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.serialization import wire
from epcheck.generators.serialization.tensor import tensor
from epcheck.generators.truth import Outputs, Refusal, Truth

INITIALIZER, RUNTIME, SYMBOLIC, CONSTANT = "initializer", "runtime", "symbolic", "constant"
BINDINGS = {
    INITIALIZER: "parameters are initializers, the rest are graph inputs, shapes are static",
    RUNTIME: "every input is a graph input, shapes are static",
    SYMBOLIC: "parameters are initializers, every dimension of the graph inputs is symbolic",
    CONSTANT: "every input is an initializer",
}
"""How the inputs of the node enter the model."""

_GRAPH = 7
"""The graph's field in ModelProto."""

_NODE, _NAME, _INITIALIZER, _INPUT, _OUTPUT = 1, 2, 5, 11, 12
"""Fields of GraphProto."""

OLDEST_IR = 8
"""IR version 8 (ONNX 1.10): every runtime since 2021 reads it. A newer one is stamped only where the opset needs it."""


@cache
def ir_version_for(opset: int) -> int:
    """The IR version to stamp beside an ai.onnx opset."""
    return max(OLDEST_IR, int(helper.find_min_ir_version_for([helper.make_opsetid("", opset)])))


def is_initializer(operand: Operand, binding: str) -> bool:
    """Whether an input travels inside the model in this binding."""
    return binding == CONSTANT or (operand.parameter and binding != RUNTIME)


def feeds(node: Node, binding: str) -> dict[str, Array]:
    """Graph input name -> array for the inputs that do not travel inside the model."""
    return {o.name: o.value for o in node.inputs if o is not None and not is_initializer(o, binding)}


def type_bindings(node: Node) -> Mapping[str, str]:
    """Type constraint -> numpy dtype name, from the schema and the values; an output-only constraint has one type."""
    if node.surroundings:
        return node.surroundings.types
    signature = schema.signature(node.op_type, node.since_version, node.domain)
    bound = {
        type_string: schema.dtype_name(operand.value.dtype)
        for type_string, operand in zip(signature.inputs_of(len(node.inputs)), node.inputs, strict=True)
        if operand is not None and type_string in signature.constraints
    }
    return {**signature.single, **bound}


def result_bindings(node: Node, truth: Truth) -> Mapping[str, str]:
    """Type constraint -> numpy dtype name, for those that outputs have, from the truth; none of a refusal."""
    if isinstance(truth, Refusal):
        return {}
    if isinstance(truth, Outputs):
        dtypes = {output.name: schema.dtype_name(output.value.dtype) for output in truth.outputs}
    else:
        dtypes = {n: schema.dtype_name(a.dtype) for n, a in zip(truth.names, truth.accepted[0], strict=True)}
    return _bindings_of_outputs(node, dtypes)


def value_bindings(node: Node, values: Mapping[str, Array]) -> Mapping[str, str]:
    """Type constraint -> numpy dtype name, for those that outputs have, from the values of the outputs by name."""
    return _bindings_of_outputs(node, {name: schema.dtype_name(value.dtype) for name, value in values.items()})


def _bindings_of_outputs(node: Node, dtypes: Mapping[str, str]) -> Mapping[str, str]:
    signature = schema.signature(node.op_type, node.since_version, node.domain)
    types = zip(signature.outputs_of(len(node.outputs)), node.outputs, strict=True)
    return {kind: dtypes[name] for kind, name in types if kind in signature.constraints and name in dtypes}


def output_types(node: Node, types: Mapping[str, str]) -> dict[str, str]:
    """Output name -> numpy dtype name, from the schema and the bindings of its type constraints."""
    if node.surroundings:
        return dict(node.surroundings.results)
    signature = schema.signature(node.op_type, node.since_version, node.domain)
    return {
        name: types.get(type_string) or schema.element_name(type_string)
        for type_string, name in zip(signature.outputs_of(len(node.outputs)), node.outputs, strict=True)
        if name
    }


def model(node: Node, binding: str, types: Mapping[str, str], output_ranks: Sequence[int]) -> bytes:
    """A ModelProto of the node under test, named `node`, and its surroundings if it has any; serialized.

    Outputs have a rank, which ONNX demands, and no sizes: a wrong shape is then an answer that can be judged instead
    of a model that cannot be loaded.
    """
    present = [operand for operand in node.inputs if operand is not None]
    inputs = [
        _value_info(
            o.name,
            schema.dtype_name(o.value.dtype),
            tuple(f"{o.name}_{i}" for i in range(o.value.ndim)) if binding == SYMBOLIC else o.value.shape,
        )
        for o in present
        if not is_initializer(o, binding)
    ]
    outputs = [
        _value_info(name, dtype, (None,) * rank)
        for (name, dtype), rank in zip(output_types(node, types).items(), output_ranks, strict=True)
    ]
    graph = [
        *(wire.field(_NODE, proto) for proto in _nodes(node)),
        wire.field(_NAME, node.op_type.encode()),
        *(wire.field(_INITIALIZER, tensor(o.value, o.name)) for o in present if is_initializer(o, binding)),
        *(wire.field(_INPUT, value) for value in inputs),
        *(wire.field(_OUTPUT, value) for value in outputs),
    ]
    before, after = _serialize_around(schema.opset_for(node.since_version, node.domain), node.domain)
    return before + wire.field(_GRAPH, b"".join(graph)) + after


@cache
def _serialize_around(opset: int, domain: str) -> tuple[bytes, bytes]:
    """What stands before and after the graph in a ModelProto."""
    ai_onnx = 17 if domain else opset
    before = onnx.ModelProto(ir_version=ir_version_for(ai_onnx), producer_name="epcheck")
    after = onnx.ModelProto()
    after.opset_import.add(domain="", version=ai_onnx)
    if domain:
        after.opset_import.add(domain=domain, version=opset)
    return before.SerializeToString(deterministic=True), after.SerializeToString(deterministic=True)


def _nodes(node: Node) -> list[bytes]:
    """The node under test and those around it, serialized."""
    around = node.surroundings
    if not around:
        inputs = tuple([operand.name if operand else "" for operand in node.inputs])
        has_tensors = any(isinstance(value, np.ndarray) for value in node.attributes.values())
        made = _serialize.__wrapped__ if has_tensors else _serialize
        spelled = _Spelled("" if has_tensors else repr(node.attributes), node.attributes)
        return [made(node.op_type, inputs, node.outputs, node.domain, spelled)]
    proto = node_proto(node.op_type, around.inputs, around.outputs, "node", node.domain, node.attributes)
    proto.attribute.extend(helper.make_attribute(name, graph) for name, graph in around.graphs.items())
    if around.type is not None:
        proto.attribute.append(helper.make_attribute("type", around.type))
    return [each.SerializeToString(deterministic=True) for each in (*around.before, proto, *around.after)]


@dataclass(frozen=True)
class _Spelled:
    """Attributes, equal where they are spelled alike: 1 and 1.0 are not, nor are 0.0 and -0.0."""

    text: str
    attributes: Mapping[str, Attribute] = field(compare=False)


@lru_cache(maxsize=4096)
def _serialize(
    op_type: str, inputs: tuple[str, ...], outputs: tuple[str, ...], domain: str, attributes: _Spelled
) -> bytes:
    """The node under test, serialized; the cases of a sample share it and differ in what it is fed."""
    proto = node_proto(op_type, inputs, outputs, "node", domain, attributes.attributes)
    serialized: bytes = proto.SerializeToString(deterministic=True)
    return serialized


def node_proto(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str,
    domain: str,
    attributes: Mapping[str, Attribute],
) -> onnx.NodeProto:
    """A NodeProto; an empty name stands for an omitted input or output."""
    proto = helper.make_node(op_type, inputs, outputs, name=name, domain=domain)
    proto.attribute.extend(_attribute(key, value) for key, value in attributes.items())
    return proto


def _attribute(name: str, value: Attribute) -> onnx.AttributeProto:
    if isinstance(value, np.ndarray):
        return helper.make_attribute(name, numpy_helper.from_array(value))
    if isinstance(value, tuple) and not value:
        return helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS)
    return helper.make_attribute(name, value)


@lru_cache(maxsize=4096)
def _value_info(name: str, dtype: str, shape: tuple[int | str | None, ...]) -> bytes:
    """`value_info`, serialized."""
    serialized: bytes = value_info(name, dtype, shape).SerializeToString(deterministic=True)
    return serialized


@lru_cache(maxsize=4096)
def value_info(name: str, dtype: str, shape: tuple[int | str | None, ...]) -> onnx.ValueInfoProto:
    """The type of a value; many cases share their shapes, and what takes a proto in copies it."""
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
