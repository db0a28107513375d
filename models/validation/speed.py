"""How fast a candidate runs a model, beside its baseline: latency, the first run, nodes, memory."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from epcheck.models.execution.model_outcome import ModelOutcome

SECONDS = 2.0
"""For which the runs of each target are timed."""

SLOWEST = 10
"""Nodes that are listed."""


COPIES = ("MemcpyFromHost", "MemcpyToHost")
"""Operators of the nodes that ONNX Runtime inserts for copies (core/optimizer/transformer_memcpy.cc)."""


@dataclass(frozen=True)
class NodeTime:
    """A node of the optimised graph. seconds: in one run; share: of all nodes."""

    name: str
    operator: str
    provider: str
    seconds: float
    share: float


@dataclass(frozen=True)
class Speed:
    """A target on one set of feeds. create_s: seconds of session creation. first_s: of the first run. runs_s: of those
    that follow it. nodes: the slowest. bytes: resident in the worker after the runs, with its runtime; 0 where that is
    not known. copies_s: of the copies between memories within the graph in one run, by the profile, whose share of all
    nodes is copies_share; None where it has none. Inputs and outputs of the model are copied outside of it."""

    target: str
    create_s: float
    first_s: float
    runs_s: tuple[float, ...]
    nodes: tuple[NodeTime, ...]
    bytes: int
    copies_s: float | None = None
    copies_share: float | None = None

    @property
    def median_s(self) -> float:
        return statistics.median(self.runs_s)

    @property
    def spread_s(self) -> tuple[float, float]:
        """Between which the middle eight tenths of the runs lie."""
        ordered, cut = sorted(self.runs_s), len(self.runs_s) // 10
        return ordered[cut], ordered[len(ordered) - 1 - cut]


@dataclass(frozen=True)
class Speeds:
    """Candidate and baseline on the same feeds; no baseline where there is none or it fails."""

    trial: str
    candidate: Speed
    baseline: Speed | None = None

    @property
    def ratio(self) -> float | None:
        """The candidate's median latency over the baseline's."""
        return self.candidate.median_s / self.baseline.median_s if self.baseline else None

    @property
    def words(self) -> str:
        """A sentence with the ratios."""
        if self.baseline is None:
            low, high = self.candidate.spread_s
            return (f"'{self.candidate.target}' takes {milliseconds(self.candidate.median_s)} ms in a run "
                    f"({milliseconds(low)} to {milliseconds(high)})")  # fmt: skip
        first = self.candidate.first_s / self.baseline.first_s if self.baseline.first_s else None
        memory = self.candidate.bytes / self.baseline.bytes if self.baseline.bytes else None
        ratio = self.ratio or 0.0
        return (f"a run on '{self.candidate.target}' takes {ratio:.3g} times as long as on '{self.baseline.target}'"
                + (f", the first run {first:.3g} times" if first else "")
                + (f", its process {memory:.3g} times the memory" if memory else ""))  # fmt: skip


def milliseconds(seconds: float) -> str:
    """Three significant digits."""
    return f"{1000 * seconds:.3g}"


def speed(target: str, outcome: ModelOutcome, resident: int) -> Speed | None:
    """The speed that a timed outcome shows; None where it failed."""
    if not outcome.is_done or outcome.timing is None or not outcome.timing.runs_s:
        return None
    total = sum(node[-1] for node in outcome.timing.nodes) or 1.0
    nodes = tuple(NodeTime(*node, node[-1] / total) for node in outcome.timing.nodes[:SLOWEST])
    copied = [node[-1] for node in outcome.timing.nodes if node[1] in COPIES]
    copies = sum(copied) if copied else None
    return Speed(target, outcome.create_s or 0.0, outcome.run_s or 0.0, outcome.timing.runs_s, nodes, resident,
                 copies, None if copies is None else copies / total)  # fmt: skip
