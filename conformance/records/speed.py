"""How fast two targets run one node, compared: what a measurement comes to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DOCUMENT_SCHEMA = 1

SLOWER, FASTER, EQUIVALENT, UNDECIDED = "slower", "faster", "equivalent", "undecided"
"""What an interval of ratios says of B beside A."""

VERDICTS = (SLOWER, FASTER, EQUIVALENT, UNDECIDED)

CREATE, FIRST, RUN, COPIED = "creation", "first run", "run", "run with copies"
"""What is timed, each apart: the creation of a session; its first run, which compiles and allocates; a run after the
warm-up, whose inputs and outputs stay in the memory of the provider's device; such a run whose inputs are copied there
and whose outputs are copied back. The last is there if either provider has a memory of its own; one without has the
same time in both."""

PHASES = (CREATE, FIRST, RUN, COPIED)


@dataclass(frozen=True)
class PhaseRatio:
    """One phase of a comparison. a_s, b_s: median seconds of both targets. ratio: B's time over A's, the median of all
    rounds; low, high: between which the true one lies, infinity and 0 where too few rounds were measured. verdict:
    SLOWER, FASTER, EQUIVALENT or UNDECIDED."""

    phase: str
    a_s: float
    b_s: float
    ratio: float
    low: float
    high: float
    verdict: str

    @property
    def differs(self) -> bool:
        """Whether B is slower or faster."""
        return self.verdict in (SLOWER, FASTER)

    @property
    def words(self) -> str:
        """`slower by 1.18 × (1.15 to 1.21)`; of a faster target A's time over B's."""
        ratio, low, high = self.ratio, self.low, self.high
        if self.verdict == FASTER:
            ratio, low, high = 1 / ratio, 1 / high, 1 / low
        if not math.isfinite(high):
            return f"{self.verdict}: {ratio:.2f} × in too few rounds"
        by = " by" if self.differs else ":"
        return f"{self.verdict}{by} {ratio:.2f} × ({low:.2f} to {high:.2f})"


def find_judged(phases: Sequence[PhaseRatio], judged: Sequence[str]) -> list[PhaseRatio]:
    """Those of the phases that are judged; COPIED in the place of RUN where one of the targets copies in each run."""
    found = [phase for phase in phases if phase.phase in judged]
    if RUN in judged and not any(phase.phase == RUN for phase in found):
        found += [phase for phase in phases if phase.phase == COPIED and COPIED not in judged]
    return found


@dataclass(frozen=True)
class SpeedComparison:
    """One node on two targets. case: `MatMul-13/float32/square_1024`. sizes: of its inputs, `1024x1024, 1024x1024`.
    rounds: how many were measured. phases: those that both targets have. trouble: why there is no ratio, in one
    sentence; empty where there is one. notes: what makes the ratio less reliable, in sentences."""

    case: str
    operator: str
    dtype: str
    sizes: str
    rounds: int = 0
    seconds: float = 0.0
    phases: tuple[PhaseRatio, ...] = ()
    trouble: str = ""
    notes: tuple[str, ...] = ()

    def phase(self, name: str) -> PhaseRatio | None:
        """The phase of that name; None where it was not timed."""
        return next((phase for phase in self.phases if phase.phase == name), None)


@dataclass(frozen=True)
class SpeedReport:
    """Two targets compared. a, b: their names. facts: name -> what its worker reports. alpha: the probability with
    which any interval of the report misses its true ratio. max_slowdown: the ratio above which a comparison fails; None
    where none does. judged: the phases that it is about.
    notes: on all comparisons, in sentences."""

    a: str
    b: str
    facts: Mapping[str, Mapping[str, str]]
    alpha: float
    threads: int
    judged: tuple[str, ...]
    max_slowdown: float | None
    comparisons: tuple[SpeedComparison, ...]
    notes: tuple[str, ...] = ()
    schema: int = DOCUMENT_SCHEMA

    def judged_phases(self) -> list[tuple[SpeedComparison, PhaseRatio]]:
        """Every comparison with each of its judged phases."""
        return [(each, phase) for each in self.comparisons for phase in find_judged(each.phases, self.judged)]

    @property
    def too_slow(self) -> list[tuple[SpeedComparison, PhaseRatio]]:
        """Those whose interval lies above the ratio that is allowed."""
        limit = self.max_slowdown
        return [] if limit is None else [found for found in self.judged_phases() if found[1].low > limit]

    @property
    def open(self) -> list[tuple[SpeedComparison, PhaseRatio]]:
        """Those of which it is not known: the ratio that is allowed lies within the interval; without one, those whose
        verdict is UNDECIDED."""
        limit = self.max_slowdown
        if limit is None:
            return [found for found in self.judged_phases() if found[1].verdict == UNDECIDED]
        return [found for found in self.judged_phases() if found[1].low <= limit < found[1].high]

    @property
    def failed(self) -> list[SpeedComparison]:
        """The comparisons without a ratio."""
        return [each for each in self.comparisons if each.trouble]

    @property
    def headline(self) -> str:
        """What comes of it, in one sentence."""
        found = self.judged_phases()
        counts = {verdict: sum(phase.verdict == verdict for _, phase in found) for verdict in VERDICTS}
        parts = [f"{count} {verdict}" for verdict, count in counts.items() if count]
        if self.failed:
            parts.append(f"{len(self.failed)} not compared")
        subject = f"'{self.b}' beside '{self.a}', {' and '.join(self.judged)} of {len(self.comparisons)} nodes: "
        limit = self.max_slowdown
        over = "" if limit is None else f"; {len(self.too_slow)} slower by more than {limit:g} ×"
        return subject + ", ".join(parts) + over


def format_seconds(seconds: float) -> str:
    """`12.3 µs`, `4.56 ms`, `1.2 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
