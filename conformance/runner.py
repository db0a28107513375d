"""The runner: cases through candidates, baseline and reference side by side, confirmed, judged, recorded.

A failure is repeated before it is reported: first in a second worker, where other cases ran before it, then, when the
two disagree, in processes where nothing ran before. Answers that depend on what ran before are `order-dependent`,
answers that change with nothing changed are `flaky`.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from types import TracebackType
from typing import Self

from epcheck.conformance import judge, lab, record
from epcheck.conformance.expectation import matching
from epcheck.conformance.lane import Job, Lane
from epcheck.conformance.outcome import DONE, Outcome
from epcheck.conformance.pack import may_be_packed
from epcheck.conformance.process import Event
from epcheck.conformance.record import Opinion, Record
from epcheck.conformance.target import Target
from epcheck.generators.case import BuiltCase, Case, Refusal

IN_PROGRESS = 1024
"""Cases between building and verdict. Bounds memory; leaves room for failures that wait for their confirmation."""

PREPARED = 512
"""Cases that are built while the workers start."""

AHEAD = 192
"""Cases that the slowest lane may have before it: enough that no worker idles, few enough that none hoards."""

TICK_S = 0.2
"""How often deadlines and memory are looked at, in seconds."""

Sink = Callable[[Record], None]
Facts = Mapping[str, Mapping[str, str]]
"""Target name -> what its worker says of itself: the fingerprint."""


@dataclass(frozen=True)
class Plan:
    """What a run does.

    reference: a further oracle, run on every case; None leaves it out. done: (candidate, case id) pairs that an
    interrupted run has recorded already.
    """

    cases: Sequence[Case]
    candidates: tuple[Target, ...]
    baseline: Target | None = None
    reference: Target | None = None
    done: Collection[tuple[str, str]] = frozenset()


def run(plan: Plan, sink: Sink, on_facts: Callable[[Facts], None] | None = None) -> None:
    """Run the plan; `sink` takes each record as soon as it is final, in no particular order.

    on_facts: takes target name -> facts once every worker has started.
    Raises TargetDown when a target cannot be started; what was recorded until then stands. Whatever the sink raises
    ends the run as well. No worker outlives the call.
    """
    cases = iter(plan.cases)
    first = islice(cases, PREPARED)
    with Session(plan.candidates, plan.baseline, plan.reference, sink, plan.done, first) as session:
        if on_facts:
            on_facts(session.facts)
        for case in cases:
            while not session.has_room():
                session.turn()
            session.submit(case)
        while session.under_way:
            session.turn()


def ask(target: Target, built: BuiltCase) -> Outcome:
    """What a target does with one case, once, in a process of its own; nobody judges it. Raises TargetDown."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    lane = Lane(target, events, alone=True)
    said: list[Outcome] = []
    with contextlib.nullcontext() if target.owns_group else lab.in_use():
        try:
            lane.submit(Job(built, said.append))
            while not said:
                with contextlib.suppress(queue.Empty):
                    event = events.get(timeout=TICK_S)
                    if lane.owns(event):
                        lane.handle(event)
                lane.watch(time.monotonic())
        finally:
            lane.kill()
    return said[0]


@dataclass
class _Progress:
    """One case under way: what each target said so far."""

    built: BuiltCase
    candidates: tuple[Target, ...]
    waiting_for: int
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    opinions: dict[str, Opinion] = field(default_factory=dict)


class Session:
    """Workers of candidates, baseline and reference that take one case after the other.

    Nothing happens but in `turn`, in the caller's thread. As a context manager it starts the workers, and ends them
    at once when it is left by an exception.
    """

    def __init__(
        self,
        candidates: tuple[Target, ...],
        baseline: Target | None,
        reference: Target | None,
        sink: Sink,
        done: Collection[tuple[str, str]] = frozenset(),
        first: Iterable[Case] = (),
    ) -> None:
        """first: cases to submit while the workers start. The others as in `Plan` and `run`."""
        self.candidates = candidates
        self.baseline = baseline
        self.reference = reference
        self.under_way = 0
        self._sink = sink
        self._done = done
        self._first = first
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        further = [t for t in (baseline, reference) if t is not None]
        self._lanes = {target.name: Lane(target, self._events) for target in (*candidates, *further)}
        self._confirming: dict[str, Lane] = {}
        self._alone: dict[str, Lane] = {}
        self._declined: set[tuple[str, ...]] = set()
        self._last_watch = 0.0
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Start every worker, submit the first cases, and wait until all have answered. Raises TargetDown."""
        if any(not lane.target.owns_group for lane in self._lanes.values()):
            self._resources.enter_context(lab.in_use())
        try:
            for lane in self._lanes.values():
                lane.start()
            for case in self._first:
                self.submit(case)
            while not all(lane.facts for lane in self._lanes.values()):
                self.turn()
        except BaseException:
            self._kill()
            self._resources.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._resources:
            if kind is None:
                for lane in self._every_lane():
                    lane.close()
            else:
                self._kill()

    @property
    def facts(self) -> Facts:
        """What each target's worker says of itself."""
        return {name: lane.facts for name, lane in self._lanes.items()}

    def has_room(self) -> bool:
        """Whether another case may be submitted without piling up."""
        return self.under_way < IN_PROGRESS and max(lane.backlog for lane in self._lanes.values()) < AHEAD

    def submit(self, case: Case) -> None:
        """Build a case and queue it on every target that has not recorded it yet; one that cannot be built is
        `skipped`."""
        candidates = tuple(t for t in self.candidates if (t.name, case.id) not in self._done)
        if not candidates:
            return
        try:
            built = case.build()
        except Exception as error:  # a generator's fault costs its case, not the run
            for target in candidates:
                self._sink(judge.unbuilt(case, target, error))
            return
        further = [t for t in (self.baseline, self.reference) if t is not None]
        targets = {target.name: target for target in (*candidates, *further)}
        progress = _Progress(built, candidates, len(targets))
        self.under_way += 1
        for target in targets.values():
            self._lanes[target.name].submit(self._first_job(progress, target))

    def _first_job(self, progress: _Progress, target: Target, packable: bool = True) -> Job:
        def finished(outcome: Outcome) -> None:
            opinion = judge.opinion(progress.built, target, outcome)
            if outcome.shared > 1 and opinion.status != record.PASS:
                self._lanes[target.name].submit(self._first_job(progress, target, packable=False))
                return
            if opinion.status == record.UNPLACED:
                self._declined.add(_kind(progress.built, target))
            is_reference = self.reference is not None and target.name == self.reference.name
            if is_reference and target not in progress.candidates:
                self._settle(progress, target, outcome, opinion)
            elif judge.needs_confirmation(progress.built, target, opinion):
                self._confirm(progress, target, outcome)
            else:
                self._settle(progress, target, outcome, opinion)

        if packable and target.pack > 1:
            kind = _kind(progress.built, target)
            packable = (
                kind not in self._declined
                and may_be_packed(progress.built)
                and judge.likely_to_pass(progress.built, target)
            )
        return Job(progress.built, finished, packable and target.pack > 1)

    def _confirm(self, progress: _Progress, target: Target, first: Outcome) -> None:
        def finished(second: Outcome) -> None:
            if _say_the_same(progress.built, first, second):
                self._settle(progress, target, first, judge.opinion(progress.built, target, first, attempts=2))
            else:
                self._isolate(progress, target, first, second)

        lane = self._confirming.setdefault(target.name, Lane(target, self._events))
        lane.submit(Job(progress.built, finished))

    def _isolate(self, progress: _Progress, target: Target, first: Outcome, second: Outcome) -> None:
        """Once more where it failed, and twice in a process of its own: that tells `order-dependent` from `flaky`."""
        again: list[Outcome] = []
        alone: list[Outcome] = []

        def into(runs: list[Outcome]) -> Job:
            def finished(outcome: Outcome) -> None:
                runs.append(outcome)
                if len(again) == 1 and len(alone) == 2:
                    attempts = _Attempts(first, second, again[0], alone[0], alone[1])
                    self._settle(progress, target, first, _unsteady(progress.built, target, attempts))

            return Job(progress.built, finished)

        self._lanes[target.name].submit(into(again))
        lane = self._alone.setdefault(target.name, Lane(target, self._events, alone=True))
        for _ in range(2):
            lane.submit(into(alone))

    def _settle(self, progress: _Progress, target: Target, outcome: Outcome, opinion: Opinion) -> None:
        progress.outcomes[target.name] = outcome
        progress.opinions[target.name] = opinion
        progress.waiting_for -= 1
        if progress.waiting_for == 0:
            self.under_way -= 1
            self._conclude(progress)

    def _conclude(self, progress: _Progress) -> None:
        built, baseline, reference = progress.built, self.baseline, self.reference
        said = progress.outcomes.get(reference.name) if reference else None
        oracles = judge.second_oracles(built, said, reference)
        for target in progress.candidates:
            self_baseline = baseline is None or baseline.name == target.name
            failing = progress.opinions[target.name].status != record.PASS
            echoes = (
                judge.echoes(built, progress.outcomes[target.name], said, reference.name if reference else "")
                if failing
                else ()
            )
            self._sink(
                judge.verdict(
                    built,
                    target,
                    progress.opinions[target.name],
                    None if self_baseline or baseline is None else progress.opinions[baseline.name],
                    oracles,
                    echoes,
                    matching(target.expectations, built.case.id),
                )
            )

    def turn(self) -> None:
        """Wait for one event and whatever came with it, and hand them to their lanes."""
        for lane in self._every_lane():
            lane.listen(True)
        try:
            event: Event | None = self._events.get(timeout=TICK_S)
        except queue.Empty:
            event = None
        for lane in self._every_lane():
            lane.listen(False)
        while event is not None:
            for lane in self._every_lane():
                if lane.owns(event):
                    lane.handle(event)
                    break
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                event = None
        now = time.monotonic()
        if now - self._last_watch >= TICK_S:
            self._last_watch = now
            for lane in self._every_lane():
                lane.watch(now)

    def _every_lane(self) -> Iterable[Lane]:
        return (*self._lanes.values(), *self._confirming.values(), *self._alone.values())

    def _kill(self) -> None:
        for lane in self._every_lane():
            lane.kill()


def _kind(built: BuiltCase, target: Target) -> tuple[str, ...]:
    """What a target takes or declines as one: an operator version with its dtypes."""
    return target.name, built.case.domain, built.case.operator, str(built.case.since_version), built.case.dtype


def _say_the_same(built: BuiltCase, first: Outcome, second: Outcome) -> bool:
    """Whether a repetition confirms: the same answer, or any two answers where there must be none."""
    must_refuse = isinstance(built.truth, Refusal)
    return first.signature() == second.signature() or (must_refuse and first.kind == second.kind == DONE)


@dataclass(frozen=True)
class _Attempts:
    """The runs of a case whose first two disagree: after other cases in one worker, after others in a second, in the
    first one again, and twice with nothing before."""

    first: Outcome
    elsewhere: Outcome
    again: Outcome
    alone: Outcome
    alone_again: Outcome

    def status(self) -> str:
        """`order-dependent` when the answer alone is steady and a history that changed it does so again."""
        first, elsewhere, again, alone, alone_again = (o.signature() for o in self.in_order())
        if alone == alone_again and (first == again != alone or elsewhere != alone != first):
            return record.ORDER_DEPENDENT
        return record.FLAKY

    def in_order(self) -> tuple[Outcome, ...]:
        return self.first, self.elsewhere, self.again, self.alone, self.alone_again


def _unsteady(built: BuiltCase, target: Target, attempts: _Attempts) -> Opinion:
    """The opinion of a case whose answer changed on repetition."""
    judged = [judge.opinion(built, target, outcome) for outcome in attempts.in_order()]
    worst = next((o for o in judged if o.status != record.PASS), judged[0])
    status = attempts.status()
    how = "what it answers depends on what ran before" if status == record.ORDER_DEPENDENT else "its answer changes"
    said = f"{', '.join(o.status for o in judged[:3])}; alone {', '.join(o.status for o in judged[3:])}"
    return replace(worst, status=status, message=f"{how} ({said}): {worst.message}", attempts=len(judged))
