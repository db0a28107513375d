"""The transforms at the end of TreeEnsemble, TreeEnsembleRegressor and LinearRegressor (ai.onnx.ml).

Sources: the ONNX pages, which name the transforms, and number them for TreeEnsemble; onnx.reference has them for
classifiers, and says what SOFTMAX_ZERO is: a Softmax in which a score of 0 stays 0. PROBIT is left out: the pages do
not define it, and runtimes approximate it, each in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from epcheck.generators.array import Array

OPERATORS = frozenset({"TreeEnsemble", "TreeEnsembleRegressor", "LinearRegressor"})
"""Their one output is the scores, [rows, targets]; onnx.reference does not transform them."""

NONE, PROBIT = "NONE", "PROBIT"

_BY_NUMBER = (NONE, "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", PROBIT)

ATTRIBUTE = "post_transform"

ZERO = 1e-7
"""Scores of this magnitude and below are 0 to SOFTMAX_ZERO."""


def read_transform(values: Mapping[str, Any]) -> str:
    """The name of the transform among the attributes of a node."""
    found = values.get(ATTRIBUTE, b"NONE")
    return found.decode() if isinstance(found, bytes) else _BY_NUMBER[found]


def leave_out(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node without its transform."""
    plain = onnx.NodeProto()
    plain.CopyFrom(node)
    del plain.attribute[:]
    plain.attribute.extend(attribute for attribute in node.attribute if attribute.name != ATTRIBUTE)
    return plain


def transform_scores(node: onnx.NodeProto, scores: Array) -> Array:
    """The scores of the node without its transform as the node gives them."""
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return _TRANSFORMS[read_transform(values)](scores.astype(np.float64))


def _apply_logistic(scores: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-scores)))


def _apply_softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def _apply_softmax_zero(scores: Array) -> Array:
    """Raises ValueError where all scores of a row are 0: onnx.reference gives 0.5, ONNX Runtime NaN."""
    largest = scores.max(axis=-1, keepdims=True)
    powers = np.where(np.abs(scores) > ZERO, np.exp(scores - largest), scores * np.exp(-largest))
    total = powers.sum(axis=-1, keepdims=True)
    if (total == 0).any():
        raise ValueError("the ONNX page leaves SOFTMAX_ZERO of scores that are all 0 open")
    return np.asarray(powers / total)


_TRANSFORMS: Mapping[str, Callable[[Array], Array]] = {
    NONE: np.asarray,
    "LOGISTIC": _apply_logistic,
    "SOFTMAX": _apply_softmax,
    "SOFTMAX_ZERO": _apply_softmax_zero,
}
