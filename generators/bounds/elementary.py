"""How exact elementary functions have to be, by published tables.

A result is right when it is within the ULP that OpenCL C asks of a full profile device, or within what the precision
tables of shader languages allow the formula by which a shader computes the function:

| function            | OpenCL C | float16 | what a shader may be off by                                              |
|---------------------|----------|---------|--------------------------------------------------------------------------|
| exp                 | 3        | 2       | Vulkan: 3 + 2 |x| ULP (float16: 1 + 2 |x|)                               |
| log                 | 3        | 2       | Vulkan: 3 ULP, 2^-21 for x in [0.5, 2] (float16: WebNN, 1/1024)          |
| sin, cos            | 4        | 2       | Direct3D: 0.0008 for |x| <= 100 pi (float16: WebNN, 1/512)               |
| tan                 | 5        | 2       | Vulkan: inherited from sin(x) / cos(x)                                   |
| atan                | 5        | 2       | Vulkan: 4096 ULP (float16: 5)                                            |
| asin, acos          | 4        | 2       | Vulkan: inherited from atan2(x, sqrt(1 - x x)) and its converse          |
| sinh, cosh          | 4        | 2       | Vulkan: inherited from (exp(x) - exp(-x)) / 2 and its converse           |
| tanh                | 5        | 2       | Vulkan: inherited from sinh(x) / cosh(x)                                 |
| asinh, acosh, atanh | 4, 4, 5  | 2       | Vulkan: inherited from log(x + sqrt(x x + 1)) and its kin                |
| erf                 | 16       | 4       | WebNN: 1/1024 (float16: 1/512)                                           |
| sqrt                |          |         | Direct3D, WebNN: 1 ULP                                                   |
| reciprocal          |          |         | WebNN: 2 ULP                                                             |

Sources: OpenCL C specification, "Relative error as ULPs"; Vulkan specification, "Precision of GLSL.std.450
instructions"; Direct3D 11.3 functional specification, sincos, sqrt; WebNN conformance tests, PrecisionMetrics of
utils.js. In float64 a function has OpenCL C's bound alone, and a formula of several functions what those of OpenCL C
add up to. For asinh the formula is that of |x|, with x's sign: for
a negative x the literal one cancels without limit, which no caller can use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.citation import Citation, CitationKind, Citations, Publisher
from epcheck.generators.truth import Ulp

VULKAN = Citation(
    CitationKind.PUBLISHED,
    "Vulkan specification, precision of GLSL.std.450 instructions",
    Publisher.VULKAN,
    "GLSL.std.450",
)
SINCOS = Citation(
    CitationKind.PUBLISHED, "Direct3D 11.3 functional specification, sincos", Publisher.DIRECT3D, "sincos"
)
SINCOS_REACH = 100 * np.pi
"""Direct3D bounds sincos between -100 pi and 100 pi only."""


@dataclass(frozen=True)
class Shader:
    """What the instructions of a shader may be off by in one precision.

    eps: one ULP of 1. exp: exp(x) may be off by exp + 2 |x| ULP. log: log(x) by so much absolutely in [0.5, 2] and by
    3 ULP elsewhere. atan: in ULP. sine: of sin and cos, absolute. erf: absolute.
    """

    eps: float
    exp: float
    log: float
    atan: float
    sine: float
    erf: float

    def of_exp(self, x: Array) -> Array:
        """The relative error of exp(x)."""
        return (self.exp + 2 * np.abs(x)) * self.eps

    def of_log(self, argument: Array, off: float | Array = 0.0) -> Array:
        """The absolute error of log(argument), whose argument is itself relatively off by `off`."""
        near_1 = (argument >= 0.5) & (argument <= 2)
        return np.where(near_1, self.log, 3 * self.eps * np.abs(np.log(argument))) + off

    def of_root(self, square: Array, magnitude: Array) -> Array:
        """The absolute error of sqrt(square), where the square is a difference of terms as large as `magnitude`."""
        off = self.eps * magnitude
        bound = np.minimum(off / (2 * np.sqrt(square)), np.sqrt(off))
        return np.where(square == 0, 0.0, bound)

    def of_tanh(self, x: Array) -> Array:
        """The absolute error of tanh(x) as sinh(x) / cosh(x); it is 1 in every precision beyond 20."""
        return 2 * self.of_exp(np.minimum(np.abs(x), 20)) + 2.5 * self.eps


SHADERS = {
    "float32": Shader(2.0**-23, exp=3, log=2.0**-21, atan=4096, sine=0.0008, erf=1 / 1024),
    "float16": Shader(2.0**-10, exp=1, log=1 / 1024, atan=5, sine=1 / 512, erf=1 / 512),
}

DOUBLE = Shader(2.0**-52, exp=3, log=3 * 2.0**-52, atan=5, sine=4 * 2.0**-52, erf=16 * 2.0**-52)
"""OpenCL C in float64."""

Floor = Callable[[Shader, Array, Array], Array]
"""(shader, x, y = f(x)) -> the absolute error that a shader's formula may have."""


@dataclass(frozen=True)
class Accuracy:
    """ulps: of float32 and float64; half_ulps: of float16. floor: None where only the ULP hold."""

    ulps: float
    half_ulps: float
    citations: Citations = (bounds.OPENCL,)
    floor: Floor | None = None


def _arc(shader: Shader, x: Array, y: Array) -> Array:
    """atan2 of x and sqrt(1 - x x), in either order: an error of the root turns the angle by |x| times as much."""
    return np.asarray(shader.atan * shader.eps * np.abs(y) + np.abs(x) * shader.of_root(1 - x * x, np.ones_like(x)))


def _sine(shader: Shader, x: Array, _: Array) -> Array:
    return np.where(np.abs(x) <= SINCOS_REACH, shader.sine, 0.0)


def _tan(shader: Shader, x: Array, y: Array) -> Array:
    return np.asarray(_sine(shader, x, y) * (1 + np.abs(y)) * np.sqrt(1 + y * y))


def _exponential_sum(shader: Shader, x: Array, y: Array) -> Array:
    return shader.of_exp(x) * np.cosh(x) + shader.eps * np.abs(y)


def _asinh(shader: Shader, x: Array, _: Array) -> Array:
    size = np.abs(x)
    return shader.of_log(size + np.hypot(size, 1), 6 * shader.eps)


def _acosh(shader: Shader, x: Array, _: Array) -> Array:
    square = (x - 1) * (x + 1)
    argument = x + np.sqrt(square)
    return shader.of_log(argument, shader.of_root(square, x * x) / argument + 6 * shader.eps)


def _atanh(shader: Shader, x: Array, _: Array) -> Array:
    return shader.of_log((1 + x) / (1 - x), 4 * shader.eps) / 2


ACCURACIES: Mapping[str, Accuracy] = {
    "exp": Accuracy(3, 2, (bounds.OPENCL, VULKAN), lambda s, x, y: s.of_exp(x) * y),
    "log": Accuracy(3, 2, (bounds.OPENCL, VULKAN), lambda s, x, _: s.of_log(x)),
    "sin": Accuracy(4, 2, (bounds.OPENCL, SINCOS), _sine),
    "cos": Accuracy(4, 2, (bounds.OPENCL, SINCOS), _sine),
    "tan": Accuracy(5, 2, (bounds.OPENCL, SINCOS), _tan),
    "asin": Accuracy(4, 2, (bounds.OPENCL, VULKAN), _arc),
    "acos": Accuracy(4, 2, (bounds.OPENCL, VULKAN), _arc),
    "atan": Accuracy(5, 2, (bounds.OPENCL, VULKAN), lambda s, _, y: s.atan * s.eps * np.abs(y)),
    "sinh": Accuracy(4, 2, (bounds.OPENCL, VULKAN), _exponential_sum),
    "cosh": Accuracy(4, 2, (bounds.OPENCL, VULKAN), _exponential_sum),
    "tanh": Accuracy(5, 2, (bounds.OPENCL, VULKAN), lambda s, x, _: s.of_tanh(x)),
    "asinh": Accuracy(4, 2, (bounds.OPENCL, VULKAN), _asinh),
    "acosh": Accuracy(4, 2, (bounds.OPENCL, VULKAN), _acosh),
    "atanh": Accuracy(5, 2, (bounds.OPENCL, VULKAN), _atanh),
    "erf": Accuracy(16, 4, (bounds.OPENCL, bounds.WEBNN), lambda s, x, _: np.full_like(x, s.erf)),
    "sqrt": Accuracy(1, 1, (bounds.D3D, bounds.WEBNN)),
    "reciprocal": Accuracy(2, 2, (bounds.WEBNN,)),
}


def bound_of(function: str, x: Array, y: Array, dtype: np.dtype[Any]) -> Ulp:
    """The bound of y = function(x), both float64, as a result in `dtype`; KeyError for an unknown function.

    In float64 one ULP more, for an oracle of the same precision.
    """
    accuracy = ACCURACIES[function]
    ulps = accuracy.half_ulps if dtype == np.float16 else accuracy.ulps
    shader = SHADERS.get(dtype.name)
    if shader is None or accuracy.floor is None:
        return bounds.ulp(ulps + (dtype == np.float64), accuracy.citations, dtype)
    with np.errstate(all="ignore"):
        return bounds.ulp(ulps, accuracy.citations, dtype, _finite(accuracy.floor(shader, x, y)))


def bound_formula(
    ulps: float, citations: Citations, dtype: np.dtype[Any], floor: Callable[[Shader], Array] | None = None
) -> Ulp:
    """The bound of a formula: `ulps`, or the absolute error that the functions in it and its cancellation may cause.

    In float64 one ULP more, for an oracle of the same precision.
    """
    shader = SHADERS.get(dtype.name, DOUBLE)
    with np.errstate(all="ignore"):
        allowed = 0.0 if floor is None else _finite(floor(shader))
    return bounds.ulp(ulps + (dtype == np.float64), citations, dtype, allowed)


def _finite(floor: Array) -> Array:
    """NaN and infinite results have no error."""
    return np.nan_to_num(floor, nan=0.0, posinf=0.0)
