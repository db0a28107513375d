"""A node test of onnx in another version of its operator, or why it cannot be.

onnx stamps a test with the version in which its operator changed last, mostly a type that was added. A provider that
claims older versions alone then takes none of them. The test is converted to the newest version that the provider
claims, if the node is valid there and the suite's oracle says that it means the same: from version to version defaults
and meanings change. A test that cannot be converted stays as it is.

A function's body gets the newest opset that will do: where every node whose operator the provider claims at all is of a
version that it claims, the model is valid, and each node that changes its version means the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import Case
from epcheck.generators.claims import PROVIDERS, Claims, claims_of
from epcheck.generators.error import EpcheckError
from epcheck.generators.graphs import graph_truth
from epcheck.generators.graphs.node_graph import Step
from epcheck.generators.node import Node
from epcheck.generators.operator import Operator
from epcheck.generators.registry import all_operators
from epcheck.generators.schema import OLDEST_OPSET
from epcheck.generators.serialization.node_proto import read_node
from epcheck.generators.sources import function_bodies, node_tests
from epcheck.generators.sources.function_bodies import (
    CONSTANT,
    FunctionBodyTest,
    change_opset,
    function_body_tests,
    read_steps,
)
from epcheck.generators.sources.node_tests import NodeTest
from epcheck.generators.truth import Outputs, Selection, Truth

SOURCE = "version_converted"

SUFFIX = "ExecutionProvider"


class ConversionError(EpcheckError, ValueError):
    """There is no claim table of the provider."""


@dataclass(frozen=True)
class VersionConverted:
    """Whose claims decide: a provider, by its name or without `ExecutionProvider`, in any case: `dml`."""

    provider: str

    def __str__(self) -> str:
        """How it is written as a source of cases, and what the ids of its cases have in brackets."""
        return f"{node_tests.BINDING}@{self.provider}"


@dataclass(frozen=True)
class Conversion:
    """What became of a test. test: as it runs. was: the version that onnx stamped; of an expanded function, the opset.
    why: it could not be converted to a newer or older claimed one, in words; empty where it runs in the newest claimed
    one."""

    test: NodeTest | FunctionBodyTest
    was: int
    why: str = ""

    @property
    def now(self) -> int:
        """The version, or the opset, in which the test runs."""
        return self.test.opset if isinstance(self.test, FunctionBodyTest) else self.test.node.since_version

    def __str__(self) -> str:
        """`test_add: Add-14 -> 13`; `test_celu_expanded: opset 12 -> 17`."""
        before = f"opset {self.was}" if isinstance(self.test, FunctionBodyTest) else f"{self.test.key}-{self.was}"
        words = f"{self.test.name}: {before} -> {self.now}"
        return f"{words}; {self.why}" if self.why else words


def parse(text: str) -> VersionConverted | None:
    """The source that a text names, as `onnx@dml`; None for any other text. Raises ConversionError."""
    head, at, provider = text.partition("@")
    if head != node_tests.BINDING or not at:
        return None
    full_name(provider)
    return VersionConverted(provider.lower().removesuffix(SUFFIX.lower()))


def full_name(provider: str) -> str:
    """The full name of the provider. Raises ConversionError."""
    wanted = provider.lower().removesuffix(SUFFIX.lower())
    for name in PROVIDERS:
        if name.removesuffix(SUFFIX).lower() == wanted:
            return name
    listed = ", ".join(sorted(name.removesuffix(SUFFIX).lower() for name in PROVIDERS))
    raise ConversionError(f"onnx@{provider}: there is no claim table of '{provider}'; there is one of {listed}")


def convert_tests(source: VersionConverted) -> Iterator[Conversion]:
    """What becomes of each node test, and of each test of a function's body. Raises ConversionError."""
    claims = _read_claims(source)
    for test in node_tests.node_tests():
        claimed = claims.versions(test.node.domain, test.node.op_type)
        yield convert_node_test(test, all_operators().get(test.key), claimed)
    for body in function_body_tests():
        converted, why = convert_function_body(body, claims)
        yield Conversion(converted, body.opset, why)


def cases(source: VersionConverted) -> Iterator[Case]:
    """The cases of the tests, converted where they can be. Raises ConversionError."""
    tests = [conversion.test for conversion in convert_tests(source)]
    yield from node_tests.cases((test for test in tests if isinstance(test, NodeTest)), str(source), SOURCE)
    bodies = (test for test in tests if isinstance(test, FunctionBodyTest))
    yield from function_bodies.cases(_read_claims(source), bodies, str(source))


def _read_claims(source: VersionConverted) -> Claims:
    found = claims_of(full_name(source.provider))
    assert found is not None
    return found


def convert_node_test(test: NodeTest, operator: Operator[Any] | None, claimed: tuple[int, ...]) -> Conversion:
    was = test.node.since_version
    reachable = set(schema.since_versions(test.node.op_type, test.node.domain))
    versions = sorted(reachable & set(claimed), reverse=True)
    why = "" if versions else f"the provider claims no version of {test.key}"
    for version in versions:
        if version == was:
            return Conversion(test, was, why)
        other = _convert_test(test, version)
        reason = other if isinstance(other, str) else _why_not_alike(test, other, operator)
        if not reason and isinstance(other, NodeTest):
            return Conversion(other, was, why)
        why = why or f"version {version}: {reason}"
    return Conversion(test, was, why)


def _convert_test(test: NodeTest, version: int) -> NodeTest | str:
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
    made = read_node(test.model.graph.node[0], definition, values)
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


def convert_function_body(test: FunctionBodyTest, claims: Claims) -> tuple[FunctionBodyTest, str]:
    """The test in the newest opset of the provider's versions, or as it is; and why in no newer one, in words."""
    opsets = _list_opsets(test, claims)
    why = "" if opsets else "no opset has only versions that the provider claims"
    own: Sequence[int] | None = _list_versions(test, test.opset)
    tried: set[tuple[int, ...]] = set()
    for opset in opsets:
        versions = _list_versions(test, opset)
        if versions is None or versions in tried:
            continue
        tried.add(versions)
        other = change_opset(test, opset)
        reason = "" if versions == own else _why_invalid(other) or _why_changed_body(test, opset)
        if not reason:
            return other, why
        why = why or f"opset {opset}: {reason}"
    return change_opset(test, test.opset), why


def _list_versions(test: FunctionBodyTest, opset: int) -> tuple[int, ...] | None:
    """The version of each node in that opset; None where it does not know one."""
    try:
        return tuple(onnx.defs.get_schema(n.op_type, opset, "").since_version for n in test.model.graph.node)
    except onnx.defs.SchemaError:
        return None


def _list_opsets(test: FunctionBodyTest, claims: Claims) -> list[int]:
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


def _why_invalid(test: FunctionBodyTest) -> str:
    """Why the model is not one of its opset; empty where it is."""
    try:
        onnx.checker.check_model(test.model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return " ".join(str(error).split())[:120]
    return ""


def _why_changed_body(test: FunctionBodyTest, opset: int) -> str:
    """Why a node may mean something else in the opset; empty where the oracles say the same of each."""
    try:
        here, constants = read_steps(test.model, test.opset)
        there, _ = read_steps(test.model, opset)
    except (onnx.defs.SchemaError, ValueError) as error:
        return str(error)
    values: dict[str, Array] = {**test.feeds, **{operand.name: operand.value for operand in constants}}
    for step, other in zip(here, there, strict=True):
        if step.key not in all_operators():
            return f"the suite has no oracle of {step.key} that says whether it means the same"
        made = _evaluate_step(step, values)
        if made is None:
            return f"the oracle does not know a node of {step.key}"
        if step.node.since_version != other.node.since_version:
            again = _evaluate_step(other, values)
            if again is None or not all(_equal_values(value, again.get(name)) for name, value in made.items()):
                return f"{step.key}-{other.node.since_version} means something else"
        values |= made
    return ""


def _evaluate_step(step: Step, values: Mapping[str, Array]) -> dict[str, Array] | None:
    try:
        truth = graph_truth.judge_node(step.key, step.reading(values))
    except Exception:  # of a version that the oracle was not written for
        return None
    if not isinstance(truth, Outputs):
        return None
    return {name: output.value for name, output in graph_truth.name_outputs(step, truth).items()}


def _equal_values(a: Array, b: Array | None) -> bool:
    return b is not None and a.dtype == b.dtype and bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
