"""QuantizeLinear to and DequantizeLinear from float8, which numpy lacks: see `narrow`.

Sources: the operator pages. A zero point of float8 is 0, and says which of its types y has. Scales of QuantizeLinear
are powers of two, so that x / y_scale is exact and what is left is the cast of `narrow`, `saturate` included.
DequantizeLinear multiplies the value of x, NaN among them, by the scale: one rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import helper

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.families import narrow
from epcheck.generators.node import Attribute, Node, Operand, Surroundings
from epcheck.generators.truth import Outputs, Truth


@dataclass(frozen=True, kw_only=True)
class Float8Sample(Sample):
    """values: of QuantizeLinear, a kind of `narrow.values_of`; of DequantizeLinear all that the type has. scale: per
    axis where it is a tuple. zero_point: whether there is one; QuantizeLinear always has it."""

    values: str = ""
    scale: float | tuple[float, ...] = 0.5
    zero_point: bool = True
    attributes: Mapping[str, Attribute] = field(default_factory=dict)


def quantize_samples() -> Iterator[Float8Sample]:
    for values in ("held", "ties", "beside_ties", "zeros"):
        yield Float8Sample(name=f"float8_{'every_value' if values == 'held' else values}", values=values)
    for scale, name in ((4.0, "4"), (2.0**-10, "2_to_the_minus_10")):
        yield Float8Sample(name=f"float8_ties_scale_{name}", values="ties", scale=scale)
    for suffix, saturate in (("", None), ("_saturate_1", 1), ("_saturate_0", 0)):
        attributes = {} if saturate is None else {"saturate": saturate}
        yield Float8Sample(name=f"float8_beyond{suffix}", values="beyond", attributes=attributes)


def dequantize_samples() -> Iterator[Float8Sample]:
    for zero_point in (True, False):
        name = "float8_every_code" + ("" if zero_point else "_zero_point_omitted")
        yield Float8Sample(name=name, zero_point=zero_point)
    for name, scale in (("tenth", 0.1), ("minus_3", -3.0), ("0", 0.0)):
        yield Float8Sample(name=f"float8_scale_{name}", scale=scale)
    yield Float8Sample(name="float8_per_axis", scale=(0.5, 0.3, 7.0, 0.01), attributes={"axis": 0})


def pairs(operator: str, since_version: int) -> Iterator[tuple[str, str]]:
    """The dtypes of x and of the other side, in the versions that have float8."""
    allowed = [name for name in narrow.FLOAT8 if schema.allows(operator, since_version, narrow.ONNX_NAMES[name])]
    yield from (("float32", name) if operator == "QuantizeLinear" else (name, "float32") for name in allowed)


def bindings(sample: Float8Sample, since_version: int, operator: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The zero point, and what has the type float8 already, are initializers."""
    known = schema.attribute_names(operator, since_version)
    is_float8 = any(name in narrow.FLOAT8 for name in dtypes)
    return (graph.INITIALIZER,) if is_float8 and sample.attributes.keys() <= known else ()


def quantize_node(sample: Float8Sample, context: CaseContext) -> Node:
    """x [n] and y_scale [] float32; y_zero_point [] float8, 0; y of its type, which a Cast behind it widens."""
    source, target = context.dtypes
    assert isinstance(sample.scale, float)
    x = narrow.values_of(sample.values, source, target) * source.type(sample.scale)
    operands = (
        Operand("x", x),
        Operand("y_scale", np.array(sample.scale, source)),
        Operand("y_zero_point", np.zeros((), target), parameter=True),
    )
    signature = schema.signature("QuantizeLinear", context.since_version)
    types = {**dict.fromkeys(signature.inputs[:2], source.name), signature.outputs[0]: target.name}
    to = helper.np_dtype_to_tensor_dtype(np.dtype(np.float32))
    around = Surroundings(
        inputs=tuple(operand.name for operand in operands),
        outputs=("narrow",),
        results={"y": "float32"},
        types={name: dtype for name, dtype in types.items() if name in signature.constraints},
        after=(helper.make_node("Cast", ["narrow"], ["y"], name="back", to=to),),
    )
    return Node("QuantizeLinear", "", context.since_version, operands, ("y",), sample.attributes, around)


def quantize_truth(node: Node) -> Truth:
    """The cast of x / y_scale."""
    exact = node.array("x").astype(np.float64) / float(node.array("y_scale"))
    values = narrow.round_values(exact, node.array("y_zero_point").dtype.name, node)
    return Outputs((narrow.widen_output("y", values, np.dtype(np.float32)),))


def dequantize_node(sample: Float8Sample, context: CaseContext) -> Node:
    """x, every value of its type, as a matrix of four rows; x_scale float32 [] or [4]; x_zero_point 0."""
    source, target = context.dtypes
    scale = np.array(sample.scale, target)
    operands = [
        Operand("x", narrow.codes(source).reshape(4, -1), parameter=True),
        Operand("x_scale", scale),
    ]
    if sample.zero_point:
        operands.append(Operand("x_zero_point", np.zeros(scale.shape, source), parameter=True))
    return Node("DequantizeLinear", "", context.since_version, tuple(operands), ("y",), sample.attributes)


def dequantize_truth(node: Node) -> Truth:
    """x * x_scale, rounded once."""
    scale: Array = node.array("x_scale").astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = node.array("x").astype(np.float32).astype(np.float64) * (scale[:, None] if scale.ndim else scale)
    dtype: np.dtype[Any] = node.array("x_scale").dtype
    bound = bounds.ulp(1.0, (bounds.D3D.add_remark("a product within 1 ULP"),), dtype)
    return Outputs((bounds.round_output("y", exact, dtype, bound),))
