"""The activations that are fused into products, convolutions and normalizations, and the attributes that name them.

The DML EP's own graph transformer writes a node of com.microsoft.dml in place of an operator and the activation behind
it. Which ones fuse is in ONNX Runtime's OperatorUtility.cpp (FusionHelpers); their defaults are those of the
activation's own page. com.microsoft::FusedGemm and ::FusedConv, which ONNX Runtime's optimiser writes for the CPU
provider (gemm_activation_fusion.cc, conv_activation_fusion.cc), spell the attributes in two further ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.elementwise.activation import FUSED, make_fused
from epcheck.generators.directml.descriptions.elementwise.elementwise import ElementWiseAdd1
from epcheck.generators.directml.descriptions.elementwise.unary import OneTensor
from epcheck.generators.node import Attribute, Node
from epcheck.generators.oracle_math.activations import FUNCTIONS, Activation
from epcheck.generators.truth import Ulp

DOMAIN = "com.microsoft.dml"

Attributes = tuple[tuple[str, Attribute], ...]

NAMES = tuple(name for name in FUNCTIONS if name in FUSED and name != "ScaledTanh")
"""Those that ONNX has, too."""

CONTINUOUS = tuple(name for name in NAMES if not FUNCTIONS[name].jumps)
"""Those that what is slightly off stays slightly off in."""

INTO_NORMALIZATIONS = ("Relu", "LeakyRelu", "Elu", "HardSigmoid", "Sigmoid", "Tanh", "Softsign")
"""Those that batch, instance and mean-variance normalization are tested with."""

OTHERS: Mapping[str, tuple[float, ...]] = {
    "LeakyRelu": (0.375,),
    "ThresholdedRelu": (2.5,),
    "Elu": (1.75,),
    "Selu": (1.5, 2.0),
    "HardSigmoid": (0.375, 0.25),
}
"""Parameters that are not the defaults, for samples."""


def attributes(name: str, *parameters: float) -> Attributes:
    """The attributes that fuse an activation; without parameters it has its defaults."""
    return (
        ("fused_activation", name),
        ("fused_activation_domain", ""),
        ("fused_activation_since_version", newest_claimed_version(name)),
        *(
            (f"fused_{parameter}", value)
            for parameter, value in zip(FUNCTIONS[name].parameters, parameters, strict=False)
        ),
    )


def attributes_of_gemm(name: str, *parameters: float) -> Attributes:
    """The attributes of com.microsoft::FusedGemm that fuse an activation, with all its parameters."""
    named = zip(FUNCTIONS[name].parameters, parameters, strict=True)
    return (("activation", name), *((f"activation_{parameter}", value) for parameter, value in named))


def attributes_of_conv(name: str, *parameters: float) -> Attributes:
    """Those of com.microsoft::FusedConv."""
    return (("activation", name), *((("activation_params", parameters),) if parameters else ()))


def find_activation(node: Node) -> Activation | None:
    """The activation that a node names; None where it names none."""
    name = node.text("fused_activation", node.text("activation", ""))
    if name not in FUNCTIONS:  # the Softmax of FusedMatMulActivation is none of an element alone
        return None
    if node.op_type == "FusedConv":
        parameters = node.attributes.get("activation_params", ())
        assert isinstance(parameters, tuple)
        return Activation(name, tuple(map(float, parameters)))
    prefix = "activation" if "activation" in node.attributes else "fused"
    defaults = FUNCTIONS[name].parameters
    return Activation(
        name, tuple(node.number(f"{prefix}_{parameter}", default) for parameter, default in defaults.items())
    )


def apply_activation(node: Node, exact: Array, bound: Ulp, dtype: np.dtype[Any]) -> tuple[Array, Ulp]:
    """The node's activation of an exact result, and the bound of that; without one both as they are."""
    activation = find_activation(node)
    return (exact, bound) if activation is None else activation.apply(exact, bound, dtype)


def activate(node: Node, x: Array) -> Array:
    """The node's activation of x, which has one."""
    activation = find_activation(node)
    assert activation is not None
    return activation.of(x)


def pass_on_error(node: Node, y: Array, error: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The node's activation of what is off by `error`, and how far off that is; without one both as they are."""
    activation = find_activation(node)
    return (y, error) if activation is None else activation.pass_on(y, error, float(bounds.finfo(dtype).eps))


def description(node: Node) -> OneTensor | None:
    """What is fused into the node's DirectML operator."""
    activation = find_activation(node)
    return None if activation is None else make_fused(activation.name, *activation.parameters)


def describe_addition(node: Node, tensors: tuple[TensorDesc, ...], result: TensorDesc) -> OperatorDesc:
    """ADD1, the addition that applies an activation; DirectML fuses two summands only."""
    return ElementWiseAdd1(tensors[0], tensors[1], result, description(node))
