"""Functions of one tensor -> DML_ELEMENT_WISE_{ACOS,ACOSH,...,TAN}_OPERATOR_DESC; Tanh -> DML_ACTIVATION_TANH.

Acos, Acosh, Asin, Asinh, Atan, Atanh, Ceil, Cos, Cosh, Erf, Exp, Floor, Log, Reciprocal, Round, Sin, Sinh, Sqrt, Tan,
Tanh. The pages name the function and nothing else; its values at the ends of its domain, at infinities and NaN are
those of IEEE 754 (9.2.1), which agree with the mathematical limits; so are the signs of zeros.
Bounds: `elementary`. Erf-9 also allows integers, whose results the page does not say how to round: zeros only.
How the DML EP lowers them: DmlOperatorElementWise.cpp and DmlOperatorActivation.cpp in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds, elementary, zero_signs
from epcheck.generators.case import CaseContext
from epcheck.generators.citation import Citation, CitationKind, Publisher
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.elementwise import activation, unary
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import elementwise
from epcheck.generators.families.elementwise import (
    Domain,
    ElementwiseOperator,
    ElementwiseSample,
    both_signs,
    list_small,
)
from epcheck.generators.node import Node, Operand
from epcheck.generators.truth import Output, Outputs, Truth, Ulp, ZeroSigns

DECLARES = (
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Erf",
    "Exp",
    "Floor",
    "Log",
    "Reciprocal",
    "Round",
    "Sin",
    "Sinh",
    "Sqrt",
    "Tan",
    "Tanh",
)

IEEE_EXACT = Citation(CitationKind.PUBLISHED, "IEEE 754: rounding to an integer is exact", Publisher.IEEE)
HALF_PI = np.pi / 2


@dataclass(frozen=True)
class Function:
    """exact: in float64. accuracy: its row in `elementary`; None where the result is a number that has no error. zeros:
    who defines the sign of a zero."""

    name: str
    exact: Callable[[Array], Array]
    domain: Domain
    describe: Callable[[TensorDesc], OperatorDesc]
    accuracy: str | None = None
    zeros: str = zero_signs.FUNCTION


def _list_neighbours(value: float, info: Any, steps: tuple[int, ...] = (-2, -1, 0, 1, 2)) -> list[float]:
    """A number of the dtype and its neighbours, some steps away."""
    bits = np.array([value], info.dtype)
    return [float((bits.view(f"i{bits.itemsize}") + step).view(info.dtype)[0]) for step in steps]


def _unit_interval(info: Any) -> list[float]:
    inside = 1 - float(info.epsneg)
    return both_signs(1.0, inside, 1 - 4 * float(info.epsneg), 0.75, 0.5, 0.25, float(info.eps), float(info.tiny), 0.0)


def _list_outside_1(info: Any) -> list[float]:
    return both_signs(1 + float(info.eps), 1.5, 2.0, float(info.max), np.inf)


def _list_large(info: Any) -> list[float]:
    """Where the square of an argument overflows."""
    root = float(info.max) ** 0.5
    return [root / 4, root * 4, float(info.max) / 4, float(info.max)]


def _halves(_: Any) -> list[float]:
    return both_signs(*(k + 0.5 for k in range(9)), 100.5, 101.5)


def _list_beside_halves(info: Any) -> list[float]:
    return [signed for half in (0.5, 1.5, 2.5) for signed in both_signs(*_list_neighbours(half, info))]


def _list_beside_integers(info: Any) -> list[float]:
    return [signed for whole in (1.0, 2.0, 3.0) for signed in both_signs(*_list_neighbours(whole, info))]


def _list_last_fractions(info: Any) -> list[float]:
    """Around the magnitude from which on a floating-point number has no fraction left."""
    last = 2.0 ** int(info.nmant)
    return both_signs(
        last / 2 + 0.5, last / 2 + 1.5, last - 0.5, last, last + 1, 2 * last, 2 * last + 2, float(info.max)
    )


ROUNDING = {
    "halves": _halves,
    "beside_halves": _list_beside_halves,
    "beside_integers": _list_beside_integers,
    "last_fractions": _list_last_fractions,
}


def _quadrants(_: Any) -> list[float]:
    return both_signs(*(k * np.pi / 4 for k in range(1, 9)))


def _list_within_100_pi(_: Any) -> list[float]:
    return both_signs(*(k * np.pi + 0.3 for k in (3, 10, 33, 66, 99)))


def _list_beyond_100_pi(info: Any) -> list[float]:
    values = (1e3, 1e4, 5e4, 1e5, 1e7, 1e10, 1e20, 1e37)
    return both_signs(*(value for value in values if value < float(info.max)))


def _list_beside_half_pi(info: Any) -> list[float]:
    return both_signs(*_list_neighbours(HALF_PI, info, (-3, -2, -1, 0, 1, 2, 3)), 1.5, 1.6)


CIRCULAR = {
    "quadrants": _quadrants,
    "within_100_pi": _list_within_100_pi,
    "beyond_100_pi": _list_beyond_100_pi,
    "small": list_small,
}


def _below_overflow(info: Any) -> list[float]:
    end = float(np.log(np.float64(info.max)))
    return both_signs(end - 0.01, end - 0.5, end - 1)


def _exp_overflows_but_not_half_of_it(info: Any) -> list[float]:
    end = float(np.log(np.float64(info.max)))
    return both_signs(end + 0.1, end + 0.3, end + 0.6)


def _overflow(info: Any) -> list[float]:
    end = float(np.log(np.float64(info.max)))
    return both_signs(end + 1, 2 * end, float(info.max), np.inf)


def _underflow(info: Any) -> list[float]:
    end = float(np.log(np.float64(info.tiny)))
    return [end + 1, end + 0.1, end - 1, end - 3, 2 * end, -float(info.max)]


def _list_saturating(info: Any) -> list[float]:
    end = float(np.log(np.float64(info.max)))
    values = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 9.0, 10.0, 19.0, 20.0, end - 1, end + 1, 2 * end, float(info.max))
    return both_signs(*values)


def _list_around_1(info: Any) -> list[float]:
    return [*_list_neighbours(1.0, info, (-8, -2, -1, 0, 1, 2, 8)), 0.5, 0.75, 1.5, 2.0]


def _list_from_1(info: Any) -> list[float]:
    return [*_list_neighbours(1.0, info, (0, 1, 2, 3, 8, 64)), 1.0625, 1.5, 2.0]


def _below_1(info: Any) -> list[float]:
    return [1 - float(info.epsneg), 0.5, 0.0, -0.0, -1.0, -2.0, -float(info.max), -np.inf]


def _negative(info: Any) -> list[float]:
    return [-float(info.tiny), -0.5, -1.0, -2.0, -100.0, -float(info.max), -np.inf]


def _ends(info: Any) -> list[float]:
    return [float(info.tiny), 2 * float(info.tiny), float(info.max) / 2, float(info.max), 1.0, 4.0]


def _list_both_ends(info: Any) -> list[float]:
    return both_signs(*_ends(info))


def _powers_of_two(info: Any) -> list[float]:
    return [2.0**k for k in range(int(info.minexp), int(info.maxexp), max(1, int(info.maxexp) // 16))]


def _zeros(_: Any) -> list[float]:
    return [0.0, -0.0]


UNIT = Domain(-1, 1, reach=1.0, limits={"domain_ends": _unit_interval, "out_of_domain": _list_outside_1})
CIRCLE = Domain(-7, 7, reach=float(elementary.SINCOS_REACH), limits=CIRCULAR)
HYPERBOLIC = Domain(
    -6,
    6,
    reach=11.0,
    limits={
        "below_overflow": _below_overflow,
        "exp_overflows_but_not_half_of_it": _exp_overflows_but_not_half_of_it,
        "overflow": _overflow,
        "small": list_small,
    },
)
SATURATING = Domain(-3, 3, limits={"saturating": _list_saturating, "small": list_small})

FUNCTIONS = (
    Function("Acos", np.arccos, UNIT, lambda t: unary.ElementWiseAcos(t, t), "acos"),
    Function(
        "Acosh",
        np.arccosh,
        Domain(
            1,
            9,
            least=1.0,
            signed=False,
            limits={"from_1": _list_from_1, "out_of_domain": _below_1, "large": _list_large},
        ),
        lambda t: unary.ElementWiseAcosh(t, t),
        "acosh",
    ),
    Function("Asin", np.arcsin, UNIT, lambda t: unary.ElementWiseAsin(t, t), "asin"),
    Function(
        "Asinh",
        np.arcsinh,
        Domain(
            limits={
                "small": list_small,
                "negative": lambda _: [-1.0, -2.0, -10.0, -100.0, -1000.0, -4096.0, -30000.0],
                "large": lambda info: both_signs(*_list_large(info)),
            }
        ),
        lambda t: unary.ElementWiseAsinh(t, t),
        "asinh",
    ),
    Function(
        "Atan",
        np.arctan,
        Domain(limits={"small": list_small, "large": lambda info: both_signs(1.0, 10.0, 1000.0, *_list_large(info))}),
        lambda t: unary.ElementWiseAtan(t, t),
        "atan",
    ),
    Function("Atanh", np.arctanh, UNIT, lambda t: unary.ElementWiseAtanh(t, t), "atanh"),
    Function(
        "Ceil",
        np.ceil,
        Domain(-50, 50, limits=ROUNDING),
        lambda t: unary.ElementWiseCeil(t, t),
        zeros=zero_signs.ROUNDING,
    ),
    Function("Cos", np.cos, CIRCLE, lambda t: unary.ElementWiseCos(t, t), "cos"),
    Function("Cosh", np.cosh, HYPERBOLIC, lambda t: unary.ElementWiseCosh(t, t), "cosh"),
    Function("Erf", unary.erf, SATURATING, lambda t: unary.ElementWiseErf(t, t), "erf", zero_signs.ERF),
    Function(
        "Exp",
        np.exp,
        Domain(
            -8,
            8,
            reach=11.0,
            limits={
                "below_overflow": _below_overflow,
                "overflow": _overflow,
                "underflow": _underflow,
                "small": list_small,
            },
        ),
        lambda t: unary.ElementWiseExp(t, t),
        "exp",
    ),
    Function(
        "Floor",
        np.floor,
        Domain(-50, 50, limits=ROUNDING),
        lambda t: unary.ElementWiseFloor(t, t),
        zeros=zero_signs.ROUNDING,
    ),
    Function(
        "Log",
        np.log,
        Domain(
            0.01,
            100,
            signed=False,
            limits={
                "around_1": _list_around_1,
                "zeros": _zeros,
                "negative": _negative,
                "ends": _ends,
                "powers": _powers_of_two,
            },
        ),
        lambda t: unary.ElementWiseLog(t, t),
        "log",
    ),
    Function(
        "Reciprocal",
        np.reciprocal,
        Domain(
            0.1,
            10,
            limits={
                "zeros": _zeros,
                "ends": _list_both_ends,
                "powers": _powers_of_two,
                "negative": lambda _: [-3.0, -0.1, -7.0],
            },
        ),
        lambda t: unary.ElementWiseRecip(t, t),
        "reciprocal",
        zero_signs.PRODUCT,
    ),
    Function(
        "Round",
        np.rint,
        Domain(-50, 50, limits=ROUNDING),
        lambda t: unary.ElementWiseRound(t, t),
        zeros=zero_signs.ROUNDING,
    ),
    Function("Sin", np.sin, CIRCLE, lambda t: unary.ElementWiseSin(t, t), "sin"),
    Function("Sinh", np.sinh, HYPERBOLIC, lambda t: unary.ElementWiseSinh(t, t), "sinh"),
    Function(
        "Sqrt",
        np.sqrt,
        Domain(
            0,
            100,
            signed=False,
            limits={
                "zeros": _zeros,
                "negative": _negative,
                "ends": _ends,
                "squares": lambda _: [float(k * k) for k in range(1, 17)],
            },
        ),
        lambda t: unary.ElementWiseSqrt(t, t),
        "sqrt",
        zero_signs.ROOT,
    ),
    Function(
        "Tan",
        np.tan,
        Domain(
            -7, 7, reach=float(elementary.SINCOS_REACH), limits={**CIRCULAR, "beside_half_pi": _list_beside_half_pi}
        ),
        lambda t: unary.ElementWiseTan(t, t),
        "tan",
    ),
    Function("Tanh", np.tanh, SATURATING, lambda t: activation.Tanh(t, t), "tanh"),
)


def samples(function: Function) -> Iterator[ElementwiseSample]:
    yield from elementwise.samples(function.domain)
    if function.name == "Erf":
        yield ElementwiseSample(name="zero", values="zero")


def node(function: Function, sample: ElementwiseSample, context: CaseContext) -> Node:
    """One floating-point tensor of any shape, and a result of the same type and shape."""
    value = elementwise.values_of(sample, function.domain, context.dtype, context.rng)
    definition = schema.schema(function.name, context.since_version)
    operand = Operand(definition.inputs[0].name, value)
    return Node(function.name, "", context.since_version, (operand,), (definition.outputs[0].name,))


def truth(function: Function, node: Node) -> Truth:
    """The function in float64, rounded once."""
    (operand,) = node.inputs
    assert operand is not None
    dtype, x = operand.value.dtype, elementwise.widen_floats(operand.value)
    with np.errstate(all="ignore"):
        y = np.asarray(function.exact(x))
    if dtype.kind != "f":
        return Outputs((Output(node.outputs[0], y.astype(dtype)),))
    signs = ZeroSigns(function.zeros)
    return Outputs((bounds.round_output(node.outputs[0], y, dtype, _bound(function, x, y, dtype), signs),))


def _bound(function: Function, x: Array, y: Array, dtype: np.dtype[Any]) -> Ulp:
    if function.accuracy is None:
        return Ulp(0, (IEEE_EXACT,))
    bound = elementary.bound_of(function.accuracy, x, y, dtype)
    return replace(bound, is_one_rounding=function.accuracy == "sqrt")


def lower(function: Function, node: Node) -> Lowering | None:
    """Rank padded to 4; integers have no kernel."""
    (operand,) = node.inputs
    assert operand is not None
    return elementwise.lower_tensor(operand.value, function.describe) if operand.value.dtype.kind == "f" else None


OPERATORS = tuple(
    ElementwiseOperator(
        function.name,
        partial(samples, function),
        elementwise.bindings,
        partial(node, function),
        partial(truth, function),
        partial(lower, function),
    )
    for function in FUNCTIONS
)
