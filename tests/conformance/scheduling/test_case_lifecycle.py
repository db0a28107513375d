"""The life of a case without a process: what is run next after each outcome, and which records come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, PLACED, TIMED_OUT, Outcome
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.case_lifecycle import (
    Action,
    CaseLifecycle,
    Conclude,
    Confirming,
    Declined,
    Failed,
    FirstRun,
    Isolating,
    Note,
    Quarantined,
    Ran,
    Remember,
    Run,
    Settled,
    Stage,
    Where,
)
from epcheck.conformance.scheduling.plan import Plan
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import DML, NO_CLAIMS, Target
from epcheck.generators import suite
from epcheck.generators.claims import Claims
from tests.conformance.small_cases import identity

CANDIDATE, OTHER, BASELINE, REFERENCE = (
    Target(name, (), ()) for name in ("candidate", "other", "baseline", "reference")
)
DIRECT = Target("direct", (), (), calls_directml=True)
PLAN = Plan((), (CANDIDATE,))
CASE = prepared_case.of(identity("a").build())
REFUSAL = prepared_case.of(identity("a", must_refuse=True).build())

SHARED, OWN_SESSION, SECOND_WORKER, OWN_PROCESS = (
    Where.SHARED,
    Where.OWN_SESSION,
    Where.SECOND_WORKER,
    Where.OWN_PROCESS,
)


def answer(*values: float, shared: int = 1) -> Outcome:
    return Outcome(DONE, outputs={"y": np.array(values, np.float32)}, shared=shared)


RIGHT, WRONG, WRONG_OTHERWISE = answer(-1.0, 0.0), answer(-1.0, 5.0), answer(-1.0, 7.0)
RIGHT_IN_A_PACK, WRONG_IN_A_PACK = (replace(outcome, shared=8) for outcome in (RIGHT, WRONG))
REFUSED = Outcome(FAILED, "run", "no such thing")
DECLINED = Outcome(FAILED, "create", "onnxruntime: fallback to CPU EP has been explicitly disabled")
CRASH = Outcome(CRASHED, message="killed by SIGSEGV")
HANG = Outcome(TIMED_OUT, message="no answer")
ENDED_BY_SOMEBODY = Outcome(CRASHED, message="the worker process ended: killed by SIGKILL")


@dataclass
class Driven:
    """A life whose actions are carried out by the test: `pending` are the runs that it wants, in order."""

    life: CaseLifecycle
    pending: list[Run] = field(default_factory=list)
    others: list[Action] = field(default_factory=list)
    records: tuple[Record, ...] = ()

    def take(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Run():
                    self.pending.append(action)
                case Conclude(records):
                    self.records = records
                case _:
                    self.others.append(action)

    def ran(self, target: Target, where: Where, outcome: Outcome) -> None:
        """A run that is wanted has come to an end."""
        found = next(number for number, run in enumerate(self.pending) if (run.target, run.where) == (target, where))
        del self.pending[found]
        self.take(self.life.handle(Ran(target, where, outcome)))

    @property
    def wanted(self) -> list[tuple[str, Where]]:
        return [(run.target.name, run.where) for run in self.pending]

    @property
    def record(self) -> Record:
        (found,) = self.records
        return found


def begun(plan: Plan = PLAN, case: PreparedCase = CASE, remembered: Mapping[str, Settled] | None = None) -> Driven:
    driven = Driven(CaseLifecycle(plan, case))
    driven.take(driven.life.begin(remembered or {}))
    return driven


def expecting(*statuses: str, target: Target = CANDIDATE) -> Plan:
    known = tuple(Expectation("Identity-*", status, "it is a test") for status in statuses)
    return Plan((), (replace(target, expectations=known),))


def run_candidate(plan: Plan, *runs: tuple[Where, Outcome], case: PreparedCase = CASE) -> Driven:
    """The life of a case on the only target of a plan, whose runs come to an end in this order."""
    driven = begun(plan, case)
    (target,) = plan.candidates
    for where, outcome in runs:
        driven.ran(target, where, outcome)
    assert driven.pending == []
    return driven


# The first run


@pytest.mark.parametrize("outcome", [RIGHT, RIGHT_IN_A_PACK])
def test_what_passes_at_once_is_run_once(outcome: Outcome) -> None:
    driven = begun()
    assert driven.wanted == [("candidate", SHARED)]
    assert driven.life.states == {"candidate": FirstRun()}
    driven.ran(CANDIDATE, SHARED, outcome)
    assert (driven.record.status, driven.record.candidate.attempts, driven.others) == (terms.PASS, 1, [])
    assert driven.life.stage is Stage.CONCLUDED


def test_a_refusal_of_what_must_be_refused_passes_and_is_known_to_fail_a_session() -> None:
    driven = run_candidate(PLAN, (SHARED, REFUSED), case=REFUSAL)
    assert (driven.record.status, driven.others) == (terms.PASS, [Failed(CANDIDATE)])


def test_a_case_that_was_only_placed_is_run_where_the_provider_takes_it() -> None:
    provider = replace(CANDIDATE, provider=DML)
    placed = Outcome(PLACED, assignment=((DML, "Identity"),), shared=8)
    driven = begun(Plan((), (provider,)))
    driven.ran(provider, SHARED, placed)
    assert driven.wanted == [("candidate", OWN_SESSION)]
    driven.ran(provider, OWN_SESSION, replace(RIGHT, assignment=((DML, "Identity"),)))
    assert driven.record.status == terms.PASS


def test_a_case_that_was_only_placed_is_run_where_nobody_knows_whose_node_it_is() -> None:
    driven = begun()
    driven.ran(CANDIDATE, SHARED, Outcome(PLACED, assignment=(), shared=8))
    assert driven.wanted == [("candidate", OWN_SESSION)]


def test_a_case_that_was_only_placed_and_that_the_provider_declines_is_not_run() -> None:
    unclaimed = prepared_case.of(suite.case_by_id("TopK-24/float32/defaults[initializer]").build())
    provider = replace(CANDIDATE, provider=DML)
    placed = Outcome(PLACED, assignment=(("CPUExecutionProvider", "TopK"),), shared=8)
    driven = run_candidate(Plan((), (provider,)), (SHARED, placed), case=unclaimed)
    assert (driven.record.status, driven.record.reading) == (terms.UNPLACED, terms.OK)
    assert driven.others == [Declined(provider)]


def test_no_oracle_is_asked_what_a_case_comes_to_that_no_candidate_claims_or_runs() -> None:
    unclaiming = replace(CANDIDATE, provider=DML, claim_table=Claims(DML, {}))
    plan = Plan((), (unclaiming,), BASELINE, REFERENCE)
    remembered = {BASELINE.name: Settled(Opinion(BASELINE.name, terms.MISMATCH), "")}
    driven = begun(plan, remembered=remembered)
    assert driven.wanted == [("candidate", SHARED)]
    driven.ran(unclaiming, SHARED, DECLINED)
    assert (driven.record.status, driven.record.reading, driven.record.blame) == (terms.UNPLACED, "ok", "")
    assert (driven.record.baseline, driven.record.oracles) == (None, {})


def test_oracles_are_asked_as_soon_as_a_candidate_runs_what_it_does_not_claim() -> None:
    unclaiming = replace(CANDIDATE, provider=DML, claim_table=Claims(DML, {}))
    plan = Plan((), (unclaiming,), BASELINE, REFERENCE)
    driven = begun(plan, remembered={BASELINE.name: Settled(Opinion(BASELINE.name, terms.MISMATCH), "")})
    assert driven.wanted == [("candidate", SHARED)]
    driven.ran(unclaiming, SHARED, replace(RIGHT, assignment=((DML, "Identity"),)))
    assert driven.wanted == [("reference", SHARED)]
    driven.ran(REFERENCE, SHARED, RIGHT)
    assert driven.record.baseline == Opinion(BASELINE.name, terms.MISMATCH)
    assert driven.record.oracles["reference"] == "agrees"


def test_oracles_are_asked_at_once_where_another_candidate_claims_the_case() -> None:
    plan = Plan((), (replace(CANDIDATE, provider=DML, claim_table=Claims(DML, {})), OTHER), BASELINE, REFERENCE)
    assert begun(plan).wanted == [(name, SHARED) for name in ("candidate", "other", "baseline", "reference")]


# Confirmation


@pytest.mark.parametrize(
    ("outcome", "where", "status"),
    [
        (WRONG, SECOND_WORKER, terms.MISMATCH),
        (REFUSED, SECOND_WORKER, terms.REFUSED),
        (CRASH, OWN_PROCESS, terms.CRASH),
        (HANG, OWN_PROCESS, terms.TIMEOUT),
    ],
)
def test_a_failure_is_confirmed_once_elsewhere(outcome: Outcome, where: Where, status: str) -> None:
    driven = begun()
    driven.ran(CANDIDATE, SHARED, outcome)
    assert driven.wanted == [("candidate", where)]
    assert driven.life.states == {"candidate": Confirming(outcome)}
    driven.ran(CANDIDATE, where, outcome)
    assert (driven.record.status, driven.record.candidate.attempts) == (status, 2)
    assert driven.record.reading == terms.FAILURE


def test_any_answer_confirms_that_a_case_is_not_refused() -> None:
    driven = run_candidate(PLAN, (SHARED, WRONG), (SECOND_WORKER, WRONG_OTHERWISE), case=REFUSAL)
    assert (driven.record.status, driven.record.candidate.attempts) == (terms.MISMATCH, 2)


def test_a_session_that_fails_is_known_to_fail_by_this_case() -> None:
    driven = run_candidate(PLAN, (SHARED, CRASH), (OWN_PROCESS, CRASH))
    assert driven.others == [Failed(CANDIDATE)]
    assert run_candidate(PLAN, (SHARED, WRONG), (SECOND_WORKER, WRONG)).others == []


def test_what_a_target_declines_is_known_and_confirmed_where_it_promised_to_take_it() -> None:
    key = (CASE.case.domain, CASE.case.operator, CASE.case.since_version)
    types = {constraint: frozenset({dtype}) for constraint, dtype in CASE.types.items()}
    promising = replace(CANDIDATE, provider=DML, claim_table=Claims(DML, {key: types}))
    driven = run_candidate(Plan((), (promising,)), (SHARED, DECLINED), (SECOND_WORKER, DECLINED))
    assert (driven.record.status, driven.record.reading) == (terms.UNPLACED, "failure")
    assert driven.others == [Failed(promising), Declined(promising)]


@pytest.mark.parametrize("table", [None, NO_CLAIMS])
def test_what_a_target_declines_and_never_promised_to_take_is_run_once(table: Claims | None) -> None:
    silent = replace(CANDIDATE, provider="SilentExecutionProvider", claim_table=table)
    driven = run_candidate(Plan((), (silent,)), (SHARED, DECLINED))
    assert (driven.record.status, driven.record.reading) == (terms.UNPLACED, "ok")
    assert driven.others == [Failed(silent), Declined(silent)]


def test_a_dtype_that_the_device_lacks_is_known_and_asked_for_once() -> None:
    message = "[ONNXRuntimeError] : 1 : FAIL : Program Add requires f16 but the device does not support it."
    driven = run_candidate(PLAN, (SHARED, replace(REFUSED, message=message)))
    assert (driven.record.status, driven.record.reading) == (terms.REFUSED, terms.NOTED)
    assert driven.others == [Failed(CANDIDATE), Declined(CANDIDATE, "float16")]


def test_what_fails_in_a_pack_and_alone_is_reported_as_it_is_alone() -> None:
    driven = run_candidate(PLAN, (SHARED, WRONG_IN_A_PACK), (SECOND_WORKER, replace(WRONG, shared=1)))
    assert (driven.record.status, driven.record.candidate.shared) == (terms.MISMATCH, 1)


def test_what_failed_in_a_pack_and_passes_alone_is_begun_anew_in_a_session_of_its_own() -> None:
    driven = begun()
    driven.ran(CANDIDATE, SHARED, WRONG_IN_A_PACK)
    driven.ran(CANDIDATE, SECOND_WORKER, RIGHT)
    assert driven.wanted == [("candidate", OWN_SESSION)]
    assert driven.life.states == {"candidate": FirstRun()}
    driven.ran(CANDIDATE, OWN_SESSION, RIGHT)
    assert (driven.record.status, driven.record.candidate.attempts) == (terms.PASS, 1)


@pytest.mark.parametrize("outcome", [WRONG, WRONG_IN_A_PACK])
def test_an_expected_deviation_is_seen_once(outcome: Outcome) -> None:
    driven = run_candidate(expecting(terms.MISMATCH), (SHARED, outcome))
    assert (driven.record.status, driven.record.reading) == (terms.MISMATCH, terms.EXPECTED)
    assert (driven.record.candidate.attempts, driven.record.candidate.shared) == (1, outcome.shared)


def test_another_deviation_than_the_expected_one_is_confirmed() -> None:
    driven = run_candidate(expecting(terms.REFUSED), (SHARED, WRONG), (SECOND_WORKER, WRONG))
    assert (driven.record.status, driven.record.reading) == (terms.MISMATCH, terms.FAILURE)
    assert driven.record.candidate.attempts == 2


def test_an_error_beyond_the_expected_bound_is_confirmed() -> None:
    known = (Expectation("Identity-*", terms.MISMATCH, "it is a test", bound=2.0),)
    plan = Plan((), (replace(CANDIDATE, expectations=known),))
    driven = run_candidate(plan, (SHARED, WRONG), (SECOND_WORKER, WRONG))
    assert (driven.record.reading, driven.record.candidate.attempts) == (terms.FAILURE, 2)


# Isolation


def isolated(
    first: Outcome, second: Outcome, again: Outcome, *alone: Outcome, plan: Plan = PLAN, case: PreparedCase = CASE
) -> Driven:
    where = OWN_PROCESS if first.kind in (CRASHED, TIMED_OUT) else SECOND_WORKER
    runs = [(SHARED, first), (where, second), (OWN_SESSION, again), *((OWN_PROCESS, outcome) for outcome in alone)]
    return run_candidate(plan, *runs, case=case)


def test_two_runs_that_disagree_are_followed_by_three_more() -> None:
    driven = begun()
    driven.ran(CANDIDATE, SHARED, WRONG)
    driven.ran(CANDIDATE, SECOND_WORKER, RIGHT)
    assert driven.wanted == [("candidate", OWN_SESSION), ("candidate", OWN_PROCESS), ("candidate", OWN_PROCESS)]
    assert driven.life.states == {"candidate": Isolating(WRONG, RIGHT, fresh=2)}


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_it_does_not_matter_which_of_the_three_ends_first(order: tuple[int, ...]) -> None:
    runs = [(OWN_SESSION, WRONG), (OWN_PROCESS, RIGHT), (OWN_PROCESS, RIGHT)]
    driven = run_candidate(PLAN, (SHARED, WRONG), (SECOND_WORKER, RIGHT), *(runs[number] for number in order))
    assert driven.record.status == terms.ORDER_DEPENDENT


def test_what_is_wrong_only_after_others_is_order_dependent() -> None:
    found = isolated(WRONG, RIGHT, WRONG, RIGHT, RIGHT).record
    assert (found.status, found.candidate.attempts) == (terms.ORDER_DEPENDENT, 5)
    assert "depends on earlier runs (mismatch, pass, mismatch; alone pass, pass)" in found.reason


def test_what_changes_with_nothing_changed_is_flaky() -> None:
    assert isolated(WRONG, RIGHT, RIGHT, RIGHT, WRONG).record.status == terms.FLAKY
    found = isolated(WRONG, WRONG_OTHERWISE, RIGHT, RIGHT, WRONG).record
    assert found.status == terms.FLAKY
    assert "the result changes between runs (mismatch, mismatch, pass; alone pass, mismatch)" in found.reason


@pytest.mark.parametrize(("again", "status"), [(WRONG, terms.ORDER_DEPENDENT), (RIGHT, terms.FLAKY)])
def test_what_is_expected_to_be_unsteady_is_not_run_alone(again: Outcome, status: str) -> None:
    driven = isolated(WRONG, RIGHT, again, plan=expecting(terms.FLAKY, terms.ORDER_DEPENDENT))
    assert (driven.record.status, driven.record.reading) == (status, terms.EXPECTED)
    assert driven.record.candidate.attempts == 3


def test_what_is_expected_to_be_unsteady_and_ends_a_worker_is_run_alone() -> None:
    plan = expecting(terms.FLAKY)
    assert isolated(CRASH, RIGHT, WRONG, RIGHT, RIGHT, plan=plan).record.candidate.attempts == 5


def test_a_worker_that_ended_in_the_minority_of_runs_is_an_accident() -> None:
    driven = isolated(CRASH, RIGHT, RIGHT, RIGHT, CRASH)
    assert (driven.record.status, driven.record.candidate.attempts) == (terms.PASS, 5)
    (_, note) = driven.others
    assert note == Note(
        f"candidate: a worker ended while it ran {CASE.case.id} (killed by SIGSEGV); other runs of it say: pass"
    )


def test_a_worker_that_ended_in_most_runs_is_no_accident() -> None:
    driven = isolated(CRASH, RIGHT, CRASH, CRASH, RIGHT)
    assert driven.record.status == terms.FLAKY
    assert driven.others == [Failed(CANDIDATE)]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
def test_two_workers_that_somebody_ended_say_nothing_of_a_case(name: str) -> None:
    ended = Outcome(CRASHED, message=f"the worker process ended: killed by {name}")
    driven = begun()
    driven.ran(CANDIDATE, SHARED, ended)
    driven.ran(CANDIDATE, OWN_PROCESS, ended)
    assert driven.wanted == [("candidate", OWN_SESSION), ("candidate", OWN_PROCESS), ("candidate", OWN_PROCESS)]
    driven.ran(CANDIDATE, OWN_SESSION, ended)
    driven.ran(CANDIDATE, OWN_PROCESS, ended)
    driven.ran(CANDIDATE, OWN_PROCESS, WRONG)
    assert (driven.record.status, driven.record.candidate.attempts) == (terms.MISMATCH, 5)


def test_a_case_that_has_every_worker_ended_from_outside_is_a_crash() -> None:
    driven = isolated(*[ENDED_BY_SOMEBODY] * 5)
    assert (driven.record.status, driven.record.candidate.attempts) == (terms.CRASH, 5)
    assert "killed by SIGKILL" in driven.record.reason


def test_a_worker_that_somebody_ended_does_not_hide_one_that_the_case_ended() -> None:
    assert isolated(ENDED_BY_SOMEBODY, CRASH, RIGHT, CRASH, RIGHT).record.status == terms.FLAKY
    assert isolated(ENDED_BY_SOMEBODY, CRASH, RIGHT, RIGHT, RIGHT).record.status == terms.PASS


# Quarantine


@pytest.mark.parametrize(("status", "outcome"), [(terms.CRASH, CRASH), (terms.TIMEOUT, HANG)])
def test_an_expected_end_of_the_worker_is_seen_once_where_it_takes_nobody_along(status: str, outcome: Outcome) -> None:
    driven = begun(expecting(status))
    assert [where for _, where in driven.wanted] == [OWN_PROCESS]
    assert driven.life.states == {"candidate": Quarantined()}
    driven.ran(driven.pending[0].target, OWN_PROCESS, outcome)
    assert (driven.record.status, driven.record.reading) == (status, terms.EXPECTED)
    assert driven.record.candidate.attempts == 1


def test_a_case_that_does_not_end_its_worker_as_expected_is_begun_anew() -> None:
    driven = begun(expecting(terms.CRASH))
    (target,) = driven.life.candidates
    driven.ran(target, OWN_PROCESS, RIGHT)
    assert driven.wanted == [("candidate", OWN_SESSION)]
    assert driven.life.states == {"candidate": FirstRun()}
    driven.ran(target, OWN_SESSION, RIGHT)
    assert driven.record.reading == terms.FIXED


# Baseline and reference


ALL = Plan((), (CANDIDATE,), BASELINE, REFERENCE)


def test_a_case_is_concluded_when_every_target_is_settled() -> None:
    driven = begun(ALL)
    assert driven.wanted == [("candidate", SHARED), ("baseline", SHARED), ("reference", SHARED)]
    driven.ran(REFERENCE, SHARED, RIGHT)
    driven.ran(CANDIDATE, SHARED, RIGHT)
    assert (driven.records, driven.life.stage) == ((), Stage.RUNNING)
    driven.ran(BASELINE, SHARED, RIGHT)
    assert (driven.record.status, driven.record.oracles) == (terms.PASS, {"reference": "agrees"})


def test_the_baseline_is_confirmed_like_the_candidate_and_the_reference_is_not() -> None:
    driven = begun(ALL)
    driven.ran(CANDIDATE, SHARED, RIGHT)
    driven.ran(REFERENCE, SHARED, WRONG)
    driven.ran(BASELINE, SHARED, WRONG)
    assert driven.wanted == [("baseline", SECOND_WORKER)]
    driven.ran(BASELINE, SECOND_WORKER, WRONG)
    assert (driven.record.blame, driven.record.reading) == (terms.BASELINE, terms.NOTED)
    assert driven.record.oracles["reference"].startswith("disagrees: ")
    assert driven.record.baseline is not None
    assert driven.record.baseline.attempts == 2


def test_the_final_opinions_of_oracles_may_be_remembered_and_those_of_candidates_not() -> None:
    driven = begun(ALL)
    for target in (CANDIDATE, BASELINE, REFERENCE):
        driven.ran(target, SHARED, RIGHT)
    kept = [action for action in driven.others if isinstance(action, Remember)]
    assert [(action.target.name, action.settled.opinion.status) for action in kept] == [
        ("baseline", terms.PASS),
        ("reference", terms.PASS),
    ]
    assert [bool(action.settled.answer) for action in kept] == [False, True]


def test_a_remembered_opinion_is_not_asked_for_again() -> None:
    opinion = Opinion("baseline", terms.MISMATCH, message="it adds one", remembered=True)
    driven = begun(replace(ALL, reference=None), remembered={"baseline": Settled(opinion, "")})
    assert driven.wanted == [("candidate", SHARED)]
    driven.ran(CANDIDATE, SHARED, RIGHT)
    assert driven.record.baseline == opinion
    assert driven.record.blame == terms.BASELINE
    assert driven.others == []


def test_a_target_that_is_candidate_and_baseline_runs_once() -> None:
    driven = begun(Plan((), (CANDIDATE,), CANDIDATE))
    assert driven.wanted == [("candidate", SHARED)]
    driven.ran(CANDIDATE, SHARED, RIGHT)
    assert driven.record.baseline is None
    assert driven.others == []


@pytest.mark.parametrize("first", [ENDED_BY_SOMEBODY, CRASH, HANG])
def test_the_loss_of_the_references_worker_is_no_opinion(first: Outcome) -> None:
    driven = begun(ALL)
    for target in (CANDIDATE, BASELINE):
        driven.ran(target, SHARED, RIGHT)
    driven.ran(REFERENCE, SHARED, first)
    assert driven.wanted == [("reference", OWN_PROCESS)]
    driven.ran(REFERENCE, OWN_PROCESS, WRONG)
    assert driven.record.oracles["reference"].startswith("disagrees: ")


def test_a_reference_that_hangs_twice_has_none_and_that_is_remembered() -> None:
    driven = begun(Plan((), (CANDIDATE,), reference=REFERENCE))
    driven.ran(CANDIDATE, SHARED, RIGHT)
    driven.ran(REFERENCE, SHARED, HANG)
    driven.ran(REFERENCE, OWN_PROCESS, HANG)
    assert driven.record.oracles == {"reference": "cannot: no answer"}
    assert [type(action) for action in driven.others] == [Failed, Remember]


def test_what_somebody_ended_five_times_is_not_remembered() -> None:
    driven = begun(Plan((), (CANDIDATE,), reference=REFERENCE))
    driven.ran(CANDIDATE, SHARED, RIGHT)
    for where in (SHARED, OWN_PROCESS, OWN_SESSION, OWN_PROCESS, OWN_PROCESS):
        driven.ran(REFERENCE, where, ENDED_BY_SOMEBODY)
    assert driven.record.oracles["reference"].startswith("cannot: ")
    assert [type(action) for action in driven.others] == [Failed]


def test_an_answer_that_the_reference_gives_too_is_no_fault_of_the_candidate() -> None:
    driven = begun(ALL)
    driven.ran(CANDIDATE, SHARED, WRONG)
    driven.ran(CANDIDATE, SECOND_WORKER, WRONG)
    driven.ran(BASELINE, SHARED, RIGHT)
    driven.ran(REFERENCE, SHARED, WRONG)
    assert driven.record.blame == terms.ORACLES_DISAGREE


def test_every_candidate_has_a_record_and_one_that_has_recorded_the_case_does_not_run() -> None:
    both = Plan((), (CANDIDATE, OTHER))
    driven = begun(both)
    driven.ran(OTHER, SHARED, RIGHT)
    driven.ran(CANDIDATE, SHARED, RIGHT)
    assert [made.candidate.target for made in driven.records] == ["candidate", "other"]
    rest = begun(replace(both, done={("candidate", CASE.case.id)}))
    assert rest.wanted == [("other", SHARED)]
    rest.ran(OTHER, SHARED, RIGHT)
    assert rest.record.candidate.target == "other"


# Explanation


EXPLAINED = Plan((), (CANDIDATE,), below={"candidate": DIRECT})


def test_a_failure_is_explained_before_the_case_is_concluded() -> None:
    driven = begun(EXPLAINED)
    driven.ran(CANDIDATE, SHARED, WRONG)
    driven.ran(CANDIDATE, SECOND_WORKER, WRONG)
    assert (driven.wanted, driven.life.stage) == ([("direct", OWN_SESSION)], Stage.EXPLAINING)
    driven.ran(DIRECT, OWN_SESSION, RIGHT)
    assert driven.record.direct is not None
    assert (driven.record.direct.blame, driven.record.direct.opinion.status) == (terms.LOWERING, terms.PASS)
    assert driven.life.stage is Stage.CONCLUDED


def test_the_failure_that_explains_is_confirmed_as_well() -> None:
    driven = begun(EXPLAINED)
    driven.ran(CANDIDATE, SHARED, WRONG)
    driven.ran(CANDIDATE, SECOND_WORKER, WRONG)
    driven.ran(DIRECT, OWN_SESSION, WRONG)
    assert driven.wanted == [("direct", SECOND_WORKER)]
    driven.ran(DIRECT, SECOND_WORKER, WRONG)
    assert driven.record.direct is not None
    assert driven.record.direct.blame == terms.BELOW


def test_a_pass_and_a_case_that_must_be_refused_need_no_explanation() -> None:
    assert run_candidate(EXPLAINED, (SHARED, RIGHT)).record.direct is None
    accepted = run_candidate(EXPLAINED, (SHARED, WRONG), (SECOND_WORKER, WRONG), case=REFUSAL)
    assert (accepted.record.status, accepted.record.direct) == (terms.MISMATCH, None)


def test_candidates_with_the_same_target_below_have_it_asked_once() -> None:
    driven = begun(Plan((), (CANDIDATE, OTHER), below={"candidate": DIRECT, "other": DIRECT}))
    for target in (CANDIDATE, OTHER):
        driven.ran(target, SHARED, WRONG)
        driven.ran(target, SECOND_WORKER, WRONG)
    assert driven.wanted == [("direct", OWN_SESSION)]
    driven.ran(DIRECT, OWN_SESSION, RIGHT)
    assert [made.direct and made.direct.blame for made in driven.records] == [terms.LOWERING] * 2


def test_nothing_can_happen_to_a_target_that_is_settled() -> None:
    driven = run_candidate(PLAN, (SHARED, RIGHT))
    with pytest.raises(AssertionError, match="candidate is settled"):
        driven.life.handle(Ran(CANDIDATE, SHARED, RIGHT))
