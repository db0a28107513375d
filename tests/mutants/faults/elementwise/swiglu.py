"""Mutants of SwiGLU: inputs exchanged, another gate, alpha in the wrong place, exp that overflows, broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.oracle_math.activations import sigmoid
from tests.mutants.mutant import Mutant, attribute, by_truth, outputs, outputs_of, swapped

OPERATOR = "SwiGLU"


def gate(fault: str, function: Callable[[Array, Array, float], Array]) -> Mutant:
    """(a, b, alpha) -> y, in float64."""

    def answer(built: BuiltCase) -> Mapping[str, Array] | None:
        right = outputs_of(built.truth)
        a, b = (built.node.array(name).astype(np.float64) for name in ("A", "B"))
        if right is None:
            return None
        with np.errstate(all="ignore"):
            return {"Y": function(a, b, built.node.number("alpha", 1.0)).astype(right["Y"].dtype)}

    return by_truth(OPERATOR, fault, answer)


def broadcasts(built: BuiltCase) -> Mapping[str, Array] | None:
    """B is broadcast to A where it can be."""
    a, b = built.node.array("A"), built.node.array("B")
    try:
        return outputs_of(built.truth) or {"Y": a * b}
    except ValueError:
        return None


MUTANTS = [
    attribute(OPERATOR, "alpha", None),
    swapped(OPERATOR),
    gate("the gate is Gelu", lambda a, b, _: a * sigmoid(1.702 * a) * b),
    gate("the gate is a sigmoid", lambda a, b, alpha: sigmoid(alpha * a) * b),
    gate("alpha scales the gate itself, too", lambda a, b, alpha: alpha * a * sigmoid(alpha * a) * b),
    gate("the gate is a relu", lambda a, b, _: np.maximum(a, 0) * b),
    gate(
        "exp overflows in its precision",
        lambda a, b, alpha: a * np.where(-alpha * a > 88, np.nan, sigmoid(alpha * a)) * b,
    ),
    gate("one is added to b", lambda a, b, alpha: a * sigmoid(alpha * a) * (b + 1)),
    gate(
        "NaN of b is passed over", lambda a, b, alpha: a * sigmoid(alpha * a) * np.nan_to_num(b, nan=0.0, posinf=np.inf)
    ),
    outputs(OPERATOR, "results pass through float16", lambda y: y.astype(np.float16).astype(y.dtype)),
    outputs(
        OPERATOR,
        "at most 1024 elements are written",
        lambda y: np.where(np.arange(y.size).reshape(y.shape) < 1024, y, 0),
    ),
    Mutant(OPERATOR, "B is broadcast", broadcasts),
]
