"""The runner: cases through candidates, baseline and reference side by side, confirmed, judged, recorded.

A failure is repeated before it is reported: first in a second worker, where other cases ran before it, then, when the
two disagree, in processes where nothing ran before. Answers that depend on what ran before are `order-dependent`,
answers that change with nothing changed are `flaky`.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from epcheck.conformance import judge, record
from epcheck.conformance.expectation import Expectation, matching
from epcheck.conformance.lane import Job, Lane, TargetDown
from epcheck.conformance.outcome import Outcome
from epcheck.conformance.process import Event
from epcheck.conformance.record import Opinion, Record
from epcheck.conformance.target import Target
from epcheck.generators.case import BuiltCase, Case

IN_PROGRESS = 256
"""Cases between building and verdict. Bounds memory; leaves room for failures that wait for their confirmation."""

AHEAD = 24
"""Cases that the slowest lane may have before it: enough that no worker idles, few enough that none hoards."""

TICK_S = 0.2
"""How often deadlines and memory are looked at, in seconds."""

Sink = Callable[[Record], None]


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

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every target once."""
        further = [t for t in (self.baseline, self.reference) if t is not None]
        return tuple({target.name: target for target in (*self.candidates, *further)}.values())


def run(plan: Plan, sink: Sink, on_facts: Callable[[Mapping[str, Mapping[str, str]]], None] | None = None) -> None:
    """Run the plan; `sink` takes each record as soon as it is final, in no particular order.

    on_facts: takes target name -> facts once every worker has started, before the first record.
    Raises TargetDown when a target cannot be started; what was recorded until then stands. Whatever the sink raises
    ends the run as well. No worker outlives the call.
    """
    runner = _Runner(plan, sink)
    try:
        facts = runner.greet()
        if on_facts:
            on_facts(facts)
        runner.work()
    except BaseException:
        runner.kill()
        raise
    runner.close()


@dataclass
class _Progress:
    """One case under way: what each target said so far."""

    built: BuiltCase
    candidates: tuple[Target, ...]
    waiting_for: int
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    opinions: dict[str, Opinion] = field(default_factory=dict)


class _Runner:
    def __init__(self, plan: Plan, sink: Sink) -> None:
        self.plan = plan
        self.sink = sink
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.lanes = {target.name: Lane(target, self.events) for target in plan.targets}
        self.confirming: dict[str, Lane] = {}
        self.alone: dict[str, Lane] = {}
        self.under_way = 0
        self.last_watch = 0.0

    def greet(self) -> dict[str, Mapping[str, str]]:
        for lane in self.lanes.values():
            lane.start()
        while not all(lane.facts for lane in self.lanes.values()):
            self.turn()
        return {name: lane.facts for name, lane in self.lanes.items()}

    def work(self) -> None:
        cases = iter(self.plan.cases)
        more = True
        while more or self.under_way:
            while more and self.under_way < IN_PROGRESS and self.has_room():
                case = next(cases, None)
                if case is None:
                    more = False
                else:
                    self.begin(case)
            if self.under_way:
                self.turn()

    def has_room(self) -> bool:
        return max(lane.backlog for lane in self.lanes.values()) < AHEAD

    def begin(self, case: Case) -> None:
        candidates = tuple(t for t in self.plan.candidates if (t.name, case.id) not in self.plan.done)
        if not candidates:
            return
        further = [t for t in (self.plan.baseline, self.plan.reference) if t is not None]
        targets = {target.name: target for target in (*candidates, *further)}
        progress = _Progress(case.build(), candidates, len(targets))
        self.under_way += 1
        for target in targets.values():
            self.lanes[target.name].submit(self.first_job(progress, target))

    def first_job(self, progress: _Progress, target: Target) -> Job:
        def finished(outcome: Outcome) -> None:
            opinion = judge.opinion(progress.built, target, outcome)
            is_reference = self.plan.reference is not None and target.name == self.plan.reference.name
            if is_reference and target not in progress.candidates:
                self.settle(progress, target, outcome, opinion)
            elif judge.needs_confirmation(progress.built, target, opinion):
                self.confirm(progress, target, outcome)
            else:
                self.settle(progress, target, outcome, opinion)

        return Job(progress.built, finished)

    def confirm(self, progress: _Progress, target: Target, first: Outcome) -> None:
        def finished(second: Outcome) -> None:
            if second.signature() == first.signature():
                self.settle(progress, target, first, judge.opinion(progress.built, target, first, attempts=2))
            else:
                self.isolate(progress, target, [first, second])

        lane = self.confirming.setdefault(target.name, Lane(target, self.events))
        lane.submit(Job(progress.built, finished))

    def isolate(self, progress: _Progress, target: Target, before: list[Outcome]) -> None:
        """Two more runs, each in a process of its own, tell `order-dependent` from `flaky`."""
        runs: list[Outcome] = []

        def finished(outcome: Outcome) -> None:
            runs.append(outcome)
            if len(runs) == 2:
                self.settle(progress, target, before[0], _unsteady(progress.built, target, before, runs))

        lane = self.alone.setdefault(target.name, Lane(target, self.events, alone=True))
        for _ in range(2):
            lane.submit(Job(progress.built, finished))

    def settle(self, progress: _Progress, target: Target, outcome: Outcome, opinion: Opinion) -> None:
        progress.outcomes[target.name] = outcome
        progress.opinions[target.name] = opinion
        progress.waiting_for -= 1
        if progress.waiting_for == 0:
            self.under_way -= 1
            self.conclude(progress)

    def conclude(self, progress: _Progress) -> None:
        built, baseline, reference = progress.built, self.plan.baseline, self.plan.reference
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
            self.sink(
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
        try:
            event: Event | None = self.events.get(timeout=TICK_S)
        except queue.Empty:
            event = None
        while event is not None:
            for lane in self.every_lane():
                if lane.owns(event):
                    lane.handle(event)
                    break
            try:
                event = self.events.get_nowait()
            except queue.Empty:
                event = None
        now = time.monotonic()
        if now - self.last_watch >= TICK_S:
            self.last_watch = now
            for lane in self.every_lane():
                lane.watch(now)

    def every_lane(self) -> Iterable[Lane]:
        return (*self.lanes.values(), *self.confirming.values(), *self.alone.values())

    def close(self) -> None:
        for lane in self.every_lane():
            lane.close()

    def kill(self) -> None:
        for lane in self.every_lane():
            lane.kill()


def _unsteady(built: BuiltCase, target: Target, before: Sequence[Outcome], alone: Sequence[Outcome]) -> Opinion:
    """The opinion of a case whose answer changed on repetition."""
    judged = [judge.opinion(built, target, outcome) for outcome in (*before, *alone)]
    worst = next((o for o in judged if o.status != record.PASS), judged[0])
    steady_alone = alone[0].signature() == alone[1].signature()
    status = record.ORDER_DEPENDENT if steady_alone else record.FLAKY
    how = "what it answers depends on what ran before" if steady_alone else "its answer changes with nothing changed"
    said = f"{', '.join(o.status for o in judged[:2])}; alone {', '.join(o.status for o in judged[2:])}"
    return replace(worst, status=status, message=f"{how} ({said}): {worst.message}", attempts=len(judged))


__all__ = ["Expectation", "Plan", "TargetDown", "run"]
