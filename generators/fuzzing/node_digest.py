"""What a node is, as a few digits: of its operator, its attributes, and the bits of its inputs."""

from __future__ import annotations

import hashlib

import numpy as np

from epcheck.generators.node import Node


def digest(node: Node) -> str:
    """Twelve hexadecimal digits that say what the node is: operator, attributes, and the bits of its inputs."""
    found = hashlib.sha256(f"{node.domain}:{node.op_type}:{node.since_version}:{node.outputs}".encode())
    for name, value in sorted(node.attributes.items()):
        found.update(f"{name}={value.tolist() if isinstance(value, np.ndarray) else value!r};".encode())
    for operand in node.inputs:
        if operand is None:
            found.update(b"-")
            continue
        value = operand.value
        found.update(f"{operand.name}:{value.dtype}{value.shape}{operand.parameter}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    if node.surroundings:
        found.update(repr(node.surroundings).encode())
    return found.hexdigest()[:12]
