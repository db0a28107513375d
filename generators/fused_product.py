"""The activations that the DML EP fuses into a matrix product, and how an error of the product passes through them.

Sources: the ONNX pages of the activations, whose defaults the fused attributes have; which names a fused operator
takes: FusionHelpers in ONNX Runtime's OperatorUtility.cpp. ULP: the tolerances of the WebNN conformance tests; an
activation without a row there is derived from the one it scales.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators import bounds
from epcheck.generators.case import Array, Node, Ulp


@dataclass(frozen=True)
class Activation:
    """f: (x float64, alpha, beta, gamma) -> float64. defaults: of the parameters it has, by name.

    slope: (alpha, beta, gamma) -> the greatest slope of f, so an error e of x is at most slope * e in f(x).
    ulps: of f itself. since_version: of the operator in ai.onnx that the EP fuses.
    """

    f: Callable[[Array, float, float, float], Array]
    slope: Callable[[float, float, float], float]
    ulps: float
    since_version: int
    defaults: Mapping[str, float]


def _sigmoid(x: Array) -> Array:
    small = np.exp(-abs(x))
    result: Array = np.where(x < 0, small, 1.0) / (1 + small)
    return result


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875

ACTIVATIONS: Mapping[str, Activation] = {
    "Relu": Activation(lambda x, *_: np.maximum(x, 0), lambda *_: 1, 0, 14, {}),
    "LeakyRelu": Activation(
        lambda x, a, *_: np.where(x < 0, a * x, x), lambda a, *_: max(1, abs(a)), 2, 16, {"alpha": 0.01}
    ),
    "Sigmoid": Activation(lambda x, *_: _sigmoid(x), lambda *_: 0.25, 34, 13, {}),
    "HardSigmoid": Activation(
        lambda x, a, b, _: np.clip(a * x + b, 0, 1), lambda a, *_: abs(a), 2, 6, {"alpha": 0.2, "beta": 0.5}
    ),
    "Tanh": Activation(lambda x, *_: np.tanh(x), lambda *_: 1, 16, 13, {}),
    "Elu": Activation(lambda x, a, *_: _elu(x, a), lambda a, *_: max(1, abs(a)), 18, 6, {"alpha": 1.0}),
    "Selu": Activation(
        lambda x, a, _, g: g * _elu(x, a),
        lambda a, _, g: abs(g) * max(1, abs(a)),
        19,
        6,
        {"alpha": SELU_ALPHA, "gamma": SELU_GAMMA},
    ),
    "Softsign": Activation(lambda x, *_: x / (1 + abs(x)), lambda *_: 1, 3, 1, {}),
    "Softplus": Activation(lambda x, *_: np.logaddexp(0.0, x), lambda *_: 1, 18, 1, {}),
}
"""What DmlFusedGemm and DmlFusedMatMul are tested with. ThresholdedRelu, which jumps at its threshold, and ScaledTanh
and ParametricSoftplus, which ONNX has dropped, are left out."""

WEBNN_SOURCE = f"{bounds.WEBNN}: the activation's tolerance, beside that of the sum that it is applied to"


def parameters(node: Node, activation: Activation, prefix: str) -> tuple[float, float, float]:
    """alpha, beta, gamma of a fused node: the attribute `<prefix><name>`, else ONNX's default; 0 where it has none."""
    alpha, beta, gamma = (
        node.number(prefix + name, activation.defaults.get(name, 0.0)) for name in ("alpha", "beta", "gamma")
    )
    return alpha, beta, gamma


def applied(node: Node, name: str, prefix: str, exact: Array, bound: Ulp, dtype: np.dtype[Any]) -> tuple[Array, Ulp]:
    """The activation of an exact sum and its bound: the sum's own error times the slope, and the activation's ULP."""
    activation = ACTIVATIONS[name]
    given = parameters(node, activation, prefix)
    with np.errstate(all="ignore"):
        result = activation.f(exact, *given)
        spacing = np.nan_to_num(abs(exact), posinf=0.0) * float(bounds.finfo(dtype).eps) * bound.bound
        floor = (np.asarray(bound.floor) + spacing) * activation.slope(*given)
    # The sum is rounded before it is activated; where f is steep against its value only the slope accounts for it.
    return result, bounds.ulp(activation.ulps + bound.bound, WEBNN_SOURCE, dtype, floor)
