"""IsInf -> DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC, IsNaN -> DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC.

Sources: the operator pages. IsInf finds infinities of the signs that detect_negative and detect_positive, both 1 by
default, ask for; with both 0 it finds none. Both tests are exact.
How the DML EP lowers them: DmlOperatorElementWise.cpp in ONNX Runtime; detect_negative equal to detect_positive, also
where both are 0, is the mode for either infinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext
from epcheck.generators.declaration.interaction import Interaction, Literal
from epcheck.generators.directml import DataType, TensorDesc
from epcheck.generators.directml.descriptions.elementwise.unary import (
    ElementWiseIsInfinity,
    ElementWiseIsNan,
    IsInfinityMode,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import elementwise
from epcheck.generators.families.elementwise import Domain, ElementwiseOperator, ElementwiseSample
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import declare
from epcheck.generators.truth import Output, Outputs, Truth

DECLARES = (
    "IsInf",
    "IsNaN",
)


def _list_around_infinity(info: Any) -> list[float]:
    largest = float(info.max)
    return [np.inf, largest, largest / 2, -np.inf, -largest, -largest / 2, np.nan, 0.0, 1.0, -1.0]


def _list_infinities(_: Any) -> list[float]:
    return [np.inf, -np.inf] * 8


def _list_nans(_: Any) -> list[float]:
    return [np.nan] * 11


DOMAIN = Domain(
    limits={"around_infinity": _list_around_infinity, "all_infinite": _list_infinities, "all_nan": _list_nans}
)
SETTINGS: dict[str, dict[str, Attribute]] = {
    "both": {"detect_negative": 1, "detect_positive": 1},
    "positive": {"detect_negative": 0},
    "negative": {"detect_positive": 0},
    "positive_both_given": {"detect_negative": 0, "detect_positive": 1},
    "negative_both_given": {"detect_negative": 1, "detect_positive": 0},
    "neither": {"detect_negative": 0, "detect_positive": 0},
}


def samples(settings: dict[str, dict[str, Attribute]]) -> Iterator[ElementwiseSample]:
    """Every third element of an ordinary sample is infinite or NaN, see `node`."""
    yield from elementwise.samples(DOMAIN)
    for name, attributes in settings.items():
        attribute_values = tuple(attributes.items())
        for kind in ("around_infinity", "whole_range"):
            yield ElementwiseSample(
                name=f"{name}_{kind}", shape=(4, 32), values=kind, attributes=attribute_values, every_dtype=True
            )
        yield ElementwiseSample(name=f"{name}_long", shape=(1031,), attributes=attribute_values, every_dtype=True)


def node(name: str, sample: ElementwiseSample, context: CaseContext) -> Node:
    """X of any shape, Y bool of the same."""
    value = elementwise.values_of(sample, DOMAIN, context.dtype, context.rng)
    if sample.values == "ordinary":
        flat = value.reshape(-1).copy()
        flat[::3] = context.rng.choice([np.inf, -np.inf, np.nan], flat[::3].size)
        value = flat.reshape(value.shape)
    return Node(name, "", context.since_version, (Operand("X", value),), ("Y",), dict(sample.attributes))


def is_inf(node: Node) -> Array:
    """Whether each element is an infinity of a sign that is asked for."""
    x = node.array("X")
    negative, positive = (bool(node.integer(name, 1)) for name in ("detect_negative", "detect_positive"))
    return np.asarray(np.isinf(x) & np.where(x < 0, negative, positive))


def is_inf_truth(node: Node) -> Truth:
    return Outputs((Output("Y", is_inf(node)),))


def is_nan_truth(node: Node) -> Truth:
    return Outputs((Output("Y", np.asarray(np.isnan(node.array("X")))),))


def _flags(tensor: TensorDesc) -> TensorDesc:
    return replace(tensor, data_type=DataType.UINT8)


def is_inf_lower(node: Node) -> Lowering | None:
    """Rank padded to 4, bool as UINT8. None where neither sign is asked for: DirectML has no mode for it."""
    negative, positive = (bool(node.integer(name, 1)) for name in ("detect_negative", "detect_positive"))
    if not (negative or positive):
        return None
    mode = (
        IsInfinityMode.EITHER
        if negative == positive
        else IsInfinityMode.POSITIVE
        if positive
        else IsInfinityMode.NEGATIVE
    )
    return elementwise.lower_tensor(node.array("X"), lambda t: ElementWiseIsInfinity(t, _flags(t), mode))


def is_nan_lower(node: Node) -> Lowering | None:
    """Rank padded to 4, bool as UINT8."""
    return elementwise.lower_tensor(node.array("X"), lambda t: ElementWiseIsNan(t, _flags(t)))


INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "IsNaN": (
        Interaction("nan_with_a_sign", (Literal([-np.nan, np.nan, -np.inf, -0.0, 1.0]),)),
    ),
}  # fmt: skip

OPERATORS = declare(
    (
        ElementwiseOperator(
            "IsInf",
            partial(samples, SETTINGS),
            elementwise.bindings,
            partial(node, "IsInf"),
            is_inf_truth,
            is_inf_lower,
        ),
        ElementwiseOperator(
            "IsNaN", partial(samples, {}), elementwise.bindings, partial(node, "IsNaN"), is_nan_truth, is_nan_lower
        ),
    ),
    interactions=INTERACTIONS,
)
