"""An expanded function in another opset, or why it cannot be: its nodes get the newest versions that a provider claims.

An opset will do where every node whose operator the provider claims at all is of a version that it claims, the model is
valid, and each node that changes its version means the same: the suite's oracle gives the same values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.generators.claims import Claims
from epcheck.generators.expanded.expanded_case import Operators, with_opset
from epcheck.generators.expanded.expanded_test import CONSTANT, ExpandedTest, steps
from epcheck.generators.operator import Operator
from epcheck.generators.schema import OLDEST_OPSET
from epcheck.generators.several_nodes.fixed import truth_of
from epcheck.generators.several_nodes.graph_truth import named
from epcheck.generators.several_nodes.node_graph import Step
from epcheck.generators.truth import Outputs


def restamped(test: ExpandedTest, operators: Operators, claims: Claims) -> tuple[ExpandedTest, str]:
    """The test in the newest opset of the provider's versions, or as it is; and why in no newer one, in words."""
    opsets = _opsets(test, claims)
    why = "" if opsets else "no opset has only versions that the provider claims"
    own: Sequence[int] | None = _versions(test, test.opset)
    tried: set[tuple[int, ...]] = set()
    for opset in opsets:
        versions = _versions(test, opset)
        if versions is None or versions in tried:
            continue
        tried.add(versions)
        other = with_opset(test, opset)
        reason = "" if versions == own else _why_invalid(other) or _why_not_alike(test, opset, operators)
        if not reason:
            return other, why
        why = why or f"opset {opset}: {reason}"
    return with_opset(test, test.opset), why


def _versions(test: ExpandedTest, opset: int) -> tuple[int, ...] | None:
    """The version of each node in that opset; None where it does not know one."""
    try:
        return tuple(onnx.defs.get_schema(n.op_type, opset, "").since_version for n in test.model.graph.node)
    except onnx.defs.SchemaError:
        return None


def _opsets(test: ExpandedTest, claims: Claims) -> list[int]:
    """Those in which the provider claims every node of an operator of which it claims some version, newest first."""
    names = {node.op_type for node in test.model.graph.node if node.op_type != CONSTANT}
    claimed = {name: claims.versions("", name) for name in names}
    found = []
    for opset in range(onnx.defs.onnx_opset_version(), OLDEST_OPSET - 1, -1):
        try:
            versions = {name: onnx.defs.get_schema(name, opset, "").since_version for name in names}
        except onnx.defs.SchemaError:
            continue
        if all(versions[name] in own for name, own in claimed.items() if own):
            found.append(opset)
    return found


def _why_invalid(test: ExpandedTest) -> str:
    """Why the model is not one of its opset; empty where it is."""
    try:
        onnx.checker.check_model(test.model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return " ".join(str(error).split())[:120]
    return ""


def _why_not_alike(test: ExpandedTest, opset: int, operators: Operators) -> str:
    """Why a node may mean something else in the opset; empty where the oracles say the same of each."""
    try:
        here, constants = steps(test.model, test.opset)
        there, _ = steps(test.model, opset)
    except (onnx.defs.SchemaError, ValueError) as error:
        return str(error)
    values: dict[str, Array] = {**test.feeds, **{operand.name: operand.value for operand in constants}}
    for step, other in zip(here, there, strict=True):
        operator = operators.get(step.key)
        if operator is None:
            return f"the suite has no oracle of {step.key} that says whether it means the same"
        made = _values(operator, step, values)
        if made is None:
            return f"the oracle does not know a node of {step.key}"
        if step.node.since_version != other.node.since_version:
            again = _values(operator, other, values)
            if again is None or not all(_equal(value, again.get(name)) for name, value in made.items()):
                return f"{step.key}-{other.node.since_version} means something else"
        values |= made
    return ""


def _values(operator: Operator[Any], step: Step, values: Mapping[str, Array]) -> dict[str, Array] | None:
    try:
        truth = truth_of({step.key: operator}, step.key, step.reading(values))
    except Exception:  # of a version that the oracle was not written for
        return None
    if not isinstance(truth, Outputs):
        return None
    return {name: output.value for name, output in named(step, truth).items()}


def _equal(a: Array, b: Array | None) -> bool:
    return b is not None and a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
