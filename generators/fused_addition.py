"""Additions with a fused activation: com.microsoft.dml::DmlFusedAdd and DmlFusedSum.

The DML EP's own graph transformer makes these nodes of an addition and the Relu or LeakyRelu behind it; alpha, where it
is not given, is LeakyRelu's 0.01 (FusionHelpers::TryGetFusedActivationDesc).
"""

from __future__ import annotations

import numpy as np

from epcheck.generators.broadcasting import Attributes
from epcheck.generators.case import Array, Node
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.elementwise import ElementWiseAdd1, FusedLeakyRelu, FusedRelu

DEFAULT_ALPHA = 0.01

_SINCE: Attributes = (("fused_activation_domain", ""), ("fused_activation_since_version", 6))
RELU: Attributes = (("fused_activation", "Relu"), *_SINCE)
LEAKY_RELU: Attributes = (("fused_activation", "LeakyRelu"), *_SINCE)


def activated(node: Node, x: Array) -> Array:
    """The activation of a node, of float64: Relu is max(0, x), LeakyRelu scales what is negative."""
    if node.text("fused_activation", "") == "Relu":
        return np.maximum(x, 0.0)
    return np.where(x < 0, node.number("fused_alpha", DEFAULT_ALPHA) * x, x)


def describe_fused(node: Node, tensors: tuple[TensorDesc, ...], result: TensorDesc) -> OperatorDesc:
    """ADD1 with the activation; DirectML fuses two summands only."""
    relu = node.text("fused_activation", "") == "Relu"
    activation = FusedRelu() if relu else FusedLeakyRelu(None, None, node.number("fused_alpha", DEFAULT_ALPHA))
    return ElementWiseAdd1(tensors[0], tensors[1], result, activation)
