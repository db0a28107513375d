"""onnx's tests of functions: the nodes of a function's body in place of the function.

Each case has the name of the last node of its graph. Taken are those between tensors of numbers that have no branches
or loops and draw nothing at random. What a provider may differ by follows from the errors of all nodes
(`graphs.graph_truth`), and is twice that: for the provider, and for onnx, which computes what it stores in the
outputs' own precision. Where the oracles cannot say how errors carry, the tolerance is that of onnx's test, in float16
one ULP for each node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

from epcheck.generators import graph as graphs
from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.citation import statement
from epcheck.generators.claims import Claims
from epcheck.generators.graphs import graph_truth
from epcheck.generators.graphs.graph_model import LEVEL
from epcheck.generators.graphs.node_graph import Step
from epcheck.generators.node import Node, Operand, Surroundings, qualified_name
from epcheck.generators.registry import all_operators
from epcheck.generators.serialization.node_proto import read_node
from epcheck.generators.sources import node_tests
from epcheck.generators.truth import Exact, Open, Output, Outputs, Ulp

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase

SOURCE = "function_bodies"

EXPANDED = "_expanded"
"""What the names of the tests have."""

RANDOM = frozenset({"RandomUniformLike", "RandomNormalLike", "RandomUniform", "RandomNormal", "Bernoulli"})

CONSTANT = "Constant"

ONE_EACH = statement("one for each node of the graph, since onnx's own tolerance is that of one rounding")


@dataclass(frozen=True)
class FunctionBodyTest:
    """name: as onnx has it. model: of several nodes. feeds: graph input -> array. outputs: what onnx stores, in the
    order of the graph's. rtol, atol: what the test itself allows."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Array]
    outputs: tuple[Array, ...]
    rtol: float
    atol: float

    @property
    def opset(self) -> int:
        """Of ai.onnx."""
        return next(int(entry.version) for entry in self.model.opset_import if not entry.domain)

    @property
    def key(self) -> str:
        """The key of the operator of its last node."""
        last = self.model.graph.node[-1]
        return qualified_name(last.op_type, last.domain)


@cache
def function_body_tests() -> tuple[FunctionBodyTest, ...]:
    """All of them, in onnx's order."""
    return tuple(found for test in node_tests.collect_tests() for found in _read_test(test))


def _read_test(test: TestCase) -> Iterator[FunctionBodyTest]:
    model = test.model
    if model is None or EXPANDED not in test.name or model.functions:
        return
    nodes = model.graph.node
    if any(node.op_type in RANDOM or node.domain or any(a.HasField("g") for a in node.attribute) for node in nodes):
        return
    if nodes[-1].op_type == CONSTANT:
        return
    for inputs, outputs in test.data_sets or ():
        if all(map(node_tests.is_tensor, (*inputs, *outputs))):
            names = [value.name for value in model.graph.input]
            feeds = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True)}
            yield FunctionBodyTest(
                test.name, model, feeds, tuple(np.asarray(value) for value in outputs), test.rtol, test.atol
            )


def read_steps(model: onnx.ModelProto, opset: int) -> tuple[list[Step], list[Operand]]:
    """The nodes in that opset, and the constants that they read. Raises onnx.defs.SchemaError where the opset does not
    know one."""
    found, constants = list[Step](), list[Operand]()
    placeholder = np.zeros((), np.float32)
    for proto in model.graph.node:
        if proto.op_type == CONSTANT:
            constants.append(Operand(proto.output[0], _constant(proto), parameter=True))
            continue
        definition = onnx.defs.get_schema(proto.op_type, opset, "")
        present = [placeholder for name in proto.input if name]
        node = read_node(proto, definition, present)
        found.append(Step(proto.op_type, node, tuple(name or None for name in proto.input), tuple(proto.output)))
    return found, constants


def _constant(proto: onnx.NodeProto) -> Array:
    """The value of a Constant. Raises ValueError for one that is no tensor of numbers."""
    (attribute,) = proto.attribute
    value = onnx.helper.get_attribute_value(attribute)
    match attribute.name:
        case "value":
            return numpy_helper.to_array(value)
        case "value_int" | "value_ints":
            return np.asarray(value, np.int64)
        case "value_float" | "value_floats":
            return np.asarray(value, np.float32)
        case other:
            raise ValueError(f"a Constant of {other}")


def cases(claims: Claims, tests: Iterable[FunctionBodyTest], binding: str) -> Iterator[Case]:
    """A case for each test. claims: of the provider whose versions the tests have; what it does not claim need not be
    on it. binding: what the ids have in brackets."""
    seen: set[str] = set()
    for test in tests:
        last = test.model.graph.node[-1]
        version = onnx.defs.get_schema(last.op_type, test.opset, "").since_version
        builder = partial(_build, test, list_elsewhere(test, claims))
        dtype = schema.dtype_name(test.outputs[0].dtype)
        case = Case(last.op_type, "", version, dtype, test.name, binding, builder, source=SOURCE)
        if case.id not in seen:
            seen.add(case.id)
            yield case


def list_elsewhere(test: FunctionBodyTest, claims: Claims) -> tuple[str, ...]:
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


def _build(test: FunctionBodyTest, apart: tuple[str, ...], case: Case) -> BuiltCase:
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    model.ir_version = graphs.ir_version_for(test.opset)
    for number, proto in enumerate(model.graph.node):
        proto.name = f"node_{number}"
    outputs = tuple(_bound_outputs(test))
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


def _node(test: FunctionBodyTest, case: Case, apart: tuple[str, ...]) -> Node:
    """The last node, and the others around it."""
    *others, last = test.model.graph.node
    definition = onnx.defs.get_schema(last.op_type, test.opset, "")
    dtypes = element_types(test.model)
    alone = read_node(last, definition, [np.zeros((), dtypes.get(n, "float32")) for n in last.input if n])
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


def _bound_outputs(test: FunctionBodyTest) -> Iterator[Output]:
    names = [value.name for value in test.model.graph.output]
    allowed = judge_test(test)
    for index, (name, value) in enumerate(zip(names, test.outputs, strict=True)):
        own = None if isinstance(allowed, Open) else allowed[index]
        if own is None or own.value.shape != value.shape or own.value.dtype != value.dtype:
            yield Output(name, value, _bound_of_test(test, value))
        elif isinstance(own.bound, Ulp):
            bound = own.bound
            floor = np.asarray(2 * bound.floor) if isinstance(bound.floor, np.ndarray) else 2 * bound.floor
            yield Output(name, value, Ulp(2 * bound.bound, (node_tests.TWICE, *bound.citations), floor))
        else:
            yield Output(name, value, own.bound)


def judge_test(test: FunctionBodyTest) -> tuple[Output, ...] | Open:
    """What the oracles of the nodes say of the graph's outputs; why they say nothing."""
    if missing := sorted({n.op_type for n in test.model.graph.node} - all_operators().keys() - {CONSTANT}):
        return Open(f"the suite has no oracle of {missing[0]}")
    nodes, constants = read_steps(test.model, test.opset)
    sources = [*constants, *(Operand(name, value) for name, value in test.feeds.items())]
    names = [value.name for value in test.model.graph.output]
    try:
        found = graph_truth.judge_graph(graph_truth.judge_node, nodes, sources, names)
    except Exception as error:  # of a node that an oracle was not written for
        return Open(f"an oracle does not know a node: {type(error).__name__}: {error}")
    return found if isinstance(found, Open) else found.truth.outputs


def _bound_of_test(test: FunctionBodyTest, value: Array) -> Ulp | Exact:
    """The tolerance of the test, which was made for one rounding; where that is less, one ULP for each node."""
    if value.dtype.kind != "f":
        return Exact()
    allowed, nodes = test.rtol / float(np.finfo(value.dtype).eps), len(test.model.graph.node)
    if allowed >= nodes:
        return Ulp(allowed, (node_tests.OWN_TOLERANCE,), test.atol)
    return Ulp(nodes, (ONE_EACH,), test.atol)


def change_opset(test: FunctionBodyTest, opset: int) -> FunctionBodyTest:
    """The same nodes in another opset of ai.onnx, and in no other domain."""
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    del model.opset_import[:]
    model.opset_import.add(domain="", version=opset)
    model.ir_version = graphs.ir_version_for(opset)
    return replace(test, model=model)
