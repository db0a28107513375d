"""Whether a node is one that its oracle can judge."""

from __future__ import annotations

from typing import Any

from epcheck.generators.fuzzing.domains import families, learned, valid
from epcheck.generators.fuzzing.domains.cost import elements as elements
from epcheck.generators.node import Node
from epcheck.generators.operator import Operator


def why_open(operator: Operator[Any], node: Node) -> str:
    """Why the oracle cannot judge the node, in words; empty where it can."""
    return valid.why_not(node) or learned.why_open(operator, node) or families.why_open(node)


def why_undefined(node: Node) -> str:
    """Why schema and page of the operator leave open what the node gives, in words; empty where they do not."""
    return valid.why_not(node) or families.why_open(node)
