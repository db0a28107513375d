"""Small models and where the claims of DirectML's provider put their nodes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from epcheck.models.placement.placement import Placement, place

DML, CPU = "DmlExecutionProvider", "CPUExecutionProvider"


def model(
    *nodes: onnx.NodeProto,
    opset: int = 17,
    dtype: int = TensorProto.FLOAT,
    shape: tuple[int, ...] = (2, 3),
    constants: dict[str, np.ndarray] | None = None,  # type: ignore[type-arg]
) -> onnx.ModelProto:
    """A model of the input `x` and of the outputs of its last node."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [onnx.ValueInfoProto(name=name) for name in nodes[-1].output],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("my.domain", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node(operator: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), outputs.split(), name=outputs.split()[0], **attributes)


def placed(whole: onnx.ModelProto, assignment: list[tuple[str, str, str]] | None = None) -> Placement:
    return place(whole, DML, assignment, {})
