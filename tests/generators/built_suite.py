"""Every case of the suite, built once for all tests of a session."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from epcheck.generators import registry, suite
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.node import Node, Operand
from epcheck.generators.schema import schema
from epcheck.generators.sources.case_source import CaseSource
from epcheck.generators.truth import Outputs, Selection, Truth
from tests.whole_suite import whole_suite

FIRST = ("Slice", "TopK", "QLinearConv")
"""Operators of which more is asserted than of all."""

NO_INFERENCE = ("MeanVarianceNormalization", "Pad")
"""Operators at which onnx's own inference fails: function bodies in float16 and float64, axes of int32."""

DEVIATIONS = {
    ("DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC", "MeanVarianceNormalization"): "an epsilon that ONNX has not",
    (
        "DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC",
        "com.microsoft.dml::DmlFusedMeanVarianceNormalization",
    ): "an epsilon that the operator has not",
    ("DML_MULTIHEAD_ATTENTION_OPERATOR_DESC", "com.microsoft::MultiHeadAttention"): "`unidirectional` is not passed on",
}
"""(description, operator) -> what the provider's description computes otherwise than the standard says."""


@cache
def built_suite() -> tuple[BuiltCase, ...]:
    """All cases: half a minute of a processor, so a test that needs them is marked slow."""
    gc.collect()
    gc.disable()  # a tenth of the time: nothing of what is built is garbage
    try:
        return tuple(case.build() for case in whole_suite())
    finally:
        gc.freeze()
        gc.enable()


@cache
def _positions() -> Mapping[str, int]:
    return {case.id: position for position, case in enumerate(whole_suite())}


def built_case(case: Case) -> BuiltCase:
    """The case as `built_suite` has it."""
    return built_suite()[_positions()[case.id]]


@cache
def built_operator(operator: str) -> tuple[BuiltCase, ...]:
    """The cases of an operator in all versions."""
    return tuple(case.build() for case in suite.cases([operator]))


def cases_by_operator(engine: CaseSource) -> dict[str, tuple[Case, ...]]:
    """Key of an operator -> the cases that the engine makes of it; without those of which it makes none."""
    by_operator = {key: tuple(engine.cases(operator)) for key, operator in registry.all_operators().items()}
    return {key: cases for key, cases in by_operator.items() if cases}


def built_first() -> list[BuiltCase]:
    """The cases of FIRST."""
    return [built for operator in FIRST for built in built_operator(operator)]


def built(operator: str, since_version: int | None = None) -> list[BuiltCase]:
    """The cases of an operator, of one version or of all."""
    return [b for b in built_operator(operator) if since_version in (None, b.case.since_version)]


def node_of(operator: str, since_version: int, inputs: Sequence[Array | None], **attributes: object) -> Node:
    """A node with the input and output names of its schema."""
    definition = schema(operator, since_version)
    operands = tuple(
        None if value is None else Operand(formal.name, value)
        for formal, value in zip(definition.inputs, inputs, strict=False)
    )
    outputs = tuple(formal.name for formal in definition.outputs)
    return Node(operator, "", since_version, operands, outputs, attributes)  # type: ignore[arg-type]


def true_outputs(node: Node) -> tuple[Array, ...]:
    """What the suite's oracle says must come out; the preferred one where the standard leaves an order open."""
    truth: Truth = registry.all_operators()[node.op_type].truth(node)
    assert isinstance(truth, Outputs | Selection), truth
    return truth.accepted[0] if isinstance(truth, Selection) else tuple(output.value for output in truth.outputs)


def same_bits(left: Array, right: Array) -> bool:
    """Same dtype, shape and bits, except that any NaN equals any NaN."""
    if (left.dtype, left.shape) != (right.dtype, right.shape):
        return False
    if left.dtype.kind != "f":
        return bool((left == right).all())
    nan = np.isnan(left)
    return bool((nan == np.isnan(right)).all()) and left[~nan].tobytes() == right[~nan].tobytes()
