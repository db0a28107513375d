"""The runner: cases through candidates, baseline and reference side by side, confirmed, judged, recorded.

A failure is repeated before it is reported: first in a second worker, where other cases ran before it, then, when the
two disagree, in processes where nothing ran before. Answers that depend on what ran before are `order-dependent`,
answers that change with nothing changed are `flaky`. What fails in a pack is repeated in a session of its own. What
ends a worker has to end a second one, in which nothing ran before; what ends fewer than most of five is only noted.
What is expected, with a reason, needs less: an expected end of the worker is seen once, in a process of its own, and
a case that is expected to be unsteady is not run in processes of its own.
"""

from __future__ import annotations

import contextlib
import gc
import os
import queue
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import TracebackType
from typing import Self

from epcheck.conformance import lab
from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.cache.row_groups import Rows, Shelf, shelf
from epcheck.conformance.judging import explain, verdict
from epcheck.conformance.judging.repeats import LOST, Attempts, unsteady
from epcheck.conformance.preparation.prepared_case import Prepared
from epcheck.conformance.preparation.preparer_pool import Preparation
from epcheck.conformance.records import record
from epcheck.conformance.records.outcome import DONE, PLACED, Outcome, bits
from epcheck.conformance.records.record import Direct, Opinion, Record
from epcheck.conformance.scheduling import run_history
from epcheck.conformance.scheduling.pool import Crew
from epcheck.conformance.scheduling.supervisor import Job, Lane
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.process import Event, WarmWorkers
from epcheck.generators.case import Case

IN_PROGRESS = 3072
"""Cases between their submission and their verdict. Bounds memory; leaves room for packs that fill up and for failures
that wait for their confirmation."""

AT_START = 8192
"""Cases that are taken in until every target has answered its greeting: there is nothing else to do meanwhile."""

AT_ONCE = 256
"""Cases that are taken in together once there is room for them: many small steps would make small packs, large ones let
workers idle meanwhile."""

TICK_S = 0.2
"""How often deadlines and memory are looked at, in seconds."""

COLLECT_AFTER = 50_000
"""New objects after which Python looks for cycles of garbage during a run."""

ALONE_AT_ONCE = 2
"""Processes for one case each, of which one starts while the other runs."""

PLACE_ONLY = b"place only "
"""What the groups begin with whose cases are only placed."""

ENDS_WORKER = (record.CRASH, record.TIMEOUT)
"""The statuses of LOST."""

UNSTEADY = (record.FLAKY, record.ORDER_DEPENDENT)
"""Statuses of answers that change."""

TOGETHER = (record.MISMATCH, record.FLAKY, record.ORDER_DEPENDENT)
"""Statuses that leave the session to others: cases that will probably end so share one, apart from the good ones."""

Sink = Callable[[Record], None]
Facts = Mapping[str, Mapping[str, str]]
"""Target name -> what its worker says of itself: the fingerprint."""


@dataclass(frozen=True)
class Plan:
    """What a run does.

    reference: a further oracle, run on every case; None leaves it out. done: (candidate, case id) pairs that an
    interrupted run has recorded already. jobs: workers of each target at most; None for each target's own number.
    pack: whether cases may share sessions; the verdicts are the same without. below: candidate name -> the target that
    calls DirectML directly, which is asked about every failure of that candidate.
    """

    cases: Sequence[Case]
    candidates: tuple[Target, ...]
    baseline: Target | None = None
    reference: Target | None = None
    done: Collection[tuple[str, str]] = frozenset()
    jobs: int | None = None
    pack: bool = True
    below: Mapping[str, Target] = field(default_factory=dict)


def run(
    plan: Plan,
    sink: Sink,
    on_facts: Callable[[Facts], None] | None = None,
    cache: Cache | None = None,
    warm: WarmWorkers | None = None,
) -> tuple[str, ...]:
    """Run the plan; `sink` takes each record as soon as it is final, in no particular order. Returns, in words, what
    happened that belongs to no case: sessions of several that failed, though none of their cases does alone.

    on_facts: takes target name -> facts once every worker has started. cache: where prepared cases and opinions are
    kept from run to run. warm: keeps the workers for the next run of this process; otherwise none outlives the call.
    Raises TargetDown when a target cannot be started; what was recorded until then stands. Whatever the sink raises
    ends the run as well.
    """
    cases = iter(plan.cases)
    with Session(plan, sink, cache, warm) as session:
        for case in islice(cases, IN_PROGRESS):
            session.submit(case)
        while not session.ready:
            ahead = tuple(islice(cases, AT_ONCE)) if session.under_way < AT_START else ()
            for case in ahead:
                session.submit(case)
            session.turn(more=True, wait=not ahead)
        if on_facts:
            on_facts(session.facts)
        for case in cases:
            if not session.has_room():
                while session.under_way > IN_PROGRESS - AT_ONCE:
                    session.turn(more=True)
            session.submit(case)
        while session.under_way:
            session.turn()
        return tuple(session.notes())


def ask(target: Target, prepared: Prepared) -> Outcome:
    """What a target does with one case, once, in a process of its own; nobody judges it. Raises TargetDown."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    said: list[Outcome] = []
    with contextlib.nullcontext() if target.owns_group else lab.in_use(), contextlib.closing(WarmWorkers()) as warm:
        crew = Crew(target, events, warm, alone=True)
        try:
            crew.submit(Job(prepared, said.append))
            while not said:
                crew.advance(last=True)
                with contextlib.suppress(queue.Empty):
                    event = events.get(timeout=TICK_S)
                    if lane := crew.owner(event):
                        lane.handle(event)
                for lane in crew.lanes:
                    lane.watch(time.monotonic())
        finally:
            crew.kill()
    return said[0]


@dataclass
class _Progress:
    """One case under way: what each target said so far, the bits of what it answered, and what is expected of it."""

    prepared: Prepared
    candidates: tuple[Target, ...]
    waiting_for: int
    opinions: dict[str, Opinion] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)
    expected: dict[str, tuple[Expectation, ...]] = field(default_factory=dict)


class Session:
    """Workers of candidates, baseline and reference that take one case after the other.

    Nothing happens but in `turn`, in the caller's thread. As a context manager it starts the workers, and ends them
    at once when it is left by an exception.
    """

    def __init__(self, plan: Plan, sink: Sink, cache: Cache | None = None, warm: WarmWorkers | None = None) -> None:
        """plan: its cases are the caller's to submit. The others as in `run`."""
        self.under_way = 0
        self._plan = plan
        self._sink = sink
        self._cache = cache or Cache(None)
        self._warm = warm or WarmWorkers()
        self._resources = contextlib.ExitStack()
        self._resources.callback(self._warm.rest)
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._oracles = tuple(t for t in (plan.baseline, plan.reference) if t is not None)
        self._crews = {t.name: self._crew(t) for t in (*plan.candidates, *self._oracles, *plan.below.values())}
        self._confirming: dict[str, Crew] = {}
        self._alone: dict[str, Crew] = {}
        cores = os.cpu_count() or 1
        self._preparation = Preparation(self._cache, self._events, self._warm, min(plan.jobs or cores, cores) - 1)
        self._opinions: dict[str, Rows | None] = {}
        self._resources.callback(self._keep_opinions)
        self._declined: set[tuple[str, ...]] = set()
        self._failing: dict[str, set[str]] = {}
        self._last: dict[str, dict[str, str]] = {}
        self._accidents: list[str] = []
        self._same: tuple[Outcome | None, tuple[str, ...], Opinion | None] = (None, (), None)
        self._last_watch = 0.0

    def __enter__(self) -> Self:
        """Start the first worker of each target. Raises TargetDown."""
        self._resources.enter_context(_rare_collections())
        if any(not crew.target.owns_group for crew in self._crews.values()):
            self._resources.enter_context(lab.in_use())
        try:
            for crew in self._crews.values():
                crew.start()
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
                for crew in self._every_crew():
                    crew.close()
                self._preparation.close()
                for target in self._plan.candidates if self._last else ():
                    run_history.keep_statuses(self._cache, target, self._last[target.name])
                for crew in self._crews.values():
                    if crew.sizing.is_known:
                        run_history.keep_pack_size(self._cache, crew.target, crew.sizing.best)
            else:
                self._kill()

    @property
    def facts(self) -> Facts:
        """What each target's worker says of itself."""
        return {name: crew.facts for name, crew in self._crews.items()}

    @property
    def ready(self) -> bool:
        """Whether every target has answered its greeting."""
        return all(crew.facts for crew in self._crews.values())

    def notes(self) -> Iterator[str]:
        """What happened that belongs to no case, in words."""
        yield from self._accidents
        for crew in self._crews.values():
            for incident in crew.incidents:
                if not self._failing.get(crew.target.name, set()).intersection(incident.cases):
                    count, first = len(incident.cases), incident.cases[0]
                    yield (
                        f"{crew.target.name}: a session of {count} cases failed and none of them does alone "
                        f"({first} and {count - 1} more): {incident.why}"
                    )

    def has_room(self) -> bool:
        """Whether another case may be submitted without piling up."""
        return self.under_way < IN_PROGRESS

    def submit(self, case: Case) -> None:
        """Take a case in, unless every candidate has recorded it; one that cannot be built is `skipped`."""
        if self._candidates(case):
            self.under_way += 1
            self._preparation.add(case)

    def turn(self, more: bool = False, wait: bool = True) -> None:
        """Do what can be done now, wait for what happens next, and act on it.

        more: further cases will be submitted before anything is waited for, so a pack may wait for them.
        wait: False to act only on what has happened already.
        Raises TargetDown when a target goes down for good.
        """
        if not more:
            self._preparation.look_up()
        self._preparation.help()
        self._begin()
        none_left = not (self._preparation.is_busy or self._preparation.ready)
        for crew in self._every_crew():
            crew.advance(last=none_left and not more)
        if none_left and more:
            self._rouse()
        if not self._handle_events(wait and not (self._preparation.has_work or self._can_begin)):
            self._preparation.work()
        now = time.monotonic()
        if now - self._last_watch >= TICK_S:
            self._last_watch = now
            for lane in self._every_lane():
                lane.watch(now)

    def _rouse(self) -> None:
        """Have crews that do nothing take what they have: no more can come before something of this is done."""
        self._preparation.look_up()
        while self._can_begin:
            self._begin()
        for crew in self._every_crew():
            if not any(lane.is_busy for lane in crew.lanes):
                crew.advance(last=True)

    def _candidates(self, case: Case) -> tuple[Target, ...]:
        """The candidates that have not recorded the case."""
        if not self._plan.done:
            return self._plan.candidates
        return tuple(t for t in self._plan.candidates if (t.name, case.id) not in self._plan.done)

    @property
    def _can_begin(self) -> bool:
        """Whether `_begin` would do anything."""
        return bool(self._preparation.ready) and self.ready

    def _begin(self) -> None:
        """Hand some prepared cases to the targets, with what is remembered of them, once all targets have answered:
        the first sessions run while later ones are made up."""
        if not self._can_begin:
            return
        ready = self._preparation.ready
        batch = [ready.popleft() for _ in range(min(AT_ONCE, len(ready)))]
        self._remember_who()
        shelves = {shelf(one.case) for one in batch if isinstance(one, Prepared)}
        past = {name: rows.of(shelves) for name, rows in self._opinions.items() if rows}
        for one in batch:
            if isinstance(one, Prepared):
                self._ask_targets(one, past)
                continue
            for target in self._candidates(one.case):
                self._sink(verdict.unbuilt(one, target))
            self.under_way -= 1

    def _remember_who(self) -> None:
        """Take down, once, what the oracles' answers depend on; a candidate is always asked anew."""
        candidates = {t.name for t in self._plan.candidates}
        for target in self._plan.candidates if not self._last else ():
            self._last[target.name] = run_history.statuses(self._cache, target)
        for target in self._oracles:
            if target.name not in self._opinions and target.name not in candidates:
                facts = self._crews[target.name].facts
                self._opinions[target.name] = run_history.opinions(self._cache, target, facts)

    def _keep_opinions(self) -> None:
        for rows in self._opinions.values():
            if rows:
                rows.write()

    def _ask_targets(self, prepared: Prepared, past: Mapping[str, Mapping[str, Shelf]]) -> None:
        """past: target name -> shelf -> digest -> the row of what was said the last time."""
        candidates = self._candidates(prepared.case)
        targets = {target.name: target for target in (*candidates, *self._oracles)}
        progress = _Progress(prepared, candidates, len(targets))
        for name, target in targets.items():
            row = past[name].get(shelf(prepared.case), {}).get(prepared.digest) if name in past else None
            if row is not None:
                with contextlib.suppress(ValueError):
                    self._settle(progress, target, *run_history.from_row(name, row), remembered=True)
                    continue
            progress.expected[name] = expected = target.expected(prepared.case.id)
            if verdict.predicted(prepared, target, expected) in ENDS_WORKER:
                self._alone_crew(target).submit(self._quarantined(progress, target))
                continue
            last = self._last.get(name, {}).get(prepared.case.id, "")
            self._crews[name].submit(self._first_job(progress, target, self.group(prepared, target, last, expected)))

    def group(self, prepared: Prepared, target: Target, last: str, expected: Sequence[Expectation] = ()) -> bytes:
        """With which other cases this one may share a session; empty for none.

        Cases that will probably be declined are only placed, many in one session that may fall back to CPU.
        Not one that must be refused, which refuses the whole model. Not one that will probably fail, with those that
        will not. And cases with an empty output keep to themselves: fetched beside one, DirectML's provider returns
        every other output of the session as it found the memory (docs/findings.md).
        last: the status it had in the last run; empty where none is known.
        """
        if prepared.must_be_refused or not prepared.graph:
            return b""
        status = last or verdict.predicted(prepared, target, expected)
        if status == record.UNPLACED and verdict.may_be_placed_only(prepared, target, self._crews[target.name].facts):
            return PLACE_ONLY + prepared.shell
        if self._declined and _kind(prepared, target) in self._declined:
            return b""
        if status != record.PASS and status not in TOGETHER:
            return b""
        return b"%s %s %s" % (status.encode(), prepared.emptiness, prepared.shell) if prepared.emptiness else b""

    def _first_job(self, progress: _Progress, target: Target, group: bytes) -> Job:
        def finished(outcome: Outcome) -> None:
            if outcome.kind not in (DONE, PLACED):
                self._failing.setdefault(target.name, set()).add(progress.prepared.case.id)
            if outcome.kind == PLACED and _must_run(progress.prepared, target, outcome):
                self._crews[target.name].submit(self._first_job(progress, target, b""))
                return
            opinion = self._opinion(progress.prepared, target, outcome)
            if opinion.status == record.UNPLACED:
                self._declined.add(_kind(progress.prepared, target))
            is_reference = target is self._plan.reference and target not in progress.candidates
            final = opinion.status == record.PASS or is_reference
            answered_in_a_pack = outcome.shared > 1 and outcome.kind == DONE
            if final or not (answered_in_a_pack or verdict.needs_confirmation(progress.prepared, target, opinion)):
                self._settle(progress, target, opinion, self._bits(progress, target, outcome, opinion))
            else:
                self._confirm(progress, target, outcome)

        return Job(progress.prepared, finished, group, place=group.startswith(PLACE_ONLY))

    def _quarantined(self, progress: _Progress, target: Target) -> Job:
        """The first run of a case that is expected to end its worker, where it takes no other case down; when it does
        what nobody expects, nothing is known of it."""

        def finished(outcome: Outcome) -> None:
            opinion = verdict.opinion(progress.prepared, target, outcome)
            if any(one.covers(opinion) for one in progress.expected[target.name]):
                self._settle(progress, target, opinion, self._bits(progress, target, outcome, opinion))
            else:
                self._crews[target.name].submit(self._first_job(progress, target, b""))

        return Job(progress.prepared, finished)

    def _opinion(self, prepared: Prepared, target: Target, outcome: Outcome) -> Opinion:
        """What `judge.opinion` says; cases that share an outcome, to the last bit, share the opinion as well."""
        if not outcome.exact:
            return verdict.opinion(prepared, target, outcome)
        known, nodes, opinion = self._same
        if known is not outcome or nodes != (prepared.op_type, *prepared.beside):
            opinion = verdict.opinion(prepared, target, outcome)
            self._same = (outcome, (prepared.op_type, *prepared.beside), opinion)
        assert opinion is not None
        return opinion

    def _confirm(self, progress: _Progress, target: Target, first: Outcome) -> None:
        """Run a failing case in a session of its own, in a second worker; what ended the first one, where nothing ran
        before."""

        def finished(second: Outcome) -> None:
            if _say_the_same(progress.prepared, first, second):
                opinion = verdict.opinion(progress.prepared, target, second if first.shared > 1 else first, attempts=2)
                self._settle(progress, target, opinion, self._bits(progress, target, second, opinion))
            elif first.shared > 1:
                self._crews[target.name].submit(self._first_job(progress, target, b""))
            else:
                self._isolate(progress, target, first, second)

        if target.name not in self._confirming:
            self._confirming[target.name] = Crew(target, self._events, self._warm)
        crew = self._alone_crew(target) if first.kind in LOST else self._confirming[target.name]
        crew.submit(Job(progress.prepared, finished))

    def _alone_crew(self, target: Target) -> Crew:
        if target.name not in self._alone:
            self._alone[target.name] = Crew(target, self._events, self._warm, ALONE_AT_ONCE, alone=True)
        return self._alone[target.name]

    def _isolate(self, progress: _Progress, target: Target, first: Outcome, second: Outcome) -> None:
        """Once more where it failed, and twice in a process of its own: that tells `order-dependent` from `flaky`.

        Only the former where the case is expected to be either, and no worker ended.
        """
        again: list[Outcome] = []
        alone: list[Outcome] = []
        known = any(one.status in UNSTEADY for one in progress.expected.get(target.name, ()))
        fresh = 0 if known and not {first.kind, second.kind}.intersection(LOST) else 2

        def into(runs: list[Outcome]) -> Job:
            def finished(outcome: Outcome) -> None:
                runs.append(outcome)
                if len(again) == 1 and len(alone) == fresh:
                    self._conclude_unsteady(progress, target, Attempts(first, second, again[0], tuple(alone)))

            return Job(progress.prepared, finished)

        self._crews[target.name].submit(into(again))
        for _ in range(fresh):
            self._alone_crew(target).submit(into(alone))

    def _conclude_unsteady(self, progress: _Progress, target: Target, attempts: Attempts) -> None:
        """A worker that ended in the smaller part of five runs is no answer of the case: it is noted."""
        prepared, first, steady = progress.prepared, attempts.first, attempts.steady()
        lost = next((outcome for outcome in attempts.in_order() if outcome.kind in LOST), None)
        if lost is not None and steady is not None:
            opinion = verdict.opinion(prepared, target, steady, attempts=len(attempts.in_order()))
            self._accidents.append(
                f"{target.name}: a worker ended while it ran {prepared.case.id} ({lost.message}); "
                f"other runs of it say: {opinion.status}"
            )
            self._settle(progress, target, opinion, self._bits(progress, target, steady, opinion))
            return
        opinion = unsteady(prepared, target, attempts)
        self._settle(progress, target, opinion, self._bits(progress, target, first, opinion))

    def _bits(self, progress: _Progress, target: Target, outcome: Outcome, opinion: Opinion) -> str:
        """The bits of an answer, where somebody will compare them: a failing candidate's, and the reference's."""
        if opinion.status == record.PASS and target is not self._plan.reference:
            return ""
        asked = (*progress.candidates, *self._plan.below.values())
        wanted = opinion.status != record.PASS if target in asked else target is self._plan.reference
        if not wanted:
            return ""
        return progress.prepared.expected_bits if outcome.exact else bits(outcome.outputs) if outcome.outputs else ""

    def _settle(
        self, progress: _Progress, target: Target, opinion: Opinion, answer: str, remembered: bool = False
    ) -> None:
        progress.opinions[target.name] = opinion
        progress.answers[target.name] = answer
        if not remembered and opinion.status in run_history.STEADY and (rows := self._opinions.get(target.name)):
            rows.put(shelf(progress.prepared.case), progress.prepared.digest, run_history.to_row(opinion, answer))
        progress.waiting_for -= 1
        if progress.waiting_for == 0 and self._plan.below:
            self._ask_below(progress)
        if progress.waiting_for == 0:
            self.under_way -= 1
            self._conclude(progress)

    def _ask_below(self, progress: _Progress) -> None:
        """Have the failures explained that can be and are not."""
        for candidate in progress.candidates:
            below = self._plan.below.get(candidate.name)
            failed = progress.opinions[candidate.name].status in explain.EXPLAINED
            if below and failed and not progress.prepared.must_be_refused and below.name not in progress.opinions:
                progress.waiting_for += 1
                self._crews[below.name].submit(self._first_job(progress, below, b""))

    def _direct(self, progress: _Progress, candidate: Target) -> Direct | None:
        """What explains the failure of a candidate."""
        below = self._plan.below.get(candidate.name)
        opinion = progress.opinions[candidate.name]
        if below is None or below.name not in progress.opinions or opinion.status not in explain.EXPLAINED:
            return None
        answers = progress.answers[candidate.name], progress.answers[below.name]
        return explain.explained(opinion, progress.opinions[below.name], bool(answers[0]) and answers[0] == answers[1])

    def _conclude(self, progress: _Progress) -> None:
        prepared, plan = progress.prepared, self._plan
        reference = progress.opinions.get(plan.reference.name) if plan.reference else None
        answers = {reference.target: progress.answers[reference.target]} if reference else {}
        oracles = verdict.second_oracles(prepared, reference)
        for target in progress.candidates:
            opinion = progress.opinions[target.name]
            baseline = None
            if plan.baseline is not None and plan.baseline.name != target.name:
                baseline = progress.opinions[plan.baseline.name]
            failing = opinion.status != record.PASS
            echoes = verdict.echoes(prepared, progress.answers[target.name], answers) if failing else ()
            if failing or verdict.unclaimed(prepared, target) is not None:
                self._last[target.name][prepared.case.id] = opinion.status
            else:
                self._last[target.name].pop(prepared.case.id, None)
            expected, direct = progress.expected[target.name], self._direct(progress, target)
            self._sink(verdict.verdict(prepared, target, opinion, baseline, oracles, echoes, expected, direct))

    def _handle_events(self, wait: bool) -> bool:
        """Act on what has happened; whether anything had. wait: until something does, or a tick has passed."""
        for lane in self._every_lane():
            lane.listen(True)
        self._preparation.listen(True)
        event = self._next_event(wait)
        for lane in self._every_lane():
            lane.listen(False)
        self._preparation.listen(False)
        happened = event is not None
        while event is not None:
            self._handle(event)
            event = self._next_event(wait=False)
        return happened

    def _next_event(self, wait: bool) -> Event | None:
        with contextlib.suppress(queue.Empty):
            return self._events.get(timeout=TICK_S) if wait else self._events.get_nowait()
        return None

    def _handle(self, event: Event) -> None:
        if self._preparation.owns(event):
            self._preparation.handle(event)
            return
        for lane in self._every_lane():
            if lane.owns(event):
                lane.handle(event)
                return

    def _crew(self, target: Target) -> Crew:
        jobs = self._plan.jobs or target.jobs or os.cpu_count() or 1
        if not self._plan.pack or target.pack == 1:
            return Crew(target, self._events, self._warm, jobs)
        size = run_history.pack_size(self._cache, target)
        return Crew(target, self._events, self._warm, jobs, target.pack, size=size)

    def _every_crew(self) -> Iterable[Crew]:
        return (*self._crews.values(), *self._confirming.values(), *self._alone.values())

    def _every_lane(self) -> Iterable[Lane]:
        return (lane for crew in self._every_crew() for lane in crew.lanes)

    def _kill(self) -> None:
        for crew in self._every_crew():
            crew.kill()
        self._preparation.kill()


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Cases and records hold no cycles: looking for some among all that is under way, every few cases, finds none."""
    before = gc.get_threshold()
    gc.set_threshold(max(COLLECT_AFTER, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _must_run(prepared: Prepared, target: Target, placed: Outcome) -> bool:
    """Whether a case that was only placed has to be run: the provider takes it, or its session's record does not say;
    where a function stands for several nodes, these have names of their own."""
    nothing_said = placed.shared > 1 and not placed.assignment
    return nothing_said or not verdict.placement_gap(prepared, target.provider or "", placed)


def _kind(prepared: Prepared, target: Target) -> tuple[str, ...]:
    """What a target takes or declines as one: an operator version with its dtypes."""
    case = prepared.case
    return target.name, case.domain, case.operator, str(case.since_version), case.dtype


def _say_the_same(prepared: Prepared, first: Outcome, second: Outcome) -> bool:
    """Whether a repetition confirms: the same answer, or any two answers where there must be none."""
    must_refuse = prepared.must_be_refused
    return first.signature() == second.signature() or (must_refuse and first.kind == second.kind == DONE)
