"""Models with one planted fault of precision each, and the smallest set of nodes that mends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]

ROWS, WIDTH = 4, 16

Step = tuple[str, Sequence[str], Mapping[str, Any]]
"""Operator, further inputs by the names of weights, attributes."""


@dataclass(frozen=True)
class Planted:
    """A model of layers of MatMul, Add and Relu with the nodes of the fault after one of them. smallest: names of the
    nodes that have to stay in float32."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    smallest: frozenset[str]


FAULTS: Mapping[str, tuple[Sequence[Step], Mapping[str, float], Sequence[int]]] = {
    "scaled up and down": ((("Mul", ["c"], {}), ("Div", ["c"], {})), {"c": 60000.0}, (0, 1)),
    "moved between": ((("Mul", ["c"], {}), ("Transpose", [], {"perm": [1, 0]}), ("Transpose", [], {"perm": [1, 0]}),
                       ("Div", ["c"], {})), {"c": 60000.0}, (0, 1, 2, 3)),
    "norm of large values": ((("Mul", ["c"], {}), ("Mul", [""], {}), ("Sqrt", [], {}), ("Div", ["c"], {})),
                             {"c": 3000.0}, (1, 2)),
    "exponent": ((("Mul", ["e"], {}), ("Exp", [], {}), ("Log", [], {}), ("Div", ["e"], {})), {"e": 20.0}, (1, 2)),
    "sum of squares": ((("Mul", ["c"], {}), ("Pow", ["two"], {}), ("ReduceMean", [], {"axes": [1], "keepdims": 1}),
                        ("Sqrt", [], {}), ("Mul", ["ones"], {})), {"c": 2000.0, "two": 2.0}, (1, 2, 3)),
}  # fmt: skip
"""Name -> steps, constants, and which of the steps are the smallest set. A step that reads '' reads its own input
twice."""


def planted(fault: str, layers: int, behind: int, dtype: Any = np.float16) -> Planted:
    """A model of so many layers, with the fault behind one of them."""
    rng = np.random.default_rng(layers * 10 + behind)
    steps, constants, smallest = FAULTS[fault]
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, Array] = {name: np.array(value, dtype) for name, value in constants.items()}
    weights["ones"] = np.ones(WIDTH, dtype)
    value = "x"
    names: list[str] = []
    for layer in range(layers):
        weights[f"w{layer}"] = (rng.uniform(0.2, 1.0, (WIDTH, WIDTH)) / WIDTH * 1.7).astype(dtype)
        weights[f"b{layer}"] = rng.uniform(0.5, 1.0, WIDTH).astype(dtype)
        for op_type, more in (("MatMul", [f"w{layer}"]), ("Add", [f"b{layer}"]), ("Relu", [])):
            value = _add(nodes, op_type, [value, *more])
        if layer == behind:
            for op_type, more, attributes in steps:
                value = _add(nodes, op_type, [value, *(name or value for name in more)], **attributes)
                names.append(nodes[-1].name)
    nodes[-1].output[0] = "y"
    element_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes, "planted",
        [helper.make_tensor_value_info("x", element_type, [ROWS, WIDTH])],
        [helper.make_tensor_value_info("y", element_type, [ROWS, WIDTH])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feeds = {"x": rng.uniform(0.5, 2.0, (ROWS, WIDTH)).astype(dtype)}
    return Planted(
        f"{fault}, behind {behind} of {layers}", model, feeds, frozenset(names[at] for at in smallest if names)
    )


def every() -> Iterator[Planted]:
    """Twenty of them: each fault in models of several lengths, at several places."""
    for fault in FAULTS:
        for layers, behind in ((2, 0), (3, 1), (5, 0), (8, 5)):
            yield planted(fault, layers, behind)


def _add(nodes: list[onnx.NodeProto], op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
    value = f"v{len(nodes)}"
    nodes.append(helper.make_node(op_type, list(inputs), [value], name=f"n{len(nodes)}", **attributes))
    return value
