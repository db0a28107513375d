"""The trace of a run: what every worker and the runner did when, for Perfetto and for a table."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

STARTING, SESSION, LOST = "starting", "session", "lost"
"""What a worker's time went into. LOST: sessions that ended their worker, by a crash, a hang or the deadline."""

TAKING_IN, PREPARING, SENDING, JUDGING, WAITING = "taking in", "preparing", "sending", "judging", "waiting"
MEASURING = "measuring"
"""What the runner's time went into. Preparing: the cache is read, models are built, oracles are asked. Sending: cases
begin and sessions are made up. Judging: answers are compared, judged and recorded.
Measuring: it is found out how many workers pay."""


class PhaseClock:
    """Seconds of the runner's thread by phase."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._phase, self._since = TAKING_IN, time.perf_counter()

    def enter(self, phase: str) -> None:
        """What the thread does from now on."""
        now = time.perf_counter()
        self.seconds[self._phase] += now - self._since
        self._phase, self._since = phase, now


@dataclass
class Trace:
    """What a run recorded of itself; times are those of time.monotonic(), in seconds."""

    begun: float = field(default_factory=time.monotonic)
    clock: PhaseClock = field(default_factory=PhaseClock)
    spans: list[Span] = field(default_factory=list)

    def add(self, span: Span) -> None:
        """Keep a span."""
        self.spans.append(span)

    def targets(self) -> Mapping[str, WorkerSeconds]:
        """Target name -> what its workers' time went into."""
        of: defaultdict[str, list[Span]] = defaultdict(list)
        for span in self.spans:
            of[span.target].append(span)
        return {target: WorkerSeconds.of(spans) for target, spans in of.items()}

    def trace_events(self) -> dict[str, Any]:
        """It in the Trace Event Format, which ui.perfetto.dev and chrome://tracing show: a process for each
        target, a thread for each worker. `otherData` has the sums."""
        numbers = {target: number for number, target in enumerate(self.targets(), 1)}
        names = [
            {"ph": "M", "name": "process_name", "pid": number, "tid": 0, "args": {"name": target}}
            for target, number in numbers.items()
        ]
        events = [
            {
                "ph": "X", "name": span.name, "cat": span.kind, "pid": numbers[span.target], "tid": span.worker,
                "ts": round(1e6 * (span.begun - self.begun)), "dur": round(1e6 * span.seconds),
                "args": {"cases": span.cases},
            }
            for span in self.spans
        ]  # fmt: skip
        sums = {
            "runner": {phase: round(seconds, 3) for phase, seconds in self.clock.seconds.items()},
            "workers": {target: worker.in_words() for target, worker in self.targets().items()},
        }
        return {
            "traceEvents": [*names, *events],
            "displayTimeUnit": "ms",
            "otherData": {"cores": os.cpu_count(), **sums},
        }


@dataclass(frozen=True)
class Span:
    """What a worker did for some time. kind: as above. name: the session's, and why the worker was lost. worker: its
    process id. begun: on time.monotonic's clock. cases: in the session."""

    target: str
    worker: int
    kind: str
    name: str
    begun: float
    seconds: float
    cases: int = 0


@dataclass(frozen=True)
class WorkerSeconds:
    """The workers of a target, taken together. workers: how many started. waiting: seconds in which a worker had
    answered its handshake and had no session."""

    workers: int
    sessions: int
    cases: int
    lost: int
    seconds: Mapping[str, float]
    waiting: float

    @classmethod
    def of(cls, spans: list[Span]) -> WorkerSeconds:
        """The sums of one target's spans."""
        seconds: Counter[str] = Counter()
        life: dict[int, tuple[float, float]] = {}
        for span in spans:
            seconds[span.kind] += span.seconds  # type: ignore[assignment]  # seconds are counted, too
            begun, ended = life.get(span.worker, (span.begun, span.begun))
            life[span.worker] = min(begun, span.begun), max(ended, span.begun + span.seconds)
        kinds = Counter(span.kind for span in spans)
        lived = sum(ended - begun for begun, ended in life.values())
        return cls(
            kinds[STARTING], kinds[SESSION], sum(span.cases for span in spans if span.kind == SESSION), kinds[LOST],
            dict(seconds), max(0.0, lived - sum(seconds.values())),
        )  # fmt: skip

    def in_words(self) -> dict[str, float]:
        """Counts and seconds by name."""
        counts = {"workers": self.workers, "sessions": self.sessions, "cases": self.cases, "lost": self.lost}
        return {**counts, **{f"{kind}_s": round(spent, 3) for kind, spent in self._all_seconds()}}

    def _all_seconds(self) -> Iterator[tuple[str, float]]:
        for kind in (STARTING, SESSION, LOST):
            yield kind, self.seconds.get(kind, 0.0)
        yield "waiting", self.waiting
