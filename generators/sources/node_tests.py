"""The node tests of the installed onnx package as cases: inputs and outputs that its authors wrote, not ours.

Taken are the tests of one node between tensors of numbers: no functions expanded into several nodes, no sequences,
optionals, strings or random numbers. A stored floating-point output was computed in its own precision, so what the
suite allows a provider it allows the stored output as well: bounds are twice those of the suite's operator. Where the
suite has no such operator, the tolerance is the test's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.citation import Citation, CitationKind, Publisher, statement
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.node import Node, qualified_name
from epcheck.generators.operator import Operator
from epcheck.generators.registry import all_operators
from epcheck.generators.serialization.node_proto import read_node
from epcheck.generators.truth import Bound, Exact, OneStep, Output, Outputs, Selection, Truth, Ulp

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase

SOURCE = "node_tests"

BINDING = "onnx"
"""What stands for the way inputs enter the model in the ids of these cases."""

WITH_TRAINING_MODE = 3
"""Inputs of a Dropout that may draw random numbers; with fewer it is the identity."""

TWICE = statement("twice: for the provider and for what onnx stores")
OWN_TOLERANCE = Citation(CitationKind.PUBLISHED, "the tolerance of onnx's own test", Publisher.ONNX)


@dataclass(frozen=True)
class NodeTest:
    """One data set of a test. model: as the test has it. outputs: those of the node that are not omitted, in order.

    rtol, atol: what the test itself allows.
    """

    name: str
    model: onnx.ModelProto
    node: Node
    outputs: tuple[Array, ...]
    rtol: float
    atol: float

    @property
    def key(self) -> str:
        """The key of its operator in the suite, if that has it."""
        return qualified_name(self.node.op_type, self.node.domain)


@cache
def collect_tests() -> tuple[TestCase, ...]:
    """Every node test that the installed onnx package has."""
    from onnx.backend.test.case.node import collect_testcases  # takes as long as all of onnx, and few runs ask for it

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return tuple(collect_testcases(None))


@cache
def node_tests() -> tuple[NodeTest, ...]:
    """Every test of one node that can be a case, in onnx's order."""
    return tuple(found for test in collect_tests() for found in _read_test(test))


def cases(tests: Iterable[NodeTest] | None = None, binding: str = BINDING, source: str = SOURCE) -> Iterator[Case]:
    """A case for each test: `Add-14/float32/test_add[onnx]`. tests: None for all of onnx's. binding: what the ids have
    in brackets."""
    seen: set[str] = set()
    for test in node_tests() if tests is None else tests:
        operator = all_operators().get(test.key)
        case = Case(
            test.node.op_type,
            test.node.domain,
            test.node.since_version,
            _dtype(test.node, operator),
            test.name,
            binding,
            partial(_build, test, operator),
            source=source,
        )
        if case.id not in seen:
            seen.add(case.id)
            yield case


def _read_test(test: TestCase) -> Iterator[NodeTest]:
    model = test.model
    expanded = model is None or len(model.graph.node) != 1 or model.functions or "_expanded" in test.name
    if model is None or expanded or model.graph.initializer:
        return
    proto = model.graph.node[0]
    opset = next((o.version for o in model.opset_import if o.domain == proto.domain), 0)
    try:
        definition = onnx.defs.get_schema(proto.op_type, opset, proto.domain)
    except onnx.defs.SchemaError:
        return
    determinism = definition.node_determinism  # type: ignore[attr-defined]  # which onnx's stubs lack
    random = determinism == onnx.defs.OpSchema.NodeDeterminism.NonDeterministic
    for inputs, outputs in test.data_sets or ():
        if random and not (proto.op_type == "Dropout" and len(inputs) < WITH_TRAINING_MODE):
            continue
        if all(is_tensor(value) for value in (*inputs, *outputs)) and not any(a.HasField("g") for a in proto.attribute):
            results = tuple(np.asarray(value) for value in outputs)
            yield NodeTest(test.name, model, read_node(proto, definition, inputs), results, test.rtol, test.atol)


def is_tensor(value: object) -> bool:
    """Whether it is a tensor of numbers that numpy can hold."""
    return isinstance(value, np.ndarray | np.generic) and value.dtype.name in schema.NUMPY_NAMES.values()


def _dtype(node: Node, operator: Operator[Any] | None) -> str:
    """The dtypes of the constraints that the suite varies, or that of the first input."""
    types = graph.type_bindings(node)
    varied = [types[name] for name in operator.varied if name in types] if operator else []
    first = next((o.value.dtype.name for o in node.inputs if o is not None), "none")
    return "-".join(varied) or first


def _build(test: NodeTest, operator: Operator[Any] | None, case: Case) -> BuiltCase:
    node = replace(test.node, outputs=tuple(test.model.graph.node[0].output))
    own = _own_truth(test, operator)
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    opset = next(o.version for o in model.opset_import if o.domain == node.domain)
    model.ir_version = graph.OLDEST_IR
    model.graph.node[0].name = "node"
    feeds = [operand.value for operand in node.inputs if operand is not None]
    return BuiltCase(
        case=case,
        node=node,
        opset=opset,
        model=model.SerializeToString(deterministic=True),
        feeds=dict(zip((value.name for value in model.graph.input), feeds, strict=True)),
        truth=Outputs(tuple(_outputs(test, node, own))),
        types=graph.type_bindings(node),
        lowering=_lowering(test, operator, own),
    )


def _own_truth(test: NodeTest, operator: Operator[Any] | None) -> Truth | None:
    """What the suite's oracle says of the node; None where it has none, or nothing to say of such a node."""
    if operator is None:
        return None
    with np.errstate(all="ignore"):
        return operator.truth(test.node)


def _lowering(test: NodeTest, operator: Operator[Any] | None, own: Truth | None) -> Lowering | None:
    if operator is None or not isinstance(own, Outputs | Selection):
        return None
    return operator.lower(test.node)


def _outputs(test: NodeTest, node: Node, own: Truth | None) -> Iterator[Output]:
    bounds = [output.bound for output in own.outputs] if isinstance(own, Outputs) else []
    for index, (name, value) in enumerate(zip(node.results, test.outputs, strict=True)):
        known = bounds[index] if index < len(bounds) else Exact() if isinstance(own, Selection) else None
        yield Output(name, value, _bound(known, value, test))


def _bound(known: Bound | None, value: Array, test: NodeTest) -> Bound:
    if isinstance(known, Ulp):
        return Ulp(2 * known.bound, (TWICE, *known.citations), 2 * known.floor)
    if isinstance(known, Exact | OneStep):
        return known
    if value.dtype.kind != "f":
        return Exact()
    return Ulp(test.rtol / float(np.finfo(value.dtype).eps), (OWN_TOLERANCE,), test.atol)
