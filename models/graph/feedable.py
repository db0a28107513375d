"""Element types that no session takes from Python or gives to it: bfloat16, the 8-bit floats and what is packed."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import TensorProto, helper

WIDER = {
    "BFLOAT16": TensorProto.FLOAT, "FLOAT8": TensorProto.FLOAT, "FLOAT4": TensorProto.FLOAT,
    "INT4": TensorProto.INT8, "INT2": TensorProto.INT8, "UINT4": TensorProto.UINT8, "UINT2": TensorProto.UINT8,
}  # fmt: skip
"""Beginning of the name of an element type that numpy lacks -> the common type that holds all its values."""

FED_AS = {
    number: wide
    for name, number in TensorProto.DataType.items()
    for beginning, wide in WIDER.items()
    if name.startswith(beginning)
}
"""Element type that numpy lacks -> the one that its values are fed and read as."""


def is_feedable(kind: onnx.TypeProto) -> bool:
    """Whether a session takes and gives tensors of a type."""
    return kind.tensor_type.elem_type not in FED_AS


def add_casts(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, str]]:
    """The model with a Cast behind each input and before each output of these types, and old name -> new name of those
    inputs and outputs; the model itself where there are none. Values within the graph keep their names."""
    weights = {tensor.name for tensor in model.graph.initializer}
    narrow = [value for value in _tensors(model) if value.name not in weights]
    if not narrow:
        return model, {}
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    renamed: dict[str, str] = {}
    first: list[onnx.NodeProto] = []
    last: list[onnx.NodeProto] = []
    for values, casts in ((changed.graph.input, first), (changed.graph.output, last)):
        for value in values:
            if value.name in weights or is_feedable(value.type):
                continue
            inner, narrow_type = value.name, value.type.tensor_type.elem_type
            wide = FED_AS[narrow_type]
            outer = f"{inner}_{TensorProto.DataType.Name(wide).lower()}"
            before, after = (outer, inner) if casts is first else (inner, outer)
            to = narrow_type if casts is first else wide
            casts.append(helper.make_node("Cast", [before], [after], name=f"{outer}_cast", to=to))
            value.name, value.type.tensor_type.elem_type = outer, wide
            renamed[inner] = outer
    nodes = [*first, *changed.graph.node, *last]
    changed.graph.ClearField("node")
    changed.graph.node.extend(nodes)
    return changed, renamed


def _tensors(model: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    for value in (*model.graph.input, *model.graph.output):
        if not is_feedable(value.type):
            yield value
