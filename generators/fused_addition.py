"""Additions with a fused activation: com.microsoft.dml::DmlFusedAdd and DmlFusedSum.

The DML EP's own graph transformer makes these nodes of an addition and the Relu or LeakyRelu behind it; alpha, where it
is not given, is LeakyRelu's 0.01 (FusionHelpers::TryGetFusedActivationDesc).
"""

from __future__ import annotations

from epcheck.generators.case import Node
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.elementwise import ElementWiseAdd1, FusedLeakyRelu, FusedRelu
from epcheck.generators.elementwise import Attributes

DEFAULT_ALPHA = 0.01

_SINCE: Attributes = (("fused_activation_domain", ""), ("fused_activation_since_version", 6))
RELU: Attributes = (("fused_activation", "Relu"), *_SINCE)
LEAKY_RELU: Attributes = (("fused_activation", "LeakyRelu"), *_SINCE)


def activation_of(node: Node) -> FusedRelu | FusedLeakyRelu:
    """The activation that the attributes of a node name."""
    if node.text("fused_activation", "") == "Relu":
        return FusedRelu()
    return FusedLeakyRelu(None, None, node.number("fused_alpha", DEFAULT_ALPHA))


def describe_fused(node: Node, tensors: tuple[TensorDesc, ...], result: TensorDesc) -> OperatorDesc:
    """ADD1 with the activation; DirectML fuses two summands only."""
    return ElementWiseAdd1(tensors[0], tensors[1], result, activation_of(node))
