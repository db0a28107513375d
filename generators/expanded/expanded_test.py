"""A test of an expanded function: the nodes of the function's body in place of the function.

Taken are those between tensors of numbers that have no branches or loops and draw nothing at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import numpy_helper

from epcheck.generators import onnx_tests
from epcheck.generators.array import Array
from epcheck.generators.node import Operand, qualified_name
from epcheck.generators.several_nodes.node_graph import Step

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase

EXPANDED = "_expanded"
"""What the names of the tests have."""

RANDOM = frozenset({"RandomUniformLike", "RandomNormalLike", "RandomUniform", "RandomNormal", "Bernoulli"})

CONSTANT = "Constant"


@dataclass(frozen=True)
class ExpandedTest:
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
def expanded_tests() -> tuple[ExpandedTest, ...]:
    """All of them, in onnx's order."""
    return tuple(found for test in onnx_tests.collected() for found in _of(test))


def _of(test: TestCase) -> Iterator[ExpandedTest]:
    model = test.model
    if model is None or EXPANDED not in test.name or model.functions:
        return
    nodes = model.graph.node
    if any(node.op_type in RANDOM or node.domain or any(a.HasField("g") for a in node.attribute) for node in nodes):
        return
    if nodes[-1].op_type == CONSTANT:
        return
    for inputs, outputs in test.data_sets or ():
        if all(map(onnx_tests.is_tensor, (*inputs, *outputs))):
            names = [value.name for value in model.graph.input]
            feeds = {name: np.asarray(value) for name, value in zip(names, inputs, strict=True)}
            yield ExpandedTest(
                test.name, model, feeds, tuple(np.asarray(value) for value in outputs), test.rtol, test.atol
            )


def steps(model: onnx.ModelProto, opset: int) -> tuple[list[Step], list[Operand]]:
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
        node = onnx_tests.node_of(proto, definition, present)
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
