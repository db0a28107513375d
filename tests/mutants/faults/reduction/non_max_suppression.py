"""Faults in NonMaxSuppression."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from epcheck.generators.case import BuiltCase
from epcheck.generators.node import Node, Operand
from tests.mutants.mutant import attribute, by_truth, inputs, misread, outputs, outputs_of

OPERATOR = "NonMaxSuppression"


def without(name: str, value: float) -> dict[str, np.ndarray]:
    return {name: np.array(value, np.int64 if name.startswith("max") else np.float32)}


def with_default(name: str, default: float) -> object:
    """An input that is left out has another default."""

    def change(node: Node) -> Node:
        if node.value(name) is not None:
            return node
        names = ["boxes", "scores", "max_output_boxes_per_class", "iou_threshold", "score_threshold"]
        operands = {name: node.value(name) for name in names} | without(name, default)
        made = tuple(None if operands[key] is None else Operand(key, operands[key]) for key in names)
        return replace(node, inputs=made)

    return change


def nudged(name: str, step: float) -> object:
    return lambda key, value: value + np.asarray(step, value.dtype) if key == name else value


def corners_in_order(name: str, value: np.ndarray) -> np.ndarray:
    """The first corner is taken for the lower one: a flipped box has no area."""
    if name != "boxes":
        return value
    return np.concatenate([value[..., :2], np.maximum(value[..., :2], value[..., 2:])], -1)


def of_the_first(name: str, value: np.ndarray) -> np.ndarray:
    return np.broadcast_to(value[:, :1], value.shape) if name == "scores" and value.ndim == 3 else value


def in_order_of_boxes(built: BuiltCase) -> dict[str, np.ndarray]:
    rows = (outputs_of(built.truth) or {})["selected_indices"]
    return {"selected_indices": rows[np.lexsort(rows.T[::-1])]}


def classes_first(built: BuiltCase) -> dict[str, np.ndarray]:
    rows = (outputs_of(built.truth) or {})["selected_indices"]
    return {"selected_indices": rows[np.argsort(rows[:, 1], kind="stable")]}


MUTANTS = [
    attribute(OPERATOR, "center_point_box", None),
    attribute(OPERATOR, "center_point_box", 1),
    misread(OPERATOR, "without a maximum there is none", with_default("max_output_boxes_per_class", 10**6)),
    misread(OPERATOR, "without a threshold the overlap may be a half", with_default("iou_threshold", 0.5)),
    misread(OPERATOR, "without a threshold scores must be positive", with_default("score_threshold", 0.0)),
    inputs(OPERATOR, "the maximum is one more", nudged("max_output_boxes_per_class", 1)),
    inputs(OPERATOR, "the maximum goes through int32",
           lambda n, v: v.astype(np.int32).astype(np.int64) if n.startswith("max") else v),
    inputs(OPERATOR, "an overlap equal to the threshold is too much",
           lambda n, v: np.maximum(v - np.float32(1e-4), 0) if n == "iou_threshold" else v),
    inputs(OPERATOR, "a score equal to the threshold does not count", nudged("score_threshold", 1e-6)),
    inputs(OPERATOR, "the scores do not count", lambda n, v: v - v if n == "scores" else v),
    inputs(OPERATOR, "lower scores are better", lambda n, v: -v if n == "scores" else v),
    inputs(OPERATOR, "corners are not ordered", corners_in_order),
    inputs(OPERATOR, "coordinates end at 1", lambda n, v: np.clip(v, 0, 1) if n == "boxes" else v),
    inputs(OPERATOR, "the first class serves all", of_the_first),
    inputs(OPERATOR, "the first batch serves all",
           lambda n, v: np.broadcast_to(v[:1], v.shape) if n == "boxes" and v.ndim == 3 else v),
    inputs(OPERATOR, "the first 1024 boxes are read",
           lambda n, v: v[:, :1024] if n == "boxes" else v[..., :1024] if n == "scores" else v),
    by_truth(OPERATOR, "the boxes are in their own order", in_order_of_boxes),
    by_truth(OPERATOR, "the classes come before the batches", classes_first),
    outputs(OPERATOR, "batch and class are exchanged", lambda v: v[:, [1, 0, 2]]),
    outputs(OPERATOR, "an empty result has a row", lambda v: v if v.size else np.zeros((1, 3), np.int64)),
]  # fmt: skip
