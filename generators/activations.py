"""The activation functions of RNN, GRU and LSTM: what they are, how steep, and how exactly they must be computed.

Definitions: the operator pages (Affine to Softplus are optional there); defaults of alpha and beta are those of the
ONNX operators of the same name. Affine and ScaledTanh have no such operator, so have no default here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epcheck.generators.case import Array
from epcheck.generators.running_error import Approximate

Definition = Callable[..., Array]
"""(x, and alpha and beta if the function has them)."""

Steepness = Callable[..., float]
"""(alpha and beta if the function has them)."""


@dataclass(frozen=True)
class Function:
    """alpha, beta: defaults; None where the function does not take one. NaN where there is no default.

    ulps: of its result, float32 and float16, from the WebNN conformance tests (float64 like float32).
    absolute: in epsilon, times |alpha| beyond 1: what may be lost near 0. The precision table of Vulkan derives tanh
    from (exp(x) - exp(-x)) / (exp(x) + exp(-x)) with 3 + 2 |x| ULP of exp, which cancels there; elu likewise.
    jumps: the function is not continuous at alpha.
    """

    define: Definition
    steepness: Steepness
    ulps: tuple[float, float]
    alpha: float | None = None
    beta: float | None = None
    jumps: bool = False
    absolute: float = 0.0


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)) + np.where(np.isnan(x), x, 0.0)


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0)))


FUNCTIONS: dict[str, Function] = {
    "Relu": Function(lambda x: np.maximum(x, 0), lambda: 1, (0, 0)),
    "Tanh": Function(np.tanh, lambda: 1, (44, 15), absolute=5),
    "Sigmoid": Function(_sigmoid, lambda: 0.25, (34, 3)),
    "Affine": Function(lambda x, a, b: a * x + b, lambda a, _: abs(a), (2, 2), np.nan, np.nan),
    "LeakyRelu": Function(lambda x, a: np.where(x >= 0, x, a * x), lambda a: max(1, abs(a)), (1, 1), 0.01),
    "ThresholdedRelu": Function(lambda x, a: np.where(x >= a, x, 0), lambda _: 1, (0, 0), 1.0, jumps=True),
    "ScaledTanh": Function(
        lambda x, a, b: a * np.tanh(b * x), lambda a, b: abs(a * b), (46, 17), np.nan, np.nan, absolute=5
    ),
    "HardSigmoid": Function(lambda x, a, b: np.clip(a * x + b, 0, 1), lambda a, _: abs(a), (2, 2), 0.2, 0.5),
    "Elu": Function(_elu, lambda a: max(1, abs(a)), (18, 18), 1.0, absolute=5),
    "Softsign": Function(lambda x: x / (1 + np.abs(x)), lambda: 1, (3, 3)),
    "Softplus": Function(lambda x: np.logaddexp(0, x), lambda: 1, (18, 18)),
}


@dataclass(frozen=True)
class Activation:
    """A function with its alpha and beta."""

    name: str
    alpha: float
    beta: float

    def __call__(self, x: Approximate, unit: float) -> Approximate:
        """Its value with the error of `x` passed on; where `x` may lie on either side of a jump, with the jump.

        The ULP of the table are relative to the result; a sum with beta near zero leaves one of beta.
        """
        function = FUNCTIONS[self.name]
        has = (function.alpha is not None, function.beta is not None)
        given = [value for value, is_taken in zip((self.alpha, self.beta), has, strict=True) if is_taken]
        ulps = function.ulps[1 if unit > 2**-20 else 0]
        found = x.apply(
            lambda v: function.define(v, *given),
            function.steepness(*given),
            2 * unit * ulps,
        )
        constant = max(1.0, abs(self.alpha)) * function.absolute + abs(self.beta)
        error = found.error + 2 * unit * constant
        if function.jumps:
            error = error + np.where(np.abs(x.value - self.alpha) <= x.error, abs(self.alpha), 0.0)
        return Approximate(found.value, error)


def consumed(names: tuple[str, ...], alphas: tuple[float, ...], betas: tuple[float, ...]) -> list[Activation]:
    """The activations in their order; each takes the next alpha and beta if it has one at all, else its default."""
    left_alphas, left_betas = list(alphas), list(betas)
    return [
        Activation(name, _next(FUNCTIONS[name].alpha, left_alphas), _next(FUNCTIONS[name].beta, left_betas))
        for name in names
    ]


def _next(default: float | None, left: list[float]) -> float:
    if default is None:
        return 0.0
    return float(np.float32(left.pop(0) if left else default))
