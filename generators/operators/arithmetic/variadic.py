"""Min, Max, Mean, Sum and com.microsoft.dml::DmlFusedSum: any number of inputs that broadcast to each other.

DirectML: two inputs are DML_ELEMENT_WISE_{MIN, MAX, MEAN, ADD} (ADD1 with an activation), one is IDENTITY; three and
more are a chain of operators, which has no single description.

Sources: the operator pages. Version 6 has no broadcasting. The standard does not say what the minimum and the maximum
of a number and NaN are; onnx's own reference evaluator, numpy and ONNX Runtime's CPU kernels give NaN, and the samples
`nan*` take that for the truth. Of zeros of both signs either may be returned. Sums whose terms overflow on the way, or
a mean whose sum does, depend on the order and have no sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import expect_refusal
from epcheck.generators.declaration.interaction import BESIDE_INT32, Interaction, Literal
from epcheck.generators.directml import OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.elementwise import elementwise as dml
from epcheck.generators.families import fused_activation
from epcheck.generators.families.broadcasting import (
    FLOATS,
    INTEGERS,
    ElementwiseSample,
    Rule,
    Shape,
    bound_addition,
    bound_ulps,
    broadcasts,
    call_plain,
    every_combination,
    operator,
    sum_of_magnitudes,
    whole_range,
)
from epcheck.generators.node import Node
from epcheck.generators.operator import declare
from epcheck.generators.truth import Bound

DECLARES = (
    "Min",
    "Max",
    "Mean",
    "Sum",
    "com.microsoft.dml::DmlFusedSum",
)

Draws = tuple[Array, ...]

BROADCASTING = "broadcasting"
"""The word that the text of version 6 lacks."""

SAME: Shape = (3, 5)


def _counts() -> Iterator[ElementwiseSample]:
    """One to seventeen inputs of one shape."""
    for count in (1, 2, 3, 4, 5, 8, 17):
        yield ElementwiseSample(
            name=f"inputs_{count}", shapes=(SAME,) * count, every_dtype=count in (1, 2, 3), spread=count in (2, 3)
        )
    yield ElementwiseSample(name="inputs_2_scalar", shapes=((), ()))
    yield ElementwiseSample(name="inputs_2_rank_8", rank=8, shapes=((2, 3, 2, 3, 2, 3, 2, 3),) * 2)
    for rank in (0, 1, 4, 5, 8):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield ElementwiseSample(name=f"inputs_3_rank_{rank}", rank=rank, shapes=(shape,) * 3)
    for count in (1, 2, 3):
        yield ElementwiseSample(name=f"inputs_{count}_length_1025", shapes=((1025,),) * count)
        yield ElementwiseSample(name=f"inputs_{count}_size_0", shapes=((0, 3),) * count)


def _broadcast() -> Iterator[ElementwiseSample]:
    """Two inputs as every binary operator has them; three and four in every order of sizes."""
    for sample in broadcasts():
        if len(set(sample.shapes)) > 1:
            yield replace(sample, spread=False, since=BROADCASTING)
    shapes: dict[str, tuple[Shape, ...]] = {
        "first_is_largest": ((3, 5), (5,), ()),
        "last_is_largest": ((), (5,), (3, 5)),
        "middle_is_largest": ((5,), (3, 5), (3, 1)),
        "none_is_largest": ((3, 1, 1), (1, 4, 1), (1, 1, 5)),
        "only_last_differs": ((3, 5), (3, 5), (1, 5)),
        "only_first_differs": ((1, 5), (3, 5), (3, 5)),
        "four_inputs": ((2, 3, 4), (4,), (3, 1), (2, 1, 1)),
        "size_0_and_1": ((0, 1), (1, 5), (5,)),
    }
    for name, several in shapes.items():
        yield ElementwiseSample(
            name=f"several_{name}", shapes=several, since=BROADCASTING, every_dtype=name == "last_is_largest"
        )


def _list_refused() -> Iterator[ElementwiseSample]:
    yield ElementwiseSample(name="last_axes_differ", shapes=((2, 3), (2, 4)))
    yield ElementwiseSample(name="third_input_differs", shapes=((2, 3), (2, 3), (4,)))
    yield ElementwiseSample(name="two_dtypes", shapes=(SAME, SAME), mixed=True)
    yield ElementwiseSample(name="broadcasting", shapes=(SAME, (5,)), until=BROADCASTING)


def _extremes() -> Iterator[ElementwiseSample]:
    """What only Min and Max are asked."""
    numbers = (1.0, -1.0, math.inf, -math.inf, 0.0)
    yield ElementwiseSample(name="boundary_values", boundary="boundary", every_dtype=True)
    yield ElementwiseSample(name="denormals", boundary="denormals", kinds=FLOATS, every_dtype=True)
    for name, rows in {
        "nan_first": every_combination((math.nan,), numbers),
        "nan_second": every_combination(numbers, (math.nan,)),
        "nan_third": every_combination(numbers, (2.0,), (math.nan,)),
        "nan_in_the_middle": every_combination(numbers, (math.nan,), (2.0,)),
    }.items():
        yield ElementwiseSample(name=name, rows=rows, kinds=FLOATS, every_dtype=True)
    wide = every_combination((2**24, 2**24 + 1, 2**53, 2**53 + 1, 2**62, 2**62 + 1), (2**24 + 1, 2**53 + 1, 2**62 + 1))
    yield ElementwiseSample(name="beyond_float", rows=wide, kinds=INTEGERS, every_dtype=True)


def _infinities() -> Iterator[ElementwiseSample]:
    """What only Sum and Mean are asked."""
    numbers = (1.0, math.inf, -math.inf, math.nan)
    for count in (2, 3):
        rows = every_combination(*(numbers,) * count)
        yield ElementwiseSample(name=f"infinities_of_{count}", rows=rows, kinds=FLOATS, every_dtype=True)
    yield ElementwiseSample(
        name="cancellation",
        rows=((1.0, 1.0009765625, -1.0), (0.5, -0.5, 0.25), (1024.0, 1.0, -1024.0)),
        every_dtype=True,
    )


def _has_no_broadcasting(operator_name: str) -> Any:
    return lambda since_version: BROADCASTING not in (schema.schema(operator_name, since_version).doc or "")


def _mean(*values: Array) -> Array:
    return np.asarray(sum(values) / len(values))


def _sum(*values: Array) -> Array:
    return np.asarray(sum(values[1:], values[0]))


def _mean_bound(dtype: np.dtype[Any], values: Draws) -> Bound:
    """Of the sum, divided; the factor 1 / n is rounded, and so is the product."""
    return bounds.bound_sum(len(values), dtype, sum_of_magnitudes(values) / len(values), ulps=3.0, roundings=0)


def _reduce_inputs(function: Any) -> Any:
    return call_plain(lambda *values: function.reduce(np.broadcast_arrays(*values)))


def _describe(desc: Any) -> Any:
    def describe(_node: Node, tensors: tuple[TensorDesc, ...], result: TensorDesc) -> OperatorDesc | None:
        if len(tensors) == 1:
            return dml.ElementWiseIdentity(tensors[0], result)
        built: OperatorDesc | None = desc(tensors[0], tensors[1], result) if len(tensors) == 2 else None
        return built

    return describe


def _fused_samples() -> Iterator[ElementwiseSample]:
    """Two summands, as many as DirectML fuses, through each activation."""
    for name, activation in {"relu": "Relu", "leaky_relu": "LeakyRelu"}.items():
        attributes = fused_activation.attributes(activation)
        for sample in broadcasts():
            yield replace(sample, name=f"{name}_{sample.name}", attributes=attributes)
        rows = every_combination((math.inf, -math.inf, 1.0, -1.0), (2.0, -3.0, 0.0))
        yield ElementwiseSample(name=f"{name}_infinities", rows=rows, attributes=attributes, every_dtype=True)
    for name, alpha in {"0": 0.0, "0_25": 0.25, "minus_1": -1.0, "2": 2.0}.items():
        attributes = fused_activation.attributes("LeakyRelu", alpha)
        yield ElementwiseSample(
            name=f"leaky_relu_alpha_{name}", shapes=(SAME, SAME), attributes=attributes, every_dtype=True
        )
    yield expect_refusal(
        ElementwiseSample(
            name="last_axes_differ", shapes=((2, 3), (2, 4)), attributes=fused_activation.attributes("Relu")
        )
    )


def _rule(name: str, desc: Any, compute: Any, bound: Any, further: Iterator[ElementwiseSample]) -> Rule:
    return Rule(
        name,
        (*_counts(), *_broadcast(), *further, *map(expect_refusal, _list_refused())),
        draw=whole_range,
        compute=compute,
        describe=_describe(desc),
        bound=bound,
        same_shape=_has_no_broadcasting(name),
    )


SELECTION = bound_ulps(0.0, bounds.WEBNN)

RULES = (
    _rule("Min", dml.ElementWiseMin, _reduce_inputs(np.minimum), SELECTION, _extremes()),
    _rule("Max", dml.ElementWiseMax, _reduce_inputs(np.maximum), SELECTION, _extremes()),
    _rule("Mean", dml.ElementWiseMean, call_plain(_mean), _mean_bound, _infinities()),
    _rule("Sum", dml.ElementWiseAdd, call_plain(_sum), bound_addition, _infinities()),
    Rule(
        "DmlFusedSum",
        tuple(_fused_samples()),
        draw=whole_range,
        compute=lambda node, values: fused_activation.activate(node, _sum(*values)),
        describe=fused_activation.describe_addition,
        bound=bound_ulps(2.0, bounds.WEBNN.add_remark("an addition, 1 ULP, and a product with alpha, 1 ULP")),
        domain="com.microsoft.dml",
    ),
)

BEYOND_INT32 = Interaction("beyond_int32", (Literal(BESIDE_INT32), Literal(BESIDE_INT32[::-1])), {}, "int64")

OPERATORS = declare(
    tuple(operator(rule) for rule in RULES), interactions={"Max": (BEYOND_INT32,), "Min": (BEYOND_INT32,)}
)
