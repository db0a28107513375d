"""What the implementations in `faults/` need of a one-node model: the node's attributes and the values of its inputs.

An operator is a frozen dataclass whose fields are the steps of the computation, each a function with the right
one as its default. A mutant is the operator with one step replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import onnx
from onnx import helper, numpy_helper

from epcheck.generators.array import Array


class RefusedError(ValueError):
    """The node is not valid; the message says why."""


@dataclass(frozen=True)
class OneNode:
    """opset: of ai.onnx. attributes: name -> Python value. inputs: name in the schema's order; '' is an omitted one."""

    opset: int
    attributes: Mapping[str, Any]
    inputs: tuple[str, ...]
    initializers: Mapping[str, Array]

    def values(self, feeds: Mapping[str, Array], count: int) -> list[Array | None]:
        """The value of each of the `count` inputs that the operator has; None for an omitted one."""
        known = {**self.initializers, **feeds}
        return [known.get(name) for name in self.inputs] + [None] * (count - len(self.inputs))


@lru_cache(maxsize=8192)
def parse(model: bytes) -> OneNode:
    """The only node of a serialized model."""
    proto = onnx.load_from_string(model)
    (node,) = proto.graph.node
    return OneNode(
        next(entry.version for entry in proto.opset_import if entry.domain == ""),
        {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute},
        tuple(node.input),
        {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer},
    )
