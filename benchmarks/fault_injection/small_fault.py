"""A target that is a little wrong in one node, as the environment says.

It is `python:benchmarks.fault_injection.small_fault:run`. ONNX Runtime's CPU provider without graph optimisation
computes everything; the fault changes what the node gives, in whatever model or part of one it is. Runs in
Polygraphy's environment as well, so it knows nothing of epcheck.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

FAULT = "EPCHECK_SMALL_FAULT"
"""Environment variable: a fault as JSON, or nothing. output: the first value that the node makes. dtype: of it. kind:
'gain' (it is `factor` times as large), 'slice' (the values of `index` along `axis` are) or 'step' (it is one level
higher, as far as there is one)."""


def run(model: bytes, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of the model with the fault of the environment."""
    return run_with_fault(os.environ.get(FAULT, ""), model, feeds)


def run_with_fault(description: str, model: bytes, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of the model with the fault that is told as in the environment."""
    import onnxruntime

    proto = onnx.load_model_from_string(model)
    if description:
        plant(proto, json.loads(description))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def plant(model: onnx.ModelProto, fault: Mapping[str, Any]) -> None:
    """Make the node wrong where the model has it."""
    nodes = list(model.graph.node)
    place = next((at for at, node in enumerate(nodes) if fault["output"] in node.output), None)
    if place is None:
        return
    outputs = nodes[place].output
    right = fault["output"] + "/right"
    outputs[list(outputs).index(fault["output"])] = right
    nodes[place + 1 : place + 1] = _step(right, fault) if fault["kind"] == "step" else [*_multiply(right, fault)]
    model.graph.ClearField("node")
    model.graph.node.extend(nodes)


def _multiply(right: str, fault: Mapping[str, Any]) -> list[NodeProto]:
    factors = np.array(fault["factor"])
    if fault["kind"] == "slice":
        factors = np.ones([fault["size"] if axis == fault["axis"] else 1 for axis in range(fault["rank"])])
        factors[tuple(fault["index"] if axis == fault["axis"] else 0 for axis in range(fault["rank"]))] = fault[
            "factor"
        ]
    constant = numpy_helper.from_array(factors.astype(fault["dtype"]))
    return [
        helper.make_node("Constant", [], [f"{right}/factor"], value=constant),
        helper.make_node("Mul", [right, f"{right}/factor"], [fault["output"]]),
    ]


def _step(right: str, fault: Mapping[str, Any]) -> list[NodeProto]:
    limit = numpy_helper.from_array(np.array(np.iinfo(fault["dtype"]).max, np.float32))
    step = numpy_helper.from_array(np.array(1, np.float32))
    narrow = helper.np_dtype_to_tensor_dtype(np.dtype(fault["dtype"]))
    names = [f"{right}/{part}" for part in ("one", "limit", "wide", "more", "level")]
    return [
        helper.make_node("Constant", [], names[:1], value=step),
        helper.make_node("Constant", [], names[1:2], value=limit),
        helper.make_node("Cast", [right], [names[2]], to=TensorProto.FLOAT),
        helper.make_node("Add", [names[2], names[0]], [names[3]]),
        helper.make_node("Min", [names[3], names[1]], [names[4]]),
        helper.make_node("Cast", [names[4]], [fault["output"]], to=narrow),
    ]
