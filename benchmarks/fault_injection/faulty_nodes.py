"""Targets, `python:faulty_nodes:B01`, that compute nodes as `backends.py` of the working directory says, wrongly.

ONNX Runtime's CPU provider, without its optimizer, computes every node by itself; the faults of the backend change what
a node of theirs gives.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, defs, helper, numpy_helper

Array = Any

backends = importlib.import_module("backends")


def __getattr__(name: str) -> Callable[[bytes, Mapping[str, Array]], dict[str, Array]]:
    if name not in backends.BACKENDS:
        raise AttributeError(name)
    return lambda model, feeds: run(backends.BACKENDS[name], model, feeds)


def run(faults: Sequence[Any], model: bytes, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of the model with the faults."""
    proto = onnx.load_model_from_string(model)
    nodes = proto.graph.node
    named = any(node.op_type in fault.operators for node in nodes for fault in faults)
    if len(nodes) > 1 and named and not _has_small_dtypes(proto):
        has_sequences = any("Sequence" in node.op_type or "Optional" in node.op_type for node in nodes)
        return (_run_sequences if has_sequences else _run_nodes)(faults, proto, feeds)
    names = [output.name for output in proto.graph.output]
    found = dict(zip(names, _compute(_session(model), names, feeds), strict=True))
    if len(nodes) == 1:
        found |= _spoil(faults, read_call(proto, nodes[0], feeds), nodes[0], [found.get(n) for n in nodes[0].output])
    return found


def _has_small_dtypes(proto: onnx.ModelProto) -> bool:
    """Whether a value may have a dtype of 8 bits of floating point, or 4, of which ONNX Runtime gives Python none."""
    targets = [a.i for node in proto.graph.node for a in node.attribute if a.name in ("to", "output_dtype")]
    return max([0, *targets, *(each.data_type for each in proto.graph.initializer)]) >= onnx.TensorProto.FLOAT8E4M3FN


def _run_nodes(faults: Sequence[Any], proto: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a graph, one node after the other."""
    constant = _read_initializers(proto)
    known = {**constant, **feeds}
    for node in proto.graph.node:
        read = {name: known[name] for name in _names_read(node) if name in known and name not in constant}
        outputs = _compute(_session(_make_model(proto, node, known)), None, read)
        known |= _spoil(faults, read_call(proto, node, known), node, outputs)
    return {output.name: known[output.name] for output in proto.graph.output}


def _run_sequences(faults: Sequence[Any], proto: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The outputs of a graph with sequences between its nodes, which no model of a node alone could be given: a node
    gets what right nodes give, and what a fault makes of an output is seen where that is one of the graph."""
    results = [output.name for output in proto.graph.output]
    whole = onnx.ModelProto.FromString(proto.SerializeToString())
    inner = [name for node in proto.graph.node for name in node.output if name and name not in results]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in inner)
    names = results + inner
    right = dict(zip(names, _compute(_session(whole.SerializeToString()), names, feeds), strict=True))
    known = {**_read_initializers(proto), **feeds, **right}
    wrong: dict[str, Array] = {}
    for node in proto.graph.node:
        wrong |= _spoil(faults, read_call(proto, node, known), node, [right.get(name) for name in node.output])
    return {name: wrong.get(name, right[name]) for name in results}


def read_call(proto: onnx.ModelProto, node: NodeProto, feeds: Mapping[str, Array]) -> Any:
    """The node as a fault sees it."""
    known = {**_read_initializers(proto), **feeds}
    opsets = {each.domain: each.version for each in proto.opset_import}
    domain = "" if node.domain == "ai.onnx" else node.domain
    constant = {each.name for each in proto.graph.initializer}
    return backends.Call(
        node.op_type,
        domain,
        _since_version(node.op_type, opsets.get(domain, opsets.get("ai.onnx", 1)), domain),
        {each.name: _attribute(each) for each in node.attribute},
        [_plain(known.get(name)) if name else None for name in node.input],
        [name in constant for name in node.input],
    )


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [each.decode(errors="replace") for each in value]
    return list(value) if isinstance(value, (list, tuple)) else value


def _plain(value: Array) -> Array:
    return value if value is None or isinstance(value, np.ndarray) else None


@cache
def _since_version(op_type: str, version: int, domain: str) -> int:
    try:
        return defs.get_schema(op_type, version, domain).since_version
    except defs.SchemaError:
        return 1


def _spoil(faults: Sequence[Any], call: Any, node: NodeProto, outputs: list[Array]) -> dict[str, Array]:
    """Name -> output of the node, with the faults that hold for it."""
    for fault in faults:
        if node.op_type in fault.operators and fault.when(call):
            present = [np.array(output) for output in outputs if _plain(output) is not None]
            changed = iter(fault.effect(call, present))
            outputs = [output if _plain(output) is None else np.asarray(next(changed)) for output in outputs]
    return {name: value for name, value in zip(node.output, outputs, strict=False) if name and value is not None}


def _read_initializers(proto: onnx.ModelProto) -> dict[str, Array]:
    return {each.name: numpy_helper.to_array(each) for each in proto.graph.initializer}


def _names_read(node: NodeProto) -> Iterator[str]:
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _names_read(inner)


def _make_model(proto: onnx.ModelProto, node: NodeProto, known: Mapping[str, Array]) -> bytes:
    """A model of the node alone; its initializers stay, since some operators read constants only."""
    constant = {each.name: each for each in proto.graph.initializer}
    reads = list(dict.fromkeys(_names_read(node)))
    graph = helper.make_graph(
        [node],
        "node",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(known[name].dtype), known[name].shape)
            for name in reads
            if name in known and name not in constant
        ],
        [onnx.ValueInfoProto(name=name) for name in node.output if name],
        [constant[name] for name in reads if name in constant],
    )
    made = helper.make_model(graph, opset_imports=proto.opset_import, functions=proto.functions)
    made.ir_version = proto.ir_version
    return made.SerializeToString()


def _compute(session: Any, names: Sequence[str] | None, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs of a session, in bfloat16 and float8 as well, of which ONNX Runtime makes no arrays by itself."""
    if all(np.asarray(value).dtype.kind != "V" for value in feeds.values()):
        try:
            return list(session.run(names, dict(feeds)))
        except RuntimeError as error:
            if "Numpy type" not in str(error) or any("int4" in output.type for output in session.get_outputs()):
                raise
    return [_read(value) for value in session.run_with_ort_values(names, {k: _write(v) for k, v in feeds.items()})]


def _write(value: Array) -> Any:
    from onnxruntime import OrtValue

    if value.dtype.kind != "V":
        return OrtValue.ortvalue_from_numpy(value)
    bits = np.ascontiguousarray(value).view(f"uint{8 * value.dtype.itemsize}")
    return OrtValue.ortvalue_from_numpy_with_onnx_type(bits, helper.np_dtype_to_tensor_dtype(value.dtype))


def _read(value: Any) -> Array:
    dtype = helper.tensor_dtype_to_np_dtype(value.element_type())
    if dtype.kind != "V":
        return value.numpy()
    shape = value.shape()
    return np.frombuffer(ctypes.string_at(value.data_ptr(), int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)


def _session(model: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
