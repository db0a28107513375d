"""The reference evaluator of onnx as an oracle: on inputs widened to float64, for operators that it has right."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.node import Node


def evaluate(node: Node, *, widen: bool = True) -> tuple[Array, ...]:
    """The outputs of ReferenceEvaluator that are not omitted.

    widen: floating-point inputs become float64 first, so that nothing is rounded on the way; outputs of their type
    are float64 then. It does not look at type constraints, so that works where the schema has no float64.
    """
    inputs = tuple(
        replace(o, value=o.value.astype(np.float64)) if o is not None and widen and o.value.dtype.kind == "f" else o
        for o in node.inputs
    )
    wide = replace(node, inputs=inputs)
    types = graph.type_bindings(wide)
    model = onnx.load_from_string(graph.model(wide, graph.RUNTIME, types, (0,) * len(node.results)))
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        results = ReferenceEvaluator(model).run(None, graph.feeds(wide, graph.RUNTIME))
    return tuple(np.asarray(result) for result in results)
