"""The cases of expanded functions, each with the name of the last node of its graph.

What a provider may differ by follows from the errors of all nodes (`several_nodes.graph_truth`), and is twice that: for
the provider, and for onnx, which computes what it stores in the outputs' own precision. Where the oracles cannot say
how errors carry, the tolerance is that of onnx's test, in float16 one ULP for each node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx

from epcheck.generators import graph as graphs
from epcheck.generators import onnx_tests, schema
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.claims import Claims
from epcheck.generators.expanded.expanded_test import CONSTANT, ExpandedTest, steps
from epcheck.generators.node import Node, Operand, Surroundings
from epcheck.generators.operator import Operator
from epcheck.generators.several_nodes import graph_truth
from epcheck.generators.several_nodes.fixed import LEVEL, truth_of
from epcheck.generators.truth import Exact, Open, Output, Outputs, Ulp

Operators = Mapping[str, Operator[Any]]

TWICE = "twice: for the provider and for what onnx stores"


def cases(operators: Operators, claims: Claims, tests: Iterable[ExpandedTest], binding: str) -> Iterator[Case]:
    """A case for each test. operators: the suite's. claims: of the provider whose versions the tests have; what it does
    not claim need not be on it. binding: what the ids have in brackets."""
    seen: set[str] = set()
    for test in tests:
        last = test.model.graph.node[-1]
        version = onnx.defs.get_schema(last.op_type, test.opset, "").since_version
        needed = {node.op_type: operators[node.op_type] for node in test.model.graph.node if node.op_type in operators}
        builder = partial(_built, test, tuple(needed.values()), elsewhere(test, claims))
        dtype = schema.dtype_name(test.outputs[0].dtype)
        case = Case(last.op_type, "", version, dtype, test.name, binding, builder)
        if case.id not in seen:
            seen.add(case.id)
            yield case


def elsewhere(test: ExpandedTest, claims: Claims) -> tuple[str, ...]:
    """The operators of nodes that need not be on the provider: what makes no floating-point number, since that computes
    a shape, mostly, and what it does not claim."""
    dtypes = element_types(test.model)
    found = {CONSTANT}
    for proto in test.model.graph.node:
        made = [dtypes.get(name, "") for name in proto.output if name]
        if not any(dtype.startswith("float") for dtype in made) or not _is_claimed(proto, test.opset, dtypes, claims):
            found.add(proto.op_type)
    return tuple(sorted(found))


def _is_claimed(proto: onnx.NodeProto, opset: int, dtypes: Mapping[str, str], claims: Claims) -> bool:
    version = onnx.defs.get_schema(proto.op_type, opset, "").since_version
    signature = schema.signature(proto.op_type, version)
    kinds = (*zip(signature.inputs_of(len(proto.input)), proto.input, strict=True),
             *zip(signature.outputs_of(len(proto.output)), proto.output, strict=True))  # fmt: skip
    types = {kind: dtypes[name] for kind, name in kinds if kind in signature.constraints and dtypes.get(name)}
    is_whole = not claims.is_partial("", proto.op_type, version, types)
    return is_whole and claims.why_not("", proto.op_type, version, types) is None


def element_types(model: onnx.ModelProto) -> dict[str, str]:
    """Value -> numpy dtype name, of every tensor of numbers in the graph."""
    inferred = onnx.shape_inference.infer_shapes(model).graph
    values = (*inferred.input, *inferred.value_info, *inferred.output)
    codes = {value.name: value.type.tensor_type.elem_type for value in values}
    return {
        name: onnx.helper.tensor_dtype_to_np_dtype(code).name
        for name, code in codes.items()
        if code not in (onnx.TensorProto.UNDEFINED, onnx.TensorProto.STRING)
    }


def _built(test: ExpandedTest, operators: tuple[Operator[Any], ...], apart: tuple[str, ...], case: Case) -> BuiltCase:
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    model.ir_version = graphs.ir_version_for(test.opset)
    for number, proto in enumerate(model.graph.node):
        proto.name = f"node_{number}"
    outputs = tuple(_outputs(test, {operator.name: operator for operator in operators}))
    node = _node(test, case, apart)
    return BuiltCase(
        case,
        node,
        test.opset,
        model.SerializeToString(deterministic=True),
        dict(test.feeds),
        Outputs(outputs),
        graphs.type_bindings(node),
        None,
    )


def _node(test: ExpandedTest, case: Case, apart: tuple[str, ...]) -> Node:
    """The last node, and the others around it."""
    *others, last = test.model.graph.node
    definition = onnx.defs.get_schema(last.op_type, test.opset, "")
    dtypes = element_types(test.model)
    alone = onnx_tests.node_of(last, definition, [np.zeros((), dtypes.get(n, "float32")) for n in last.input if n])
    made = {own: np.zeros((), dtypes[name]) for own, name in zip(alone.outputs, last.output, strict=True) if name}
    names = tuple(value.name for value in test.model.graph.output)
    around = Surroundings(
        tuple(last.input),
        tuple(last.output),
        {name: schema.dtype_name(value.dtype) for name, value in zip(names, test.outputs, strict=True)},
        {**graphs.type_bindings(alone), **graphs.value_bindings(alone, made)},
        before=tuple(others),
        level=LEVEL,
        elsewhere=apart,
    )
    sources = tuple(Operand(name, value) for name, value in test.feeds.items())
    return Node(case.operator, "", case.since_version, sources, names, alone.attributes, around)


def _outputs(test: ExpandedTest, operators: Operators) -> Iterator[Output]:
    names = [value.name for value in test.model.graph.output]
    allowed = judged(test, operators)
    for index, (name, value) in enumerate(zip(names, test.outputs, strict=True)):
        own = None if isinstance(allowed, Open) else allowed[index]
        if own is None or own.value.shape != value.shape or own.value.dtype != value.dtype:
            yield Output(name, value, _of_test(test, value))
        elif isinstance(own.bound, Ulp):
            bound = own.bound
            floor = np.asarray(2 * bound.floor) if isinstance(bound.floor, np.ndarray) else 2 * bound.floor
            yield Output(name, value, Ulp(2 * bound.bound, f"{TWICE}; {bound.source}", floor))
        else:
            yield Output(name, value, own.bound)


def judged(test: ExpandedTest, operators: Operators) -> tuple[Output, ...] | Open:
    """What the oracles of the nodes say of the graph's outputs; why they say nothing."""
    if missing := sorted({n.op_type for n in test.model.graph.node} - operators.keys() - {CONSTANT}):
        return Open(f"the suite has no oracle of {missing[0]}")
    nodes, constants = steps(test.model, test.opset)
    sources = [*constants, *(Operand(name, value) for name, value in test.feeds.items())]
    names = [value.name for value in test.model.graph.output]
    try:
        found = graph_truth.judged(partial(truth_of, operators), nodes, sources, names)
    except Exception as error:  # of a node that an oracle was not written for
        return Open(f"an oracle does not know a node: {type(error).__name__}: {error}")
    return found if isinstance(found, Open) else found.truth.outputs


def _of_test(test: ExpandedTest, value: Array) -> Ulp | Exact:
    """The tolerance of the test, which was made for one rounding; where that is less, one ULP for each node."""
    if value.dtype.kind != "f":
        return Exact()
    allowed, nodes = test.rtol / float(np.finfo(value.dtype).eps), len(test.model.graph.node)
    if allowed >= nodes:
        return Ulp(allowed, "the tolerance of onnx's own test", test.atol)
    return Ulp(nodes, "one for each node of the graph, since onnx's own tolerance is that of one rounding", test.atol)


def with_opset(test: ExpandedTest, opset: int) -> ExpandedTest:
    """The same nodes in another opset of ai.onnx, and in no other domain."""
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    del model.opset_import[:]
    model.opset_import.add(domain="", version=opset)
    model.ir_version = graphs.ir_version_for(opset)
    return replace(test, model=model)
