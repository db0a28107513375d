"""The model of a case as a use of sessions needs it: with dynamic sizes, or with its weights in a file."""

from __future__ import annotations

import onnx
from onnx import TensorProto

DATA = frozenset(
    getattr(TensorProto, name)
    for name in ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "INT8", "UINT8", "INT4", "UINT4")
)  # fmt: skip
"""The types of weights."""

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
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
        data = tensor.raw_data
        if not data:
            continue
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", file), ("offset", len(content)), ("length", len(data))):
            tensor.external_data.add(key=key, value=str(value))
        content += data
    return proto.SerializeToString(), content
