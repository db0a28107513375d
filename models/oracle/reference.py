"""What onnx's ReferenceEvaluator computes of a node, and where it is known to be wrong.

It computes the operators that the suite has no oracle for. Each of them was compared with ONNX Runtime's CPU provider
and with its ONNX page; where it deviates from the page, or the page leaves open what it does, nobody is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from epcheck.models.graph.feed import Feed
from epcheck.models.oracle import post_transform

BINARY = ("LinearClassifier", "TreeEnsembleClassifier")
"""Classifiers that give two scores of one, in a way that the page leaves open."""


UNKNOWN = "is unknown"
"""What its message has where it does not know an operator."""


def explain_distrust(node: onnx.NodeProto) -> str:
    """Why its results cannot be taken as true; empty where they can."""
    if node.domain != "ai.onnx.ml":
        return ""
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    after = post_transform.read_transform(values)
    if after == post_transform.PROBIT:
        return "the ONNX page does not define PROBIT, and onnx's reference computes another one than ONNX Runtime"
    if node.op_type == "Normalizer" and values.get("norm", b"MAX") == b"MAX":
        return "onnx's reference divides by the largest element, ONNX Runtime by the largest magnitude"
    labels = values.get("classlabels_ints") or values.get("classlabels_int64s") or values.get("classlabels_strings")
    scored = len(set(values.get("class_ids", (0,))))
    if node.op_type in BINARY and len(labels or ()) == 2 and (after != "LOGISTIC" or scored > 1):
        return "the ONNX page does not say how one score becomes those of two classes"
    return ""


def evaluate(node: onnx.NodeProto, inputs: Sequence[Feed], opsets: Mapping[str, int]) -> tuple[Feed, ...]:
    """The outputs of the node alone, None for omitted ones. Its inputs and outputs are renamed by position: a model may
    use a name twice. Raises whatever the evaluator does."""
    from onnx.reference import ReferenceEvaluator  # takes 12 MiB, and few models have such a node

    alone = onnx.NodeProto()
    alone.CopyFrom(node)
    del alone.input[:], alone.output[:]
    alone.input.extend(f"i{index}" if value is not None else "" for index, value in enumerate(inputs))
    alone.output.extend(f"o{index}" if name else "" for index, name in enumerate(node.output))
    wanted = [name for name in alone.output if name]
    feeds = {name: value for name, value in zip(alone.input, inputs, strict=True) if name}
    results = iter(ReferenceEvaluator(alone, opsets=dict(opsets)).run(wanted, feeds))
    return tuple(_as_feed(next(results)) if name else None for name in node.output)


def _as_feed(value: Any) -> Feed:
    if isinstance(value, list):
        return [_as_feed(element) for element in value]
    return None if value is None else np.asarray(value)
