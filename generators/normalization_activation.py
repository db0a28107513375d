"""The activations that the DML EP fuses into a normalization: their attributes, values and errors.

Source: the ONNX page of each activation; which ones are fused and how the attributes are called (`fused_` before the
activation's own name) is GraphTransformer.cpp and OperatorUtility.cpp of the DML EP.

Error: none of them is steeper than `slope`, which carries the error of its argument; its own is that of exp (Vulkan).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epcheck.generators import bounds, propagation
from epcheck.generators.case import Array, Attribute, Node
from epcheck.generators.directml import normalization as descs

DOMAIN = "com.microsoft.dml"
Parameters = Mapping[str, float]


@dataclass(frozen=True)
class Activation:
    """since_version: the revision that the EP knows. parameters: the values that the cases give its attributes.

    defaults: of the attributes, by the ONNX page.
    """

    since_version: int
    value: Callable[[Array, Parameters], Array]
    desc: Callable[..., descs.FusedActivation]
    slope: float = 1.0
    parameters: Parameters = field(default_factory=dict)
    defaults: Parameters = field(default_factory=dict)


ACTIVATIONS: Mapping[str, Activation] = {
    "Relu": Activation(14, lambda y, _: np.maximum(y, 0), descs.FusedRelu),
    "LeakyRelu": Activation(
        16,
        lambda y, p: np.where(y < 0, p["alpha"] * y, y),
        descs.FusedLeakyRelu,
        parameters={"alpha": 0.375},
        defaults={"alpha": 0.01},
    ),
    "Elu": Activation(
        6,
        lambda y, p: np.where(y < 0, p["alpha"] * (np.exp(np.minimum(y, 0)) - 1), y),
        descs.FusedElu,
        slope=2.0,
        parameters={"alpha": 1.75},
        defaults={"alpha": 1.0},
    ),
    "HardSigmoid": Activation(
        6,
        lambda y, p: np.clip(p["alpha"] * y + p["beta"], 0, 1),
        descs.FusedHardSigmoid,
        parameters={"alpha": 0.375, "beta": 0.25},
        defaults={"alpha": 0.2, "beta": 0.5},
    ),
    "Sigmoid": Activation(13, lambda y, _: np.asarray(1 / (1 + np.exp(-y))), descs.FusedSigmoid),
    "Tanh": Activation(13, lambda y, _: np.tanh(y), descs.FusedTanh),
    "Softsign": Activation(1, lambda y, _: np.asarray(y / (1 + np.abs(y))), descs.FusedSoftsign),
}


def attributes(name: str, *, given: bool) -> dict[str, Attribute]:
    """The attributes of a node with the activation fused; given: its own parameters, too."""
    activation = ACTIVATIONS[name]
    own = {f"fused_{key}": value for key, value in activation.parameters.items()} if given else {}
    return {
        "fused_activation": name,
        "fused_activation_domain": "",
        "fused_activation_since_version": activation.since_version,
        **own,
    }


def _parameters(node: Node, activation: Activation) -> dict[str, float]:
    return {key: node.number(f"fused_{key}", default) for key, default in activation.defaults.items()}


def applied(node: Node, y: Array, error: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """The activation that the node names, if any, of y and its error."""
    name = node.text("fused_activation", "")
    if not name:
        return y, error
    activation = ACTIVATIONS[name]
    with np.errstate(all="ignore"):
        value = activation.value(y, _parameters(node, activation))
    own = 2 * np.minimum(propagation.exp_error(y, dtype), 1) * np.maximum(np.abs(value), 1)
    exact = name == "Relu"
    return value, activation.slope * error + (0 if exact else own) + float(bounds.finfo(dtype).tiny)


def description(node: Node) -> descs.FusedActivation | None:
    """The description to fuse, None for a node without activation."""
    name = node.text("fused_activation", "")
    if not name:
        return None
    activation = ACTIVATIONS[name]
    return activation.desc(**_parameters(node, activation))
