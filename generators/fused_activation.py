"""The activations that the DML EP fuses into com.microsoft.dml operators, in float64.

Sources: the operator pages of the activations; which ones fuse, and with which defaults, is in ONNX Runtime's
OperatorUtility.cpp (FusionHelpers) of the DML EP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epcheck.generators import bounds
from epcheck.generators.case import Array, Attribute, Node, Ulp

Function = Callable[..., Array]


@dataclass(frozen=True)
class Activation:
    """One activation that may be fused.

    since_version: the revision of the operator to name. parameters: attribute -> default. function: (x, *parameters).
    slope: the greatest absolute slope of the function for its parameters. ulps, half_ulps: its own error in float32 and
    wider, and in float16; absolute: the same as absolute differences (all of them WebNN conformance tests).
    """

    name: str
    since_version: int
    function: Function
    ulps: float
    half_ulps: float
    parameters: Mapping[str, float]
    slope: Callable[..., float] = lambda *_: 1.0
    absolute: tuple[float, float] = (0.0, 0.0)

    def attributes(self, given: Mapping[str, float]) -> dict[str, Attribute]:
        """The attributes that fuse this activation; what is not given takes its default."""
        return {
            "fused_activation": self.name,
            "fused_activation_domain": "",
            "fused_activation_since_version": self.since_version,
            **{f"fused_{name}": value for name, value in given.items()},
        }

    def values(self, node: Node) -> tuple[float, ...]:
        """The parameters as the node gives them, or their defaults."""
        return tuple(node.number(f"fused_{name}", default) for name, default in self.parameters.items())


SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}


def _leaky_relu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, alpha * x, x)


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def _selu(x: Array, alpha: float, gamma: float) -> Array:
    return gamma * _elu(x, alpha)


def _hard_sigmoid(x: Array, alpha: float, beta: float) -> Array:
    return np.clip(alpha * x + beta, 0, 1)


def _sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0, -x))


ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation("Relu", 6, lambda x: np.maximum(x, 0), 0, 0, {}),
        Activation("LeakyRelu", 6, _leaky_relu, 1, 1, {"alpha": 0.01}, lambda a: max(1.0, abs(a))),
        Activation("ThresholdedRelu", 1, lambda x, a: np.where(x > a, x, 0.0), 0, 0, {"alpha": 1.0}),
        Activation("Elu", 6, _elu, 18, 18, {"alpha": 1.0}, lambda a: max(1.0, abs(a))),
        Activation("Selu", 6, _selu, 18, 18, SELU, lambda a, g: abs(g) * max(1.0, abs(a))),
        Activation("HardSigmoid", 6, _hard_sigmoid, 2, 2, {"alpha": 0.2, "beta": 0.5}, lambda a, _: abs(a)),
        Activation("Sigmoid", 6, _sigmoid, 34, 3, {}, lambda: 0.25),
        Activation("Tanh", 6, np.tanh, 0, 0, {}, absolute=(1 / 1024, 1 / 512)),
        Activation("Softplus", 1, lambda x: np.logaddexp(0, x), 18, 18, {}),
        Activation("Softsign", 1, lambda x: x / (1 + np.abs(x)), 3, 3, {}),
    )
}
"""Those whose input is the convolution alone; PRelu, which has a second one, is not fused here."""


def fused(node: Node) -> Activation | None:
    """The activation that a node of com.microsoft.dml names; None where it names none."""
    name = node.text("fused_activation", "")
    return ACTIVATIONS[name] if name else None


def activated(node: Node, total: Array, length: int, magnitude: Array, dtype: np.dtype[Any]) -> tuple[Array, Ulp]:
    """(the activated sums in float64, their bound) of a node whose sums of `length` products are `total`.

    magnitude: the sum of the terms' absolute values. The sum's error, and that of storing it, goes through the slope.
    """
    activation = fused(node)
    if activation is None:
        return total, bounds.accumulated(length, dtype, magnitude)
    values = activation.values(node)
    half = dtype == np.float16
    passed = bounds.accumulated(
        length, dtype, activation.slope(*values) * magnitude, activation.half_ulps if half else activation.ulps, 2
    )
    bound = replace(
        passed,
        bound=passed.bound + 2,
        source=f"{passed.source}; {activation.name}: {bounds.WEBNN}",
        floor=passed.floor + activation.absolute[half],
    )
    return activation.function(total, *values), bound
