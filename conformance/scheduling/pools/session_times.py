"""From when on a session that has not answered is suspected, and when it is given up: by what sessions have taken.

A worker that stands still uses no CPU time. One that is suspected is set aside, so that no other case waits for it;
one that is given up is ended, and its session has timed out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from epcheck.conformance.scheduling.trace import LOST, SESSION, STARTING, Span, Trace
from epcheck.conformance.targets.target import Target

ENOUGH = 16
"""Sessions that are measured before one is given up any earlier than the target's own deadline says."""

SUSPECT_FORK_S, SUSPECT_S = 0.1, 1.0
"""A worker that stands still for so long, in seconds, is suspected. Where workers are forks, a new one costs little."""

OVERDUE_S = 2.0
"""So is one that works on one session for so long, in seconds."""

STALLED_S = 4.0
"""A worker that stands still for so long, in seconds, is given up. Sessions that answered did so after 3.6 s at most,
where eight workers waited for one GPU."""

DEADLINE_S, PACK_DEADLINE_S = 10.0, 20.0
"""So is one that works for so long, in seconds, on a session of one case, or of many: these are split when given up."""

SLACK = 2
"""How many times as long as the worst session that answered one may stand still, or take, before it is suspected or
given up: sessions differ, and the machine may be busy with something else."""

USE_DEADLINES = 2
"""Deadlines of the target that a use of sessions may take: one with 53 sizes, on SwiftShader, was given up after 16 s,
twice as long as the worst session before it had taken."""


@dataclass(frozen=True)
class Limits:
    """Seconds of one session. suspect_s: its worker stands still; overdue_s: it works; then it is suspected. stalled_s:
    it stands still; deadline_s: in all; then it is given up."""

    suspect_s: float
    overdue_s: float
    stalled_s: float
    deadline_s: float


class _Worst:
    """The worst of some sessions, and what one like them may take therefore."""

    def __init__(self, target: Target, least_deadline_s: float) -> None:
        self._deadline_s, self._least_deadline_s = target.deadline_s, least_deadline_s
        self._suspect_s = SUSPECT_FORK_S if target.forks else SUSPECT_S
        self._measured = 0
        self._busy_s = self._still_s = 0.0
        self.limits = self._limits()

    @property
    def is_known(self) -> bool:
        """Whether enough sessions are measured."""
        return self._measured >= ENOUGH

    def add_session(self, busy_s: float, idle_s: float) -> None:
        """As of `SessionTimes`."""
        self._measured += 1
        if self._measured <= ENOUGH or busy_s > self._busy_s or idle_s > self._still_s:
            self._busy_s, self._still_s = max(self._busy_s, busy_s), max(self._still_s, idle_s)
            self.limits = self._limits()

    def _limits(self) -> Limits:
        def limit(least_s: float, worst_s: float) -> float:
            return min(self._deadline_s, max(least_s, SLACK * worst_s))

        return Limits(
            limit(self._suspect_s if self.is_known else SUSPECT_S, self._still_s),
            limit(OVERDUE_S, self._busy_s),
            limit(STALLED_S, self._still_s) if self.is_known else self._deadline_s,
            limit(self._least_deadline_s, self._busy_s) if self.is_known else self._deadline_s,
        )


class SessionTimes:
    """What the sessions of one target have taken, and what one may take therefore: one of a single case has no pack to
    wait for."""

    def __init__(self, target: Target, trace: Trace | None = None) -> None:
        """trace: takes what is measured, too."""
        self._target, self._deadline_s = target.name, target.deadline_s
        self._trace = trace
        self._of_all, self._of_one_case = _Worst(target, PACK_DEADLINE_S), _Worst(target, DEADLINE_S)

    def limits(self, cases: int, of_use: bool = False) -> Limits:
        """Of a session of so many cases. of_use: its case is used as applications use sessions, and runs many times, in
        many sizes."""
        limits = (self._of_one_case if cases == 1 and self._of_one_case.is_known else self._of_all).limits
        most_s = USE_DEADLINES * self._deadline_s
        return replace(limits, overdue_s=most_s, deadline_s=most_s) if of_use else limits

    def add_session(self, busy_s: float, idle_s: float, cases: int) -> None:
        """A session of so many cases took `busy_s` seconds, in which its worker stood still for `idle_s` at a time at
        most."""
        self._of_all.add_session(busy_s, idle_s)
        if cases == 1:
            self._of_one_case.add_session(busy_s, idle_s)

    def trace_start(self, worker: int, begun: float, now: float) -> None:
        """A worker, by its process id, has answered its handshake. Times are those of time.monotonic()."""
        if self._trace:
            self._trace.add(Span(self._target, worker, STARTING, STARTING, begun, now - begun))

    def trace_session(self, worker: int, name: str, at: float, busy_s: float, cases: int) -> None:
        """A session has ended at a time, after `busy_s` seconds of its worker."""
        if self._trace:
            self._trace.add(Span(self._target, worker, SESSION, name, at - busy_s, busy_s, cases))

    def lost(self, worker: int, why: str, begun: float, now: float, cases: int) -> None:
        """A session that began at a time ended its worker."""
        if self._trace:
            self._trace.add(Span(self._target, worker, LOST, why, begun, now - begun, cases))
