"""Providers with one fault each, as the targets `python:fuzzing_backends:NAME`: onnxruntime's CPU provider, spoilt."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]


def right(model: bytes, feeds: Feeds) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def wrong_beyond_16(model: bytes, feeds: Feeds, beyond: int = 16) -> dict[str, Array]:
    """The element behind the last whole vector of 16 is another number."""
    outputs = right(model, feeds)
    for name, value in outputs.items():
        flat = value.reshape(-1).copy()
        if value.dtype.kind == "f" and value.size % 16 and value.size > beyond and np.isfinite(flat[-1]):
            flat[-1] = 7 if flat[-1] != 7 else 8
            outputs[name] = flat.reshape(value.shape)
    return outputs


def wrong_beyond_40(model: bytes, feeds: Feeds) -> dict[str, Array]:
    """The same, of more than 40 elements."""
    return wrong_beyond_16(model, feeds, 40)


def refuses_negative_axes(model: bytes, feeds: Feeds) -> dict[str, Array]:
    (node,) = onnx.load_from_string(model).graph.node
    if any(attribute.name == "axis" and attribute.i < 0 for attribute in node.attribute):
        raise ValueError(f"axis of node '{node.name}' is {[a.i for a in node.attribute]}, which is not supported")
    return right(model, feeds)


refuses_them_too = refuses_negative_axes
"""Another target with the same fault."""


def aborts_on_empty_data(model: bytes, feeds: Feeds) -> dict[str, Array]:
    if any(value.size == 0 for value in feeds.values()):
        os.abort()
    return right(model, feeds)


def fuses_add_and_relu_wrong(model: bytes, feeds: Feeds) -> dict[str, Array]:
    """Where the only reader of a sum is a Relu, the Relu is forgotten."""
    proto = onnx.load_from_string(model)
    nodes = list(proto.graph.node)
    readers = [name for node in nodes for name in node.input]
    leaving = {output.name for output in proto.graph.output}
    sums = {node.output[0] for node in nodes if node.op_type == "Add"}
    for node in nodes:
        (first, *_) = node.input
        if node.op_type == "Relu" and first in sums and readers.count(first) == 1 and first not in leaving:
            node.op_type = "Identity"
    return right(proto.SerializeToString(), feeds)


def negates_where_all_are_below_0(model: bytes, feeds: Feeds) -> dict[str, Array]:
    """A fault of values, whatever the graph is: outputs of single nodes show it as well."""
    outputs = right(model, feeds)
    return {
        name: -value if value.dtype.kind == "f" and value.size and (value < 0).all() else value
        for name, value in outputs.items()
    }
