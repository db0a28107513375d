"""ZipMap (ai.onnx.ml), the last node of exported classifiers, whose output is no tensor. Source: its ONNX page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from epcheck.models.graph.feed import Feed


def evaluate(node: onnx.NodeProto, inputs: Sequence[Feed]) -> list[dict[str | int, float]]:
    """A map for each row: class -> its score."""
    found = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    texts = found.get("classlabels_strings")
    labels = [text.decode() for text in texts] if texts else list(found["classlabels_int64s"])
    scores = np.atleast_2d(np.asarray(inputs[0]))
    if scores.shape[-1] != len(labels):
        raise ValueError(f"it has {len(labels)} labels for {scores.shape[-1]} scores")
    return [dict(zip(labels, row.tolist(), strict=True)) for row in scores]
