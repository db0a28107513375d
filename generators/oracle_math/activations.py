"""The activations that other operators apply to their results: what they are, how steep, and how exactly computed.

RNN, GRU and LSTM name them; the DML EP fuses them into products, convolutions, normalizations and additions.
Definitions and defaults: the ONNX pages of the operators of the same name. Affine and ScaledTanh, which ONNX has
dropped, have no defaults. ULP: the tolerances of the WebNN conformance tests. Near zero tanh and elu cancel: the
precision table of Vulkan derives tanh from (exp(x) - exp(-x)) / (exp(x) + exp(-x)) with 3 + 2 |x| ULP of exp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.bounds.running_error import Approximate
from epcheck.generators.truth import Ulp

SOURCE = bounds.WEBNN.add_remark("the activation's tolerance, beside that of what it is applied to")


HALF = 2.0**-20
"""Of a larger epsilon are float16 and what has no more digits."""


@dataclass(frozen=True)
class Function:
    """define: (x, *parameters) -> float64. slope: of the parameters, the greatest absolute one.

    ulps: of the result, in float32 and wider, and in float16. parameters: name -> default, NaN where there is none.
    near_zero: of the parameters, what may be lost where terms cancel, in units of epsilon. jumps: not continuous at its
    first parameter. rises: nowhere less at a greater x, whatever the parameters: between two points it is between its
    values there.
    """

    define: Callable[..., Array]
    slope: Callable[..., float]
    ulps: tuple[float, float]
    parameters: Mapping[str, float] = field(default_factory=dict)
    near_zero: Callable[..., float] = lambda *_: 0.0
    jumps: bool = False
    rises: bool = False


@dataclass(frozen=True)
class Activation:
    """A function with its parameters, in the order of the function."""

    name: str
    parameters: tuple[float, ...] = ()

    @property
    def function(self) -> Function:
        return FUNCTIONS[self.name]

    def of(self, x: Array) -> Array:
        """Its values, in the precision of x."""
        with np.errstate(all="ignore"):
            return np.asarray(self.function.define(x, *self.parameters))

    def pass_on(self, x: Array, error: Array, epsilon: float) -> tuple[Array, Array]:
        """(its values, their absolute error) where x is off by `error`: that times the slope, or what it rises on the
        way, and its own.

        Where x may lie on either side of a jump, the jump. epsilon: of the precision in which a provider may compute.
        """
        value, function = self.of(x), self.function
        own = function.ulps[1 if epsilon > HALF else 0] * np.abs(value)
        passed = function.slope(*self.parameters) * error
        if function.rises:
            ends = (np.abs(self.of(x + sign * error) - value) for sign in (-1, 1))
            passed = np.fmin(passed, np.maximum(*ends))
        total = passed + epsilon * (own + function.near_zero(*self.parameters))
        if function.jumps:
            edge = self.parameters[0]
            total = total + np.where(np.abs(x - edge) <= error, abs(edge), 0.0)
        return value, total

    def apply(self, exact: Array, bound: Ulp, dtype: np.dtype[np.generic]) -> tuple[Array, Ulp]:
        """Its values of `exact` and their bound, where a provider may be off by `bound` before it is applied.

        What it is applied to is rounded first: where the function is steep against its value only the slope tells.
        """
        epsilon = float(bounds.finfo(dtype).eps)
        with np.errstate(all="ignore"):
            error = np.asarray(bound.floor) + np.nan_to_num(abs(exact), posinf=0.0) * epsilon * bound.bound
            floor = self.function.slope(*self.parameters) * error + epsilon * self.function.near_zero(*self.parameters)
        ulps = self.function.ulps[1 if epsilon > HALF else 0]
        return self.of(exact), bounds.ulp(ulps + bound.bound, (SOURCE,), dtype, floor)

    def __call__(self, x: Approximate, unit: float) -> Approximate:
        """`pass_on` for what a recurrent cell computes; unit: half an epsilon."""
        return Approximate(*self.pass_on(x.value, x.error, 2 * unit))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)) + np.where(np.isnan(x), x, 0.0)


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _steeper(*slopes: float) -> float:
    return max(1.0, *map(abs, slopes))


SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}
NONE = {"alpha": np.nan, "beta": np.nan}

FUNCTIONS: Mapping[str, Function] = {
    "Relu": Function(lambda x: np.maximum(x, 0), lambda: 1, (0, 0), rises=True),
    "Tanh": Function(np.tanh, lambda: 1, (16, 16), near_zero=lambda: 5, rises=True),
    "Sigmoid": Function(sigmoid, lambda: 0.25, (34, 3), rises=True),
    "Affine": Function(lambda x, a, b: a * x + b, lambda a, _: abs(a), (2, 2), NONE, lambda _, b: abs(b)),
    "LeakyRelu": Function(lambda x, a: np.where(x >= 0, x, a * x), _steeper, (1, 2), {"alpha": 0.01}),
    "ThresholdedRelu": Function(lambda x, a: np.where(x > a, x, 0), lambda _: 1, (0, 0), {"alpha": 1.0}, jumps=True),
    "ScaledTanh": Function(
        lambda x, a, b: a * np.tanh(b * x), lambda a, b: abs(a * b), (18, 18), NONE, lambda a, b: 5 * _steeper(a, b)
    ),
    "HardSigmoid": Function(
        lambda x, a, b: np.clip(a * x + b, 0, 1),
        lambda a, _: abs(a),
        (2, 2),
        {"alpha": 0.2, "beta": 0.5},
        lambda _, b: abs(b),
    ),
    "Elu": Function(_elu, _steeper, (18, 18), {"alpha": 1.0}, lambda a: 5 * _steeper(a)),
    "Selu": Function(
        lambda x, a, g: g * _elu(x, a),
        lambda a, g: abs(g) * _steeper(a),
        (18, 18),
        SELU,
        lambda a, g: 5 * abs(g) * _steeper(a),
    ),
    "Clip": Function(np.clip, lambda *_: 1, (0, 0), {"min": -np.inf, "max": np.inf}, rises=True),
    "Softsign": Function(lambda x: x / (1 + np.abs(x)), lambda: 1, (3, 3), rises=True),
    "Softplus": Function(lambda x: np.logaddexp(0, x), lambda: 1, (18, 18), rises=True),
}


def consume(names: tuple[str, ...], alphas: tuple[float, ...], betas: tuple[float, ...]) -> list[Activation]:
    """The activations of a recurrent node in their order; each takes the next alpha and beta if it has one at all, else
    its default."""
    left = {"alpha": list(alphas), "beta": list(betas)}
    return [
        Activation(
            name,
            tuple(_pop_next(left[parameter], default) for parameter, default in FUNCTIONS[name].parameters.items()),
        )
        for name in names
    ]


def _pop_next(left: list[float], default: float) -> float:
    return float(np.float32(left.pop(0) if left else default))
