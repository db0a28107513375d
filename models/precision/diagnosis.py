"""The result of the doctor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from epcheck.models.accuracy.verdict import Verdict
from epcheck.models.execution.session import Level
from epcheck.models.graph.external_data import DataPart
from epcheck.models.precision.node_precision import NodePrecision
from epcheck.models.quantization.result import Quantization
from epcheck.models.validation.names import shorten_words
from epcheck.models.wrong_nodes.culprit import GraphNode

RIGHT, MENDED, NOT_MENDED, FAULTY, UNJUDGED = "right", "mended", "not-mended", "faulty", "unjudged"
"""Statuses of a diagnosis."""

SCHEMA = 2
"""Version of the document: it grows when a field changes its name or its meaning."""

NAMED_NODES = 5
"""Nodes that a headline names at most."""


@dataclass(frozen=True)
class Attempt:
    """The model with some nodes in float32, on the target. failure: why a trial has no outputs; empty where each has.
    verdicts: of the outputs, against the truth."""

    verdicts: tuple[Verdict, ...] = ()
    failure: str = ""

    @property
    def right(self) -> bool:
        """Whether each trial has outputs, and each output is within its threshold."""
        return not self.failure and bool(self.verdicts) and all(verdict.right for verdict in self.verdicts)

    @property
    def words(self) -> str:
        """The failure, or the output that is farthest from its threshold, in a sentence."""
        if self.failure:
            return self.failure
        found = next((verdict for verdict in self.verdicts if not verdict.right), None) or max(
            self.verdicts, key=lambda each: each.metrics.relative if each.metrics else 0.0, default=None
        )
        return f"{found.output}, {found.trial}: {found.why}" if found else "nothing was compared"


@dataclass(frozen=True)
class Diagnosis:
    """What float16 does to a model on a target.

    converted: whether a float32 model was asked what it were in float16. facts: of the target's worker. truth: who
    computed it. nodes: all that compute in float16, in the order of the graph; those that have to stay in float32 are
    marked. before: the model in float16. after: with those nodes in float32; None where there are none. mended: that
    model, serialized, where it was asked for; data: its external data. written: its file. is_minimal: whether it was
    shown for each single node of the set that the fault comes back without it. sessions: of the target. obstacle: why
    nobody can tell, and what to do. feeds_generated: whether the feeds were generated. quantization: of its
    QuantizeLinear and DequantizeLinear nodes; None where there are none.
    """

    path: Path
    target: str
    provider: str | None
    level: Level
    converted: bool
    facts: Mapping[str, str]
    truth: str
    nodes: tuple[NodePrecision, ...]
    before: Attempt
    after: Attempt | None
    is_minimal: bool
    sessions: int
    written: Path | None = None
    mended: bytes | None = field(default=None, repr=False, compare=False)
    data: tuple[DataPart, ...] = ()
    obstacle: str = ""
    feeds_generated: bool = False
    quantization: Quantization | None = None

    @property
    def keep(self) -> tuple[GraphNode, ...]:
        """The nodes that have to stay in float32."""
        return tuple(each.node for each in self.nodes if each.keeps)

    @property
    def harmed(self) -> tuple[NodePrecision, ...]:
        """Nodes that float16 harms and that may stay in it: on these feeds it does not matter for the outputs."""
        return tuple(each for each in self.nodes if each.fault is not None and not each.keeps)

    @property
    def status(self) -> str:
        """`right`: float16 and quantisation are right as they are. `mended`: float16 is with some nodes in float32.
        `not-mended`: not with all of them. `faulty`: quantisers are at fault. `unjudged`: nobody can tell."""
        if self.quantization is not None and self.quantization.faults:
            return FAULTY
        if self.obstacle:
            return UNJUDGED
        if self.before.right or not self.nodes:
            return RIGHT
        return MENDED if self.after is not None and self.after.right else NOT_MENDED

    @property
    def subject(self) -> str:
        """What was asked: float16 or, in a model without it, quantisation."""
        return "float16" if self.nodes or self.quantization is None else "quantisation"

    @property
    def headline(self) -> str:
        """The result in one sentence, with long names cut."""
        return shorten_words(self.statement)

    @property
    def statement(self) -> str:
        """The result in one sentence, with whole names."""
        name = f"{self.path.name}{' in float16' if self.converted else ''}"
        where = self.provider or self.target
        match self.status:
            case "faulty":
                assert self.quantization is not None
                return f"{name}: {self.quantization.words}"
            case "right" if not self.nodes and self.quantization is not None:
                feeds = ", on generated feeds" if self.feeds_generated else ""
                return f"{name} is quantised correctly{feeds}: {self.quantization.words}"
            case "right":
                feeds = ", on generated feeds" if self.feeds_generated else ""
                return f"{name} is right on {where}{feeds}: all {len(self.nodes)} float16 nodes can stay"
            case "mended":
                named = ", ".join(map(str, self.keep[:NAMED_NODES]))
                more = len(self.keep) - NAMED_NODES
                least = "" if self.is_minimal else "; fewer may be enough: search limit reached"
                return (f"{name} is not right on {where}; it is with {len(self.keep)} of {len(self.nodes)} nodes in "
                        f"float32: {named}{f' and {more} more' if more > 0 else ''}{least}")  # fmt: skip
            case "not-mended":
                return (f"{name} is wrong on {where}, but not because of precision: it is also wrong with all nodes in "
                        "float32; `epcheck validate` finds the wrong nodes")  # fmt: skip
        return f"{name}: what {self.subject} does to it on {where} is not known: {self.obstacle}"


def document(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis as a JSON document. Scalars may be infinite."""
    found = asdict(replace(diagnosis, mended=None, data=()))
    del found["mended"], found["data"]
    found["path"] = str(diagnosis.path)
    found["written"] = None if diagnosis.written is None else str(diagnosis.written)
    for each, node in zip(found["nodes"], diagnosis.nodes, strict=True):
        each["fault"], each["words"] = node.fault, node.words
    keep = [asdict(node) for node in diagnosis.keep]
    return {"schema": SCHEMA, "status": diagnosis.status, "headline": diagnosis.statement, "keep": keep, **found}
