"""A provider with faults that were put in on purpose: the target of `epcheck demo`.

It computes with ONNX Runtime's CPU provider and then spoils what it gives, as real providers have done: see `FAULTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]
Attributes = Mapping[str, Any]

OPERATORS = ("TopK", "Slice", "Concat", "Split", "Transpose")
"""The operators of the demonstration; Transpose is right."""

REFUSAL = "DemoKernels.cpp(212) 80070057 Invalid parameter: an empty tensor is not supported"


def provider(model_bytes: bytes, feeds: dict[str, Array]) -> dict[str, Array]:
    """The outputs of a model by their names. Raises RuntimeError for what the provider refuses."""
    model = onnx.load_from_string(model_bytes)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(model_bytes, settings, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, feeds), strict=True))
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type in FAULTS:
            attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
            inputs = [feeds[name] if name in feeds else constants.get(name) for name in node.input]
            results = [outputs.get(name) for name in node.output]
            for name, value in zip(node.output, FAULTS[node.op_type](attributes, inputs, results), strict=True):
                if name in outputs and value is not None:
                    outputs[name] = value
    return outputs


Values = list[Array | None]


def _higher_index_of_ties(attributes: Attributes, inputs: Values, results: Values) -> Values:
    """TopK: of equal elements the one with the higher index comes first; the standard says the lower one."""
    data, (values, indices) = inputs[0], results
    if data is None or values is None or indices is None or not data.size or not attributes.get("sorted", 1):
        return results
    if np.isnan(data.astype(np.float64)).any():
        return results
    axis, largest = attributes.get("axis", -1), attributes.get("largest", 1)
    moved = np.moveaxis(data, axis, -1)[..., ::-1].astype(np.float64)
    order = np.argsort(-moved if largest else moved, axis=-1, kind="stable")[..., : indices.shape[axis]]
    chosen = np.moveaxis(data.shape[axis] - 1 - order, -1, axis).astype(np.int64)
    return [np.take_along_axis(data, chosen, axis), chosen]


def _spoil_end(_attributes: Attributes, inputs: Values, results: Values) -> Values:
    """Slice: with a negative step the last element is one too large, or the other one of a boolean."""
    steps, result = (inputs[4] if len(inputs) > 4 else None), results[0]
    if result is None or steps is None or not result.size or not (np.asarray(steps) < 0).any():
        return results
    wrong = result.copy().reshape(-1)
    wrong[-1] = ~wrong[-1] if wrong.dtype.kind == "b" else wrong[-1] + wrong.dtype.type(1)
    return [wrong.reshape(result.shape)]


def _no_empty_tensor(_attributes: Attributes, inputs: Values, results: Values) -> Values:
    """Concat, Split: an empty tensor is refused, at one place that both share."""
    if any(value is not None and not value.size for value in (*inputs, *results)):
        raise RuntimeError(REFUSAL)
    return results


FAULTS: Mapping[str, Callable[[Attributes, Values, Values], Values]] = {
    "TopK": _higher_index_of_ties,
    "Slice": _spoil_end,
    "Concat": _no_empty_tensor,
    "Split": _no_empty_tensor,
}
"""Operator -> what spoils it."""
