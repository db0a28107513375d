"""The models of a case as a use of sessions needs them: with dynamic sizes, with its weights in a file, with other
weights, in other types, with a node that nobody takes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from epcheck.conformance.workers.program.backends import uses

DATA = frozenset(
    getattr(TensorProto, name)
    for name in ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "UINT8", "INT4", "UINT4")
)  # fmt: skip
"""The types of weights."""

UPDATING = frozenset(
    (
        "Abs", "Add", "Ceil", "Clip", "Cos", "Div", "Elu", "Exp", "Floor", "HardSigmoid", "LeakyRelu", "Log", "Mul",
        "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sqrt", "Sub", "Tanh",
    )
)  # fmt: skip
"""Operators whose output may be bound to the memory of an input of its shape: ONNX Runtime does so, too, inside a graph
(MayInplace of its kernels)."""

WITH_VALUES = frozenset(
    (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT8, TensorProto.UINT8)
)
"""The types of weights that may have other values; integers may be indices or sizes."""

OF_NUMPY = frozenset(
    getattr(TensorProto, name)
    for name in (
        "FLOAT", "FLOAT16", "DOUBLE", "BOOL", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64",
    )
)  # fmt: skip
"""The types of which numpy has arrays."""

LEAST_RANK = 2
"""Of weights that are moved. ONNX infers shapes from tensors of one axis, as the scales of Resize, and ONNX Runtime
reads no file for that."""


def open_sizes(model: bytes) -> bytes:
    """The model whose inputs have dynamic sizes, each with a name of its own, and whose outputs have no shape."""
    proto = onnx.load_model_from_string(model)
    for value in proto.graph.input:
        if value.type.HasField("tensor_type"):
            for axis, size in enumerate(value.type.tensor_type.shape.dim):
                size.dim_param = f"{value.name} {axis}"
    for value in proto.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    del proto.graph.value_info[:]
    serialized: bytes = proto.SerializeToString()
    return serialized


def move_weights(model: bytes, file: str) -> tuple[bytes, bytes]:
    """The model whose initializers have their data in a file, and the content of that file; empty where nothing can be
    moved. file: its name."""
    proto = onnx.load_model_from_string(model)
    content = b""
    for tensor in proto.graph.initializer:
        if (
            tensor.data_type not in DATA
            or len(tensor.dims) < LEAST_RANK
            or tensor.data_location == TensorProto.EXTERNAL
        ):
            continue
        if not tensor.HasField("raw_data"):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
        data = tensor.raw_data
        if not data:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", len(content)), ("length", len(data))):
            tensor.external_data.add(key=key, value=str(value))
        content += data
    return proto.SerializeToString(), content


def list_initializers(model: bytes) -> Iterator[tuple[str, str, tuple[int, ...], bytes]]:
    """Name, dtype, shape and data of each initializer that an application can hand to a session as an array."""
    for tensor in onnx.load_model_from_string(model).graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL and tensor.data_type in OF_NUMPY:
            values = numpy_helper.to_array(tensor)
            yield tensor.name, str(values.dtype), values.shape, values.tobytes()


def save_initializers(model: bytes) -> bytes:
    """The initializers of `list_initializers` as an npz file; empty where there are none."""
    arrays = {
        f"initializer.{name}": np.frombuffer(data, dtype).reshape(shape)
        for name, dtype, shape, data in list_initializers(model)
    }
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue() if arrays else b""


def list_others(variant: str, model: bytes) -> list[bytes]:
    """The other models of which a use makes sessions, in the order in which it expects them."""
    make = OTHERS.get(variant)
    return make(model) if make else []


def turn_weights(model: bytes) -> list[bytes]:
    """The model whose initializers have the values that were one place before; none where that changes nothing."""
    proto = onnx.load_model_from_string(model)
    is_changed = False
    for tensor in proto.graph.initializer:
        if tensor.data_type not in WITH_VALUES or tensor.data_location == TensorProto.EXTERNAL:
            continue
        values = numpy_helper.to_array(tensor)
        turned = np.roll(values.reshape(-1), 1).reshape(values.shape)
        is_changed |= turned.tobytes() != values.tobytes()
        tensor.CopyFrom(numpy_helper.from_array(turned, tensor.name))
    return [proto.SerializeToString()] if is_changed else []


def change_types(model: bytes) -> list[bytes]:
    """The model in each of the types beside that of its first input, which every tensor of that type then has."""
    proto = onnx.load_model_from_string(model)
    if not proto.graph.input or not proto.graph.input[0].type.HasField("tensor_type"):
        return []
    own = proto.graph.input[0].type.tensor_type.elem_type
    try:
        beside = uses.TYPES_BESIDE.get(str(helper.tensor_dtype_to_np_dtype(own)), ())
    except KeyError:
        return []
    return [_change_type(model, own, int(helper.np_dtype_to_tensor_dtype(np.dtype(to)))) for to in beside]


def _change_type(model: bytes, own: int, to: int) -> bytes:
    proto = onnx.load_model_from_string(model)
    for value in (*proto.graph.input, *proto.graph.output, *proto.graph.value_info):
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type == own:
            value.type.tensor_type.elem_type = to
    for tensor in proto.graph.initializer:
        if tensor.data_type == own and tensor.data_location != TensorProto.EXTERNAL:
            turned = uses.make_small(numpy_helper.to_array(tensor), str(helper.tensor_dtype_to_np_dtype(to)))
            tensor.CopyFrom(numpy_helper.from_array(turned, tensor.name))
    serialized: bytes = proto.SerializeToString()
    return serialized


def add_refused_node(model: bytes) -> list[bytes]:
    """The model with a node of text, which only the CPU provider takes; none before opset 10."""
    proto = onnx.load_model_from_string(model)
    if not any(each.domain == "" and each.version >= 10 for each in proto.opset_import):
        return []
    names = "epcheck text", "epcheck other text"
    proto.graph.node.append(helper.make_node("StringNormalizer", [names[0]], [names[1]]))
    proto.graph.input.append(helper.make_tensor_value_info(names[0], TensorProto.STRING, [1]))
    proto.graph.output.append(helper.make_tensor_value_info(names[1], TensorProto.STRING, [1]))
    return [proto.SerializeToString()]


def may_update(model: bytes) -> list[bytes]:
    """The model where its output may have the memory of an input: it has one node, which computes each element of that
    alone. None for any other: a kernel may read what it has overwritten."""
    proto = onnx.load_model_from_string(model)
    operators = [node.op_type for node in proto.graph.node]
    return [model] if len(operators) == 1 and operators[0] in UPDATING else []


def _open_alone(model: bytes) -> list[bytes]:
    return [open_sizes(model)]


OTHERS: Mapping[str, Callable[[bytes], list[bytes]]] = {
    **dict.fromkeys(("threads=2", "threads=4", "threads=shared", "threads=creation"), _open_alone),
    "reruns=types": change_types,
    "reruns=in_place": may_update,
    "weights=other": turn_weights,
    "lifecycle=failed": add_refused_node,
}
"""Variant -> what makes the other models of a use."""
