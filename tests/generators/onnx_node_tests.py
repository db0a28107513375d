"""The node tests of the installed onnx package that are one node: inputs and outputs that its authors wrote."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

from epcheck.generators import suite
from epcheck.generators.case import Array, Node, Operand


@dataclass(frozen=True)
class NodeTest:
    """outputs: of the node, in its order."""

    name: str
    key: str
    node: Node
    outputs: tuple[Array, ...]


@cache
def node_tests() -> tuple[NodeTest, ...]:
    """The tests of operators that the suite has; those with sequences, optionals, branches or types that numpy does not
    have are left out."""
    return tuple(_found())


def _found() -> Iterator[NodeTest]:
    operators = suite.all_operators()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = collect_testcases(None)
    for test in tests:
        if test.model is None or len(test.model.graph.node) != 1 or test.model.functions:
            continue
        proto = test.model.graph.node[0]
        if any(attribute.HasField("g") for attribute in proto.attribute):
            continue
        key = f"{proto.domain}::{proto.op_type}" if proto.domain else proto.op_type
        if key not in operators:
            continue
        opset = next(o.version for o in test.model.opset_import if o.domain == proto.domain)
        definition = onnx.defs.get_schema(proto.op_type, opset, proto.domain)
        for inputs, outputs in test.data_sets or ():
            if all(_is_numpys(value) for value in (*inputs, *outputs)):
                yield NodeTest(test.name, key, _node(proto, definition, inputs), tuple(map(np.asarray, outputs)))


def _is_numpys(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcOSU"


def _node(proto: onnx.NodeProto, definition: Any, inputs: list[Array]) -> Node:
    """The node as a family of the suite would write it: inputs and outputs named as in the schema."""
    given = iter(inputs)
    values = [np.asarray(next(given)) if name else None for name in proto.input]
    formals = [formal.name for formal in definition.inputs]
    names = [formals[i] if i < len(formals) - 1 or len(values) <= len(formals) else f"{formals[-1]}_{i}"
             for i in range(len(values))]  # fmt: skip
    results = [formal.name for formal in definition.outputs]
    outputs = [name and (results[i] if i < len(results) and len(proto.output) <= len(results) else name)
               for i, name in enumerate(proto.output)]  # fmt: skip
    attributes = {a.name: _attribute(onnx.helper.get_attribute_value(a)) for a in proto.attribute}
    operands = tuple(None if v is None else Operand(n, v) for n, v in zip(names, values, strict=True))
    return Node(proto.op_type, proto.domain, definition.since_version, operands, tuple(outputs), attributes)


def _attribute(value: Any) -> Any:
    match value:
        case bytes():
            return value.decode()
        case list():
            return tuple(_attribute(item) for item in value)
        case onnx.TensorProto():
            return onnx.numpy_helper.to_array(value)
    return value
