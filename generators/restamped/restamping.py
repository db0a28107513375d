"""A node test of onnx in another version of its operator, or why it cannot be.

onnx stamps a test with the version in which its operator changed last, mostly a type that was added. A provider that
claims older versions alone then takes none of them. The test is restamped to the newest version that the provider
claims, if the node is valid there and the suite's oracle says that it means the same: from version to version defaults
and meanings change. A test that cannot be restamped stays as it is. An expanded function gets an opset whose versions
the provider claims (`expanded.expanded_restamping`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

from epcheck.generators import graph, onnx_tests, schema
from epcheck.generators.case import Case
from epcheck.generators.claims import PROVIDERS, Claims, claims_of
from epcheck.generators.error import EpcheckError
from epcheck.generators.expanded import expanded_case, expanded_restamping
from epcheck.generators.expanded.expanded_test import ExpandedTest, expanded_tests
from epcheck.generators.node import Node
from epcheck.generators.onnx_tests import NodeTest, Operators
from epcheck.generators.operator import Operator
from epcheck.generators.truth import Outputs, Selection, Truth

SUFFIX = "ExecutionProvider"


class RestampError(EpcheckError, ValueError):
    """There is no claim table of the provider."""


@dataclass(frozen=True)
class Restamped:
    """Whose claims decide: a provider, by its name or without `ExecutionProvider`, in any case: `dml`."""

    provider: str

    def __str__(self) -> str:
        """How it is written as a source of cases, and what the ids of its cases have in brackets."""
        return f"{onnx_tests.BINDING}@{self.provider}"


@dataclass(frozen=True)
class Restamping:
    """What became of a test. test: as it runs. was: the version that onnx stamped; of an expanded function, the opset.
    why: it could not be restamped to a newer or older claimed one, in words; empty where it runs in the newest claimed
    one."""

    test: NodeTest | ExpandedTest
    was: int
    why: str = ""

    @property
    def now(self) -> int:
        """The version, or the opset, in which the test runs."""
        return self.test.opset if isinstance(self.test, ExpandedTest) else self.test.node.since_version

    def __str__(self) -> str:
        """`test_add: Add-14 -> 13`; `test_celu_expanded: opset 12 -> 17`."""
        before = f"opset {self.was}" if isinstance(self.test, ExpandedTest) else f"{self.test.key}-{self.was}"
        words = f"{self.test.name}: {before} -> {self.now}"
        return f"{words}; {self.why}" if self.why else words


def of_text(text: str) -> Restamped | None:
    """The source that a text names, as `onnx@dml`; None for any other text. Raises RestampError."""
    head, at, provider = text.partition("@")
    if head != onnx_tests.BINDING or not at:
        return None
    full_name(provider)
    return Restamped(provider.lower().removesuffix(SUFFIX.lower()))


def full_name(provider: str) -> str:
    """The full name of the provider. Raises RestampError."""
    wanted = provider.lower().removesuffix(SUFFIX.lower())
    for name in PROVIDERS:
        if name.removesuffix(SUFFIX).lower() == wanted:
            return name
    listed = ", ".join(sorted(name.removesuffix(SUFFIX).lower() for name in PROVIDERS))
    raise RestampError(f"onnx@{provider}: there is no claim table of '{provider}'; there is one of {listed}")


def restampings(operators: Operators, source: Restamped) -> Iterator[Restamping]:
    """What becomes of each node test, and of each expanded function. operators: the suite's. Raises RestampError."""
    claims = _claims(source)
    for test in onnx_tests.node_tests():
        claimed = claims.versions(test.node.domain, test.node.op_type)
        yield _restamped(test, operators.get(test.key), claimed)
    for expanded in expanded_tests():
        found, why = expanded_restamping.restamped(expanded, operators, claims)
        yield Restamping(found, expanded.opset, why)


def cases(operators: Operators, source: Restamped) -> Iterator[Case]:
    """The cases of the tests, restamped where they can be. Raises RestampError."""
    tests = [found.test for found in restampings(operators, source)]
    yield from onnx_tests.cases(operators, (test for test in tests if isinstance(test, NodeTest)), str(source))
    expanded = (test for test in tests if isinstance(test, ExpandedTest))
    yield from expanded_case.cases(operators, _claims(source), expanded, str(source))


def _claims(source: Restamped) -> Claims:
    found = claims_of(full_name(source.provider))
    assert found is not None
    return found


def _restamped(test: NodeTest, operator: Operator[Any] | None, claimed: tuple[int, ...]) -> Restamping:
    was = test.node.since_version
    reachable = set(schema.since_versions(test.node.op_type, test.node.domain))
    versions = sorted(reachable & set(claimed), reverse=True)
    why = "" if versions else f"the provider claims no version of {test.key}"
    for version in versions:
        if version == was:
            return Restamping(test, was, why)
        other = _in_version(test, version)
        reason = other if isinstance(other, str) else _why_not_alike(test, other, operator)
        if not reason and isinstance(other, NodeTest):
            return Restamping(other, was, why)
        why = why or f"version {version}: {reason}"
    return Restamping(test, was, why)


def _in_version(test: NodeTest, version: int) -> NodeTest | str:
    """The test in a version of its operator, or why its schema does not allow that."""
    node = test.node
    definition = schema.schema(node.op_type, version, node.domain)
    if unknown := node.attributes.keys() - definition.attributes.keys():
        return f"it has no attribute {min(unknown)}"
    if len(node.inputs) > definition.max_input or len(node.inputs) < definition.min_input:
        return f"it takes {definition.min_input} to {definition.max_input} inputs, not {len(node.inputs)}"
    if len(node.outputs) > definition.max_output:
        return f"it gives {definition.max_output} outputs, not {len(node.outputs)}"
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    for entry in model.opset_import:
        if entry.domain == node.domain:
            entry.version = schema.opset_for(version, node.domain)
    values = [operand.value for operand in node.inputs if operand is not None]
    made = onnx_tests.node_of(test.model.graph.node[0], definition, values)
    types = {**graph.type_bindings(made), **_result_types(made, test)}
    for constraint, dtype in types.items():
        if dtype not in schema.dtypes(node.op_type, version, constraint, node.domain):
            return f"it does not allow {constraint} = {dtype}"
    return replace(test, model=model, node=made)


def _result_types(node: Node, test: NodeTest) -> dict[str, str]:
    signature = schema.signature(node.op_type, node.since_version, node.domain)
    kinds = [kind for kind, name in zip(signature.outputs_of(len(node.outputs)), node.outputs, strict=True) if name]
    found = zip(kinds, test.outputs, strict=False)
    return {kind: schema.dtype_name(value.dtype) for kind, value in found if kind in signature.constraints}


def _why_not_alike(test: NodeTest, other: NodeTest, operator: Operator[Any] | None) -> str:
    """Why the node may mean something else in the other version, in words; empty where the oracle says the same."""
    if operator is None:
        return "the suite has no oracle that says whether it means the same"
    here, there = _values(operator, test.node), _values(operator, other.node)
    if here is None or there is None:
        return "the oracle does not know the node there" if there is None else "the oracle does not know the node"
    alike = len(here) == len(there) and all(map(_equal, here, there))
    return "" if alike else "it means something else"


def _values(operator: Operator[Any], node: Node) -> tuple[Any, ...] | None:
    try:
        with np.errstate(all="ignore"):
            truth: Truth = operator.truth(node)
    except Exception:  # of a version that the oracle was not written for
        return None
    if isinstance(truth, Outputs):
        return tuple(output.value for output in truth.outputs)
    return truth.accepted[0] if isinstance(truth, Selection) else None


def _equal(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
