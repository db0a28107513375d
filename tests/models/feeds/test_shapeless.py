"""Inputs for which a model declares no shape get one that their readers take."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.models.feeds import feeds

W4 = np.ones((6, 5, 3, 3), np.float32)


def model(node: onnx.NodeProto, **weights: np.ndarray) -> onnx.ModelProto:
    value = onnx.ValueInfoProto(name="x")
    value.type.tensor_type.elem_type = TensorProto.FLOAT
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in node.output[:1]]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph([node], "g", [value], outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def node(operator: str, *weights: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, ["x", *weights], ["y"], **attributes)


@pytest.mark.parametrize(
    ("built", "shape"),
    [
        (model(node("Conv", "w"), w=W4), (1, 5, 64, 64)),
        (model(node("Conv", "w", group=5), w=W4[:5, :1]), (1, 5, 64, 64)),
        (model(node("Conv", "w"), w=np.ones((4, 1, 9), np.float32)), (1, 1, 16_000)),
        (model(node("ConvTranspose", "w"), w=W4), (1, 6, 64, 64)),
        (model(node("Gemm", "w"), w=np.ones((7, 2), np.float32)), (1, 7)),
        (model(node("Gemm", "w", transB=1), w=np.ones((7, 2), np.float32)), (1, 2)),
        (model(node("MatMul", "w"), w=np.ones((7, 2), np.float32)), (1, 7)),
        (model(node("LSTM", "w", "r", hidden_size=2), w=np.ones((1, 8, 3), np.float32),
               r=np.ones((1, 8, 2), np.float32)), (8, 1, 3)),
        (model(node("Add", "w"), w=np.ones((2, 3), np.float32)), (2, 3)),
        (model(node("Transpose", perm=[0, 3, 1, 2])), (1, 2, 3, 4)),
        (model(node("MaxPool", kernel_shape=[2, 2])), (1, 3, 64, 64)),
        (model(node("Relu")), (1, 8)),
    ],
)  # fmt: skip
def test_the_shape_is_one_that_the_first_reader_runs_with(built: onnx.ModelProto, shape: tuple[int, ...]) -> None:
    made = feeds.generate(built)
    assert np.asarray(made["x"]).shape == shape
    session = onnxruntime.InferenceSession(built.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(None, made)[0] is not None
