"""Models of a few nodes, and what they are fed with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
OPSET = 20


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    weights: dict[str, Array] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "small",
        inputs,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    imports = [helper.make_opsetid("", OPSET), *(helper.make_opsetid(f.domain, 1) for f in functions)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, functions=functions)


def floats(name: str, *dims: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def layers(count: int) -> onnx.ModelProto:
    """x -> (MatMul, Add, Relu, minus the layer's input) `count` times; node i is `n{i}`."""
    rng = np.random.default_rng(0)
    nodes, weights, value = [], {}, "x"
    for layer in range(count):
        weights[f"w{layer}"] = (rng.standard_normal((8, 8)) / 8**0.5).astype(np.float32)
        weights[f"b{layer}"] = rng.standard_normal(8).astype(np.float32)
        names = [f"{part}{layer}" for part in ("product", "sum", "relu", "out")]
        for number, (op_type, inputs) in enumerate(
            (
                ("MatMul", [value, f"w{layer}"]),
                ("Add", [names[0], f"b{layer}"]),
                ("Relu", [names[1]]),
                ("Sub", [names[2], value]),
            )
        ):
            nodes.append(helper.make_node(op_type, inputs, [names[number]], name=f"n{4 * layer + number}"))
        value = names[3]
    return model(nodes, [floats("x", "batch", 8)], [value], weights)


def feeds() -> dict[str, Array]:
    return {"x": np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)}
