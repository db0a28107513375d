"""The life of a case from its first run to its verdict, as a state machine: events in, actions out.

It has no workers, no queues and no cache: whoever drives it carries out the actions and reports what came of them, so
that every path is tested without a process. Each target that takes part has a state of its own:

    FirstRun ──pass──▶ Settled                     Quarantined ──expected──▶ Settled
       │ failure                                        └──anything else──▶ FirstRun
       ▼
    Confirming ──the same again──▶ Settled
       │ something else           (of a pack: back to FirstRun, in a session of its own)
       ▼
    Isolating ──all repeats──▶ Settled

When every target is settled, the failures that can be explained are: the target below the candidate's provider is run
like any other. Then the case runs in other ways, where those were asked for (`variant_runs`), and is concluded: one
record for each candidate.

A failure is repeated before it is reported: first in a second worker, where other cases ran before it, then, when the
two disagree, in processes where nothing ran before. Answers that depend on what ran before are `order-dependent`,
answers that change with nothing changed are `flaky`. What fails in a pack is repeated in a session of its own. What
ends a worker has to end a second one, in which nothing ran before; what ends fewer than most of five is only noted.
A worker that somebody else ended, by a signal that no fault raises, says nothing of the case: what two of them did not
answer is run three times more. What the reference says is final at once, but for the loss of its worker.
What is expected, with a reason, needs less: the expected deviation is seen once, in whichever session it is; an
expected end of the worker is, too, in a process of its own; and a case that is expected to be unsteady is not run in
processes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

import msgspec

from epcheck.conformance.judging import claim, explain, repeats, variants
from epcheck.conformance.judging.device_limit import lacking_dtype
from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.judging.opinion import opinion, placement_gap
from epcheck.conformance.judging.oracles import echoes, second_oracles
from epcheck.conformance.judging.repeats import LOST, Attempts
from epcheck.conformance.judging.verdict import verdict
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import DONE, PLACED, Outcome, bits
from epcheck.conformance.records.record import Direct, Record
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.scheduling.variant_runs import VariantRuns, Way
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import Target

ENDS_WORKER = (terms.CRASH, terms.TIMEOUT)
"""The statuses of LOST."""

UNSTEADY = (terms.FLAKY, terms.ORDER_DEPENDENT)
"""Statuses of answers that change."""

FRESH_RUNS = 2
"""Runs with nothing before, of a case whose answer changes."""

Judge = Callable[[PreparedCase, Target, Outcome], Opinion]
"""What `opinion.opinion` does."""


class Where(Enum):
    """Where a case is run."""

    SHARED = "in a session of the target's pool, which other cases may share"
    OWN_SESSION = "in a session of its own, in the target's pool"
    SECOND_WORKER = "in a session of its own, in a worker that runs repeats only"
    OWN_PROCESS = "in a process of its own, in which nothing ran before"


class Settled(msgspec.Struct, frozen=True):
    """State: the opinion is final. answer: the bits of the outputs, where somebody compares them; else empty."""

    opinion: Opinion
    answer: str


class Run(msgspec.Struct, frozen=True):
    """Action: run the case on the target, and report it as `Ran`. predicted: the status that it will probably have."""

    target: Target
    where: Where
    predicted: str = ""


class Remember(msgspec.Struct, frozen=True):
    """Action: the opinion of an oracle is final, and the next run may use it."""

    target: Target
    settled: Settled


class Declined(msgspec.Struct, frozen=True):
    """Action: know that the target does not take such a case. dtype: the one that its device lacks, if that is why."""

    target: Target
    dtype: str = ""


class Failed(msgspec.Struct, frozen=True):
    """Action: know that the case fails on the target in a session of its own."""

    target: Target


class Note(msgspec.Struct, frozen=True):
    """Action: tell the reader of the report what belongs to no record."""

    text: str


class Conclude(msgspec.Struct, frozen=True):
    """Action: keep the records, one for each candidate; the case is over."""

    records: tuple[Record, ...]


Action = Run | Remember | Declined | Failed | Note | Conclude


class Ran(msgspec.Struct, frozen=True):
    """Event: what came of `Run`."""

    target: Target
    where: Where
    outcome: Outcome


class FirstRun(msgspec.Struct, frozen=True):
    """State: the case runs where most cases run."""


class Quarantined(msgspec.Struct, frozen=True):
    """State: the case runs where it takes no other case down, since it is expected to end its worker."""


class Confirming(msgspec.Struct, frozen=True):
    """State: the case failed and is run a second time, elsewhere."""

    first: Outcome


class Isolating(msgspec.Struct, frozen=True):
    """State: the first two runs disagree, so the case is run once more where it failed, and with nothing before.

    fresh: how many runs with nothing before there are to be. again, alone: those that are done.
    """

    first: Outcome
    elsewhere: Outcome
    fresh: int
    again: Outcome | None = None
    alone: tuple[Outcome, ...] = ()


State = FirstRun | Quarantined | Confirming | Isolating | Settled

_FIRST_RUN, _QUARANTINED = FirstRun(), Quarantined()


class Stage(Enum):
    """How far a case is, as a whole."""

    RUNNING = "candidates, baseline and reference are not settled"
    EXPLAINING = "they are, and the targets below failing candidates are not"
    VARYING = "all are settled, and the case runs in other ways"
    CONCLUDED = "all are settled, and the records are made"


class CaseLifecycle:
    """One prepared case on its way to its records. `begin` and `handle` return what is to be done next."""

    __slots__ = (
        "_expected", "_held", "_judge", "_plan", "_remembered", "_settled", "_unsettled", "_varied",
        "candidates", "prepared", "stage", "states",
    )  # fmt: skip

    def __init__(self, plan: Plan, prepared: PreparedCase, judge: Judge = opinion) -> None:
        """plan: who takes part, in which role. judge: of first runs."""
        self.prepared = prepared
        self.candidates = plan.remaining(prepared.case)
        self.stage = Stage.RUNNING
        self.states: dict[str, State] = {}
        self._settled: dict[str, Settled] = {}
        self._plan = plan
        self._judge = judge
        self._expected: dict[str, tuple[Expectation, ...]] = {}
        self._unsettled = 0
        self._held: tuple[Target, ...] = ()
        self._remembered: Mapping[str, Settled] = {}
        self._varied: dict[str, VariantRuns] = {}

    def begin(self, remembered: Mapping[str, Settled]) -> list[Action]:
        """Run the case on every target, or first on the candidates, where none of them claims it: nobody need be asked
        what a case comes to that no candidate runs. remembered: target name -> its opinion, from an earlier run."""
        asked = self._plan.map_asked_targets(self.candidates)
        if all(claim.find_unclaimed(self.prepared, target) is not None for target in self.candidates):
            self._held = tuple(target for name, target in asked.items() if name in self._plan.pure_oracles)
            self._remembered = remembered
        return (
            self._first_runs([t for t in asked.values() if t not in self._held], remembered) or self._act_on_settled()
        )

    def _first_runs(self, targets: Sequence[Target], remembered: Mapping[str, Settled]) -> list[Action]:
        actions: list[Action] = []
        prepared, states = self.prepared, self.states
        for target in targets:
            name = target.name
            if name in remembered:
                states[name] = self._settled[name] = remembered[name]
                continue
            self._expected[name] = expected = target.find_expectations(prepared.facts)
            predicted = claim.predicted_status(prepared, target, variants.ordinary(expected))
            if predicted in ENDS_WORKER:
                states[name] = _QUARANTINED
                actions.append(Run(target, Where.OWN_PROCESS, predicted))
            else:
                states[name] = _FIRST_RUN
                actions.append(Run(target, Where.SHARED, predicted))
        self._unsettled = len(actions)
        return actions

    def handle(self, event: Ran) -> list[Action]:
        """Take an outcome."""
        target, outcome = event.target, event.outcome
        if self.stage is Stage.VARYING:
            return self._after_variant(target, outcome)
        state = self.states[target.name]
        if state is _FIRST_RUN:  # most are, ten thousand times a second
            return self._after_first_run(target, outcome)
        match state:
            case Quarantined():
                return self._after_quarantine(target, outcome)
            case Confirming(first):
                return self._after_confirmation(target, first, outcome)
            case Isolating():
                return self._after_isolated_run(target, state, event.where, outcome)
        raise AssertionError(f"{target.name} is settled, and ran {self.prepared.case.id} again")

    def _after_first_run(self, target: Target, outcome: Outcome) -> list[Action]:
        if outcome.kind == PLACED and _must_run(self.prepared, target, outcome):
            return [Run(target, Where.OWN_SESSION)]
        judged = self._judge(self.prepared, target, outcome)
        if judged.status == terms.PASS and outcome.kind == DONE:
            return self._settle(target, judged, outcome)
        needs_repeat = self._needs_repeat(target, outcome, judged)
        if outcome.kind == PLACED and needs_repeat:  # a refusal that nobody expects: its own session says why
            return [Run(target, Where.OWN_SESSION)]
        actions: list[Action] = []
        if outcome.kind not in (DONE, PLACED):
            actions.append(Failed(target))
        dtype = lacking_dtype(judged)
        if dtype or judged.status == terms.UNPLACED:
            actions.append(Declined(target, dtype))
        if needs_repeat:
            self.states[target.name] = Confirming(outcome)
            where = Where.OWN_PROCESS if outcome.kind in LOST else Where.SECOND_WORKER
            return [*actions, Run(target, where)]
        return actions + self._settle(target, judged, outcome)

    def _needs_repeat(self, target: Target, outcome: Outcome, first: Opinion) -> bool:
        """Whether a first opinion is not final; what the reference says is, since nobody reports on it."""
        if first.status == terms.PASS:
            return False
        if self._is_reference(target):
            return outcome.kind in LOST
        if outcome.kind not in LOST and self._is_expected(target, first):
            return False
        answered_in_a_pack = outcome.shared > 1 and outcome.kind == DONE
        return answered_in_a_pack or repeats.needs_confirmation(self.prepared, target, first)

    def _is_expected(self, target: Target, judged: Opinion) -> bool:
        """Whether an expectation of the target covers the opinion."""
        return any(expectation.covers(judged) for expectation in self._expected.get(target.name, ()))

    def _after_quarantine(self, target: Target, outcome: Outcome) -> list[Action]:
        """When the case does what nobody expects, nothing is known of it."""
        judged = opinion(self.prepared, target, outcome)
        if self._is_expected(target, judged):
            return self._settle(target, judged, outcome)
        self.states[target.name] = _FIRST_RUN
        return [Run(target, Where.OWN_SESSION)]

    def _after_confirmation(self, target: Target, first: Outcome, second: Outcome) -> list[Action]:
        was_packed = first.shared > 1
        from_outside = any(map(repeats.was_ended_from_outside, (first, second)))
        if self._is_reference(target) and second.kind not in LOST:
            return self._settle(target, opinion(self.prepared, target, second, attempts=2), second)
        if not from_outside and repeats.confirms(self.prepared, first, second):
            judged = opinion(self.prepared, target, second if was_packed else first, attempts=2)
            return self._settle(target, judged, second)
        if was_packed:
            self.states[target.name] = _FIRST_RUN
            return [Run(target, Where.OWN_SESSION)]
        is_known = any(expectation.status in UNSTEADY for expectation in self._expected.get(target.name, ()))
        fresh = 0 if is_known and not {first.kind, second.kind}.intersection(LOST) else FRESH_RUNS
        self.states[target.name] = Isolating(first, second, fresh)
        return [Run(target, Where.OWN_SESSION), *[Run(target, Where.OWN_PROCESS)] * fresh]

    def _after_isolated_run(self, target: Target, state: Isolating, where: Where, outcome: Outcome) -> list[Action]:
        if where is Where.OWN_PROCESS:
            state = msgspec.structs.replace(state, alone=(*state.alone, outcome))
        else:
            state = msgspec.structs.replace(state, again=outcome)
        self.states[target.name] = state
        if state.again is None or len(state.alone) < state.fresh:
            return []
        attempts = Attempts(state.first, state.elsewhere, state.again, state.alone)
        judged, answer, accident = repeats.judge_attempts(self.prepared, target, attempts)
        return [*([Note(accident)] if accident else []), *self._settle(target, judged, answer)]

    def _settle(self, target: Target, judged: Opinion, outcome: Outcome) -> list[Action]:
        """outcome: whose outputs are compared with those of others."""
        settled = Settled(judged, self._bits(target, judged, outcome))
        self.states[target.name] = self._settled[target.name] = settled
        self._unsettled -= 1
        after = [] if self._unsettled else self._act_on_settled()
        is_kept = target.name in self._plan.pure_oracles and not repeats.was_ended_from_outside(outcome)
        return [Remember(target, settled), *after] if is_kept else after

    def _bits(self, target: Target, judged: Opinion, outcome: Outcome) -> str:
        """The bits of an answer, where somebody will compare them: the reference's, and those of a failure."""
        if judged.status == terms.PASS:
            wanted = self._is_reference(target) or self._plan.find_variants(target, self.prepared.case.id) is not None
        else:
            wanted = target is not self._plan.baseline or target in (*self.candidates, *self._plan.below.values())
        if not wanted:
            return ""
        return self.prepared.expected_bits if outcome.exact else bits(outcome.outputs) if outcome.outputs else ""

    def _is_reference(self, target: Target) -> bool:
        """Whether a target is the reference, and no candidate."""
        if target is not self._plan.reference:
            return False
        return target.name in self._plan.pure_oracles or all(target.name != other.name for other in self.candidates)

    def _act_on_settled(self) -> list[Action]:
        """Ask the oracles that were not asked, if a candidate runs the case after all; have explained what can be, then
        run in other ways what is to be; then conclude."""
        if self._held and any(self._settled[t.name].opinion.status != terms.UNPLACED for t in self.candidates):
            held, self._held = self._held, ()
            if actions := self._first_runs(held, self._remembered):
                return actions
        if self.stage is Stage.RUNNING and self._plan.below and (actions := self._explain()):
            self.stage = Stage.EXPLAINING
            return actions
        if self._plan.variants and (varying := self._vary()):
            self.stage = Stage.VARYING
            return varying
        self.stage = Stage.CONCLUDED
        return [Conclude(self._records())]

    def _vary(self) -> list[Action]:
        """Run the case in the variants of each candidate."""
        actions: list[Action] = []
        for candidate in self.candidates:
            settled = self._settled[candidate.name]
            of = self._plan.find_variants(candidate, self.prepared.case.id)
            if of is None:
                continue
            runs = VariantRuns(self.prepared, candidate, of, Way(settled.opinion, settled.answer))
            self._varied[candidate.name] = runs
            actions += _as_actions(runs.begin())
        return actions

    def _after_variant(self, target: Target, outcome: Outcome) -> list[Action]:
        actions = _as_actions(self._varied[target.compiles_for or target.base or target.name].handle(target, outcome))
        if all(runs.is_done for runs in self._varied.values()):
            self.stage = Stage.CONCLUDED
            return [*actions, Conclude(self._records())]
        return actions

    def _explain(self) -> list[Action]:
        """Run the case on the targets below the candidates whose failure they may explain."""
        wanted: dict[str, Target] = {}
        for candidate in self.candidates if not self.prepared.must_be_refused else ():
            below = self._plan.below.get(candidate.name)
            if (
                below
                and below.name not in self.states
                and self._settled[candidate.name].opinion.status in explain.EXPLAINED
            ):
                wanted[below.name] = below
        self._unsettled = len(wanted)
        self.states |= dict.fromkeys(wanted, _FIRST_RUN)
        return [Run(below, Where.OWN_SESSION) for below in wanted.values()]

    def _records(self) -> tuple[Record, ...]:
        """The record of each candidate."""
        plan, settled = self._plan, self._settled
        baseline = settled.get(plan.baseline.name) if plan.baseline else None
        reference = settled.get(plan.reference.name) if plan.reference else None
        answers = {reference.opinion.target: reference.answer} if reference else {}
        oracles = second_oracles(self.prepared, reference.opinion if reference else None)
        records = []
        for candidate in self.candidates:
            judged = settled[candidate.name].opinion
            fails = judged.status != terms.PASS
            evidence = Evidence(
                judged,
                baseline.opinion if baseline and baseline.opinion.target != candidate.name else None,
                oracles,
                echoes(self.prepared, settled[candidate.name].answer, answers) if fails else (),
                self._expected[candidate.name],
                self._explanation(candidate) if fails and plan.below else None,
                self._varied[candidate.name].results() if candidate.name in self._varied else (),
            )
            records.append(verdict(self.prepared, candidate, evidence))
        return tuple(records)

    def _explanation(self, candidate: Target) -> Direct | None:
        """What explains the failure of a candidate."""
        below, settled = self._plan.below.get(candidate.name), self._settled[candidate.name]
        if below is None or below.name not in self._settled or settled.opinion.status not in explain.EXPLAINED:
            return None
        direct = self._settled[below.name]
        same_bits = bool(settled.answer) and settled.answer == direct.answer
        return explain.find_blame(settled.opinion, direct.opinion, same_bits)


def _as_actions(runs: list[tuple[Target, bool]]) -> list[Action]:
    """Runs of variants: alone in a process, or in a session of their own."""
    return [Run(target, Where.OWN_PROCESS if alone else Where.OWN_SESSION) for target, alone in runs]


def _must_run(prepared: PreparedCase, target: Target, placed: Outcome) -> bool:
    """Whether a case that was only placed has to be run: the provider takes it, or its session's record does not say;
    where a function stands for several nodes, these have names of their own."""
    is_unknown = placed.shared > 1 and not placed.assignment
    return is_unknown or not placement_gap(prepared, target.provider or "", placed)
