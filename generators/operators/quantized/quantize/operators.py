"""QuantizeLinear and DequantizeLinear of ai.onnx and com.microsoft -> DML_ELEMENT_WISE_QUANTIZE_LINEAR_OPERATOR_DESC,
DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC; from version 21 on DML_QUANTIZE_OPERATOR_DESC and
DML_DEQUANTIZE_OPERATOR_DESC. How the DML EP lowers them: DmlOperatorElementWise.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import numpy as np

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.declaration.interaction import ABOVE_GROUPS, DISPATCHED, Interaction, Literal, Random
from epcheck.generators.declaration.undefined_sample import NAN_LEVEL, Answer, UndefinedSample, UndefinedSamples
from epcheck.generators.directml import lowering
from epcheck.generators.directml.descriptions.quantized.linear_quantization import (
    Dequantize,
    ElementWiseDequantizeLinear,
    ElementWiseQuantizeLinear,
    QuantizationType,
    Quantize,
)
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.families import float8, narrow
from epcheck.generators.families.float8 import Float8Sample
from epcheck.generators.node import Node
from epcheck.generators.operator import PAIRS_OF_DTYPES, Operator, declare
from epcheck.generators.operators.quantized.quantize.oracle import (
    broadcast_parameter,
    find_broken_rule,
    truth_of_dequantize,
    truth_of_quantize,
    y_dtype_of,
)
from epcheck.generators.operators.quantized.quantize.samples import (
    FOUR_BITS,
    Family,
    QuantizationSample,
    dequantize_samples,
    quantize_samples,
)
from epcheck.generators.oracle_math import quantization
from epcheck.generators.truth import Refusal, Truth

DECLARES = (
    "QuantizeLinear",
    "DequantizeLinear",
    "com.microsoft::QuantizeLinear",
    "com.microsoft::DequantizeLinear",
)

MICROSOFT = "com.microsoft"
S = TypeVar("S", bound=Sample)


@dataclass(frozen=True)
class QuantizationOperator(Operator[S]):
    """An operator whose dtypes are those of its x and of its other float or integer side, whatever a version calls
    them, and whose output may have a type that no input binds: the truth says which it is."""

    def dtypes(self, since_version: int) -> Iterator[tuple[str, ...]]:
        signature = schema.signature(self.name, since_version, self.domain)
        full = "x" if self.name == "QuantizeLinear" else "scale"
        types = {"x": signature.inputs[0], "scale": signature.inputs[1], "y": signature.outputs[0]}
        other = types["y" if full == "x" else "scale"]
        yield from product(self._list_allowed(types["x"], since_version), self._list_allowed(other, since_version))
        yield from () if self.domain else float8.pairs(self.name, since_version)

    def _list_allowed(self, type_string: str, since_version: int) -> tuple[str, ...]:
        single = schema.element_name(type_string)
        few_bits = () if self.domain else self._few_bits(type_string, since_version)
        return (single,) if single else (*schema.dtypes(self.name, since_version, type_string, self.domain), *few_bits)

    def _few_bits(self, type_string: str, since_version: int) -> tuple[str, ...]:
        """The types of 4 and 2 bits that x may have. No runtime returns such a tensor to numpy, so QuantizeLinear has
        no such y."""
        definition = schema.schema(self.name, since_version, self.domain)
        allowed = {c.type_param_str: c.allowed_type_strs for c in definition.type_constraints}
        is_read = self.name == "DequantizeLinear" and type_string == definition.inputs[0].type_str
        return tuple(
            name for name in quantization.NARROW if is_read and f"tensor({name})" in allowed.get(type_string, ())
        )

    def types(self, node: Node, truth: Truth, dtypes: tuple[str, ...]) -> Mapping[str, str]:
        """The type of a refused node's output, which nothing binds, is the one that its attributes ask for."""
        asked = (y_dtype_of(node).name, *dtypes[1:]) if isinstance(truth, Refusal) else dtypes
        return super().types(node, truth, asked)


def lower(node: Node) -> Lowering | None:
    """Up to version 19 the elementwise operators, from version 21 on those with blocks.

    None for nothing to quantise, for types that the operators lack, and for a last block that is shorter.
    """
    quantizes = node.op_type == "QuantizeLinear"
    x, scale = node.array("x"), node.array("y_scale" if quantizes else "x_scale")
    zero_point = node.value("y_zero_point" if quantizes else "x_zero_point")
    if not x.size or scale.dtype.kind != "f" or find_broken_rule(node, scale, zero_point):
        return None
    has_blocks = "block_size" in schema.schema(node.op_type, node.since_version, node.domain).attributes
    return _lower_blocked(node, x, scale, zero_point) if has_blocks else _lower_elementwise(node, x, scale, zero_point)


def _lower_elementwise(node: Node, x: Array, scale: Array, zero_point: Array | None) -> Lowering | None:
    """Every parameter broadcast to x."""
    quantizes, dtype = node.op_type == "QuantizeLinear", y_dtype_of(node)
    if quantizes and dtype.itemsize > 1:
        return None
    attributes = dict(node.attributes)
    spread_scale = broadcast_parameter(x.shape, scale, attributes)
    zero = None if zero_point is None else broadcast_parameter(x.shape, zero_point, attributes)
    (x_desc, x_view), (scale_desc, scale_view) = lowering.broadcast(x), lowering.broadcast(spread_scale, x.shape)
    zero_desc, zero_view = lowering.optional(zero, x.shape)
    operator = ElementWiseQuantizeLinear if quantizes else ElementWiseDequantizeLinear
    desc = operator(x_desc, scale_desc, zero_desc, lowering.result(dtype, x.shape))
    return Lowering(desc, (x_view, scale_view, zero_view))


EIGHT_AND_FOUR_BITS = frozenset({"int8", "uint8", *FOUR_BITS})


def _lower_blocked(node: Node, x: Array, scale: Array, zero_point: Array | None) -> Lowering | None:
    """One scale for each block; without a zero point an unsigned type gets zeros, since DirectML takes the middle."""
    quantizes, dtype = node.op_type == "QuantizeLinear", y_dtype_of(node)
    levels, full = (dtype, x.dtype) if quantizes else (x.dtype, dtype)
    if levels.name not in EIGHT_AND_FOUR_BITS or full.kind != "f":
        return None
    if zero_point is None and levels.name.startswith("u"):
        zero_point = np.zeros(scale.shape, levels)
    parameters = [scale] if zero_point is None else [scale, zero_point]
    block, axis = node.integer("block_size", 0), node.integer("axis", 1)
    if scale.ndim and not block:
        along = tuple(-1 if at == axis % x.ndim else 1 for at in range(x.ndim))
        parameters = [parameter.reshape(along) for parameter in parameters]
    elif block and x.shape[axis] != scale.shape[axis] * block:
        return None
    x_desc, x_view = lowering.broadcast(x)
    tensors = [lowering.broadcast(parameter.reshape((1,) * (x.ndim - parameter.ndim) + parameter.shape))
               for parameter in parameters]  # fmt: skip
    kind = QuantizationType(len(tensors))
    operator = Quantize if quantizes else Dequantize
    desc = operator(x_desc, kind, tuple(desc for desc, _ in tensors), lowering.result(dtype, x.shape))
    return Lowering(desc, (x_view, *(view for _, view in tensors)))


def _operator(name: str, domain: str, its_samples: Any, truth: Any) -> QuantizationOperator[Any]:
    family = Family(name, domain)

    def expressible() -> Iterable[QuantizationSample | Float8Sample]:
        known = frozenset().union(*(family.attributes(v) for v in schema.since_versions(name, domain)))
        implicit = (s for s in its_samples() if s.needs <= known)
        yield from (s for s in implicit if not domain or "axis" in dict(s.attributes) or not isinstance(s.scale, tuple))
        if not domain:
            yield from float8.quantize_samples() if family.quantizes else float8.dequantize_samples()

    def bindings(sample: QuantizationSample | Float8Sample, version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
        if isinstance(sample, Float8Sample):
            return float8.bindings(sample, version, name, dtypes)
        return () if set(narrow.FLOAT8) & set(dtypes) else family.bindings(sample, version, dtypes)

    def node(sample: QuantizationSample | Float8Sample, context: CaseContext) -> Node:
        if isinstance(sample, Float8Sample):
            return (float8.quantize_node if family.quantizes else float8.dequantize_node)(sample, context)
        return family.node(sample, context)

    def its_truth(of: Node) -> Truth:
        truth_of_float8 = float8.quantize_truth if family.quantizes else float8.dequantize_truth
        return truth_of_float8(of) if _has_float8(of) else truth(of)

    return QuantizationOperator(
        name,
        expressible,
        bindings,
        node,
        its_truth,
        lambda of: None if _has_float8(of) else lower(of),
        domain=domain,
        without_rank_dtypes="" if domain else PAIRS_OF_DTYPES,
    )


def _has_float8(node: Node) -> bool:
    """DirectML has no such type."""
    return any(operand is not None and operand.value.dtype.name in narrow.FLOAT8 for operand in node.inputs)


def _undefined_levels() -> UndefinedSamples:
    x = np.array([1.0, np.nan, -2.0, np.nan], np.float32)
    for name, zero in (("uint8", 128), ("int8", 0)):
        answer = Answer(np.array([zero + 2, 0, zero - 4, 0], name), np.isnan(x))
        inputs = (x, np.array(0.5, np.float32), np.array(zero, name))
        yield UndefinedSample("nan", f"float32-{name}", NAN_LEVEL, inputs, (answer,))


UNDEFINED = {"QuantizeLinear": _undefined_levels}

OPERATORS = declare(
    tuple(
        _operator(name, domain, its_samples, truth)
        for domain in ("", MICROSOFT)
        for name, its_samples, truth in (
            ("QuantizeLinear", quantize_samples, truth_of_quantize),
            ("DequantizeLinear", dequantize_samples, truth_of_dequantize),
        )
    ),
    interactions={
        "QuantizeLinear": (
            Interaction(
                ABOVE_GROUPS,
                (Random((DISPATCHED, 64), -60, 60), Literal(0.5, "float32", ()), Literal(3, "uint8", ())),
                dtype="float32-uint8",
            ),
        ),
    },
    undefined=UNDEFINED,
)
