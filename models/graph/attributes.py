"""Attributes of nodes that may be anybody's."""

from __future__ import annotations

import onnx


def read_integer(node: onnx.NodeProto, name: str, default: int = 0) -> int:
    """The value of an integer attribute; the default where the node does not have it, 0 where it is of another type."""
    return next((int(attribute.i) for attribute in node.attribute if attribute.name == name), default)
