"""A fault that was found: the smallest node that shows it, and all that is known of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from epcheck.conformance.fuzzing.symptom import Symptom, symptom
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.generators.case import Case
from epcheck.generators.fuzzing.drawing import Drawn
from epcheck.generators.fuzzing.drawn_case import case_of
from epcheck.generators.node import Node
from epcheck.generators.serialization import node_json


@dataclass(frozen=True)
class Cause:
    """What tells faults apart: two failures with one cause are one fault.

    attributes, inputs: of the smallest node, by name; of refusals neither, since their message is the cause. shared:
    the baseline fails in the same way.
    """

    symptom: Symptom
    attributes: tuple[str, ...]
    inputs: tuple[str, ...]
    shared: bool = field(default=False, repr=False)

    @property
    def id(self) -> str:
        """Eight hexadecimal digits that stay the same from run to run."""
        text = f"{self!r}{' shared' if self.shared else ''}"
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def cause_of(drawn: Drawn, record: Record, shared: bool) -> Cause:
    """The cause of the failure of a node that was made small."""
    found = symptom(record)
    if found.status in (terms.REFUSED, terms.UNPLACED):
        return Cause(found, (), (), shared)
    node = drawn.node
    names = tuple(operand.name for operand in node.inputs[1:] if operand is not None)
    return Cause(found, tuple(sorted(node.attributes)), names, shared)


@dataclass(frozen=True)
class Fault:
    """cause: what tells it from others. node, case, record: the smallest node; of a graph, its last node with the
    others around it. line: the node or the graph as a line of the example database. level: of a graph, the lowest
    level of optimisation at which it fails. occurrences: failures that look like it. known: the recorded deviation
    that it resembles, in words; empty where there is none. replayed: it was found by an earlier call. rounds, seconds:
    what making it small took.
    """

    cause: Cause
    node: Node
    case: Case
    line: str
    record: Record
    level: str = ""
    occurrences: int = 1
    known: str = ""
    replayed: bool = False
    rounds: int = 0
    seconds: float = 0.0

    @property
    def is_new(self) -> bool:
        """Whether it resembles nothing that is recorded, and the baseline does not show it too."""
        return not self.known and not self.cause.shared


def of_node(cause: Cause, drawn: Drawn, record: Record) -> Fault:
    """The fault of a single node."""
    return Fault(cause, drawn.node, case_of(drawn), node_json.encode(drawn.serialized), record)
