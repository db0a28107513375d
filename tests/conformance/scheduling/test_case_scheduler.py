"""Steady, order-dependent and flaky answers told apart; every opinion in its place; nothing recorded twice."""

from __future__ import annotations

import sys
from dataclasses import replace

import psutil
import pytest

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.conformance.scheduling.case_scheduler import CaseScheduler
from epcheck.conformance.scheduling.plan import AWAITED, Plan
from epcheck.conformance.scheduling.run import ask, run_plan
from epcheck.conformance.targets import condition
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.workers.client import TargetDown
from epcheck.generators.case import BuiltCase, Case
from tests.conformance.small_cases import backend, identities, identity, own_workers, records_of


def test_what_is_always_wrong_is_a_mismatch_confirmed_once() -> None:
    found = records_of([identity("a")], backend("always_wrong"))["a"]
    assert (found.status, found.candidate.attempts, found.reading) == (terms.MISMATCH, 2, terms.FAILURE)
    assert [wrong.got for wrong in found.candidate.differences[0].first] == ["0.0", "1.0"]


def test_what_is_wrong_only_after_another_case_is_order_dependent() -> None:
    records = records_of(identities(8), backend("wrong_after_case_2"))
    statuses = {name: found.status for name, found in records.items()}
    assert statuses.pop("number_5") == terms.ORDER_DEPENDENT
    assert set(statuses.values()) == {terms.PASS}
    reason = records["number_5"].reason
    assert "the result depends on earlier runs (mismatch, pass, mismatch; alone pass, pass)" in reason
    assert records["number_5"].candidate.attempts == 5


def test_what_changes_with_nothing_changed_is_flaky() -> None:
    found = records_of([identity("a")], backend("never_the_same"))["a"]
    assert (found.status, found.blame) == (terms.FLAKY, terms.CANDIDATE)
    assert "the result changes between runs (mismatch, mismatch, mismatch; alone mismatch, mismatch)" in found.reason


UNSTEADY = tuple(Expectation("Identity-*", status, "memory") for status in (terms.FLAKY, terms.ORDER_DEPENDENT))


def test_what_is_expected_to_be_unsteady_is_not_run_alone() -> None:
    never = records_of([identity("a")], backend("never_the_same", expectations=UNSTEADY))["a"]
    assert (never.status, never.reading, never.candidate.attempts) == (terms.FLAKY, terms.EXPECTED, 3)
    assert "the result changes between runs (mismatch, mismatch, mismatch)" in never.reason
    after = records_of(identities(8), backend("wrong_after_case_2", expectations=UNSTEADY))["number_5"]
    assert (after.status, after.candidate.attempts) == (terms.ORDER_DEPENDENT, 3)


def test_an_expected_end_of_the_worker_is_seen_once_where_nothing_ran_before() -> None:
    known = tuple(Expectation(f"Identity-*/number_{n}*", terms.CRASH, "it aborts") for n in (3, 9))
    cases = identities(12)
    aborting = backend("aborts_on_3_and_9", module="packed_backends")
    found = records_of(cases, replace(aborting, expectations=known))
    lost = {name: (r.reading, r.candidate.attempts) for name, r in found.items() if r.status == terms.CRASH}
    assert lost == dict.fromkeys(("number_3", "number_9"), (terms.EXPECTED, 1))
    assert sum(r.status == terms.PASS for r in found.values()) == 10


def test_a_crash_that_was_expected_and_does_not_come_is_no_crash() -> None:
    known = Expectation("Identity-*", terms.CRASH, "it aborted")
    assert records_of([identity("a")], backend("right", expectations=(known,)))["a"].reading == terms.FIXED
    wrong = records_of([identity("a")], backend("always_wrong", expectations=(known,)))["a"]
    assert (wrong.status, wrong.reading, wrong.candidate.attempts) == (terms.MISMATCH, terms.FAILURE, 2)


def test_the_first_cases_do_not_wait_for_those_after_them() -> None:
    """They share sessions with nobody, for the others are not expected to be wrong; a worker that is busy would take
    them last."""
    known = Expectation("Identity-*/first_*", terms.MISMATCH, "it was wrong")
    target = backend("right", module="packed_backends", expectations=(known,), pack=32)
    taken: list[str] = []
    cases = [*(identity(f"first_{number}") for number in range(3)), *identities(800)]
    run_plan(Plan(cases, (target,), jobs=1, first=3), lambda record: taken.append(record.case.sample))
    assert max(taken.index(f"first_{number}") for number in range(3)) < 400
    assert len(set(taken)) == len(taken) == 803


def test_processes_for_one_case_each_wait_until_most_of_the_first_cases_are_recorded() -> None:
    known = tuple(Expectation(f"Identity-*/number_{n}[*]", terms.CRASH, "it aborts") for n in (3, 9))
    aborting = backend("aborts_on_3_and_9", module="packed_backends", expectations=known, pack=8)
    taken: list[str] = []
    first = 2000
    plan = Plan(identities(4000), (aborting,), jobs=1, first=first)
    run_plan(plan, lambda record: taken.append(record.case.sample))
    assert len(set(taken)) == len(taken) == 4000
    assert min(taken.index(f"number_{n}") for n in (3, 9)) >= AWAITED * first


def test_such_processes_start_at_once_where_there_is_nothing_else_to_do() -> None:
    known = Expectation("Identity-*", terms.CRASH, "it aborts")
    aborting = backend("aborts_on_3_and_9", module="packed_backends", expectations=(known,))
    taken: list[str] = []
    run_plan(Plan(identities(12), (aborting,), jobs=1, first=12), lambda record: taken.append(record.status))
    assert sorted(taken) == [terms.CRASH] * 2 + [terms.PASS] * 10


ABSENT = condition.parse({"vendor": "0x10de"})
"""A condition on what no worker of these tests reports."""

PRESENT = condition.parse({"os": "*"})


def test_an_expectation_is_used_where_the_facts_of_the_worker_meet_its_condition() -> None:
    wrong = backend("always_wrong", expectations=(Expectation("*", terms.MISMATCH, "known", when=PRESENT),))
    found = records_of([identity("a")], wrong)["a"]
    assert found.reading == terms.EXPECTED
    assert found.expectation is not None
    assert found.expectation.when == "os is *"


def test_an_expectation_whose_condition_does_not_hold_is_neither_used_nor_fixed() -> None:
    known = Expectation("*", terms.MISMATCH, "known", when=ABSENT)
    wrong = records_of([identity("a")], backend("always_wrong", expectations=(known,)))["a"]
    assert (wrong.reading, wrong.expectation) == (terms.FAILURE, None)
    right = records_of([identity("a")], backend("right", expectations=(known,)))["a"]
    assert (right.reading, right.expectation) == (terms.OK, None)


def test_of_several_expectations_the_first_that_applies_is_used() -> None:
    known = tuple(
        Expectation("*", terms.MISMATCH, reason, when=when)
        for reason, when in (("elsewhere", ABSENT), ("here", PRESENT), ("anywhere", condition.ANYWHERE))
    )
    found = records_of([identity("a")], backend("always_wrong", expectations=known))["a"]
    assert found.expectation == known[1].as_expected()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_an_end_of_the_worker_that_is_expected_elsewhere_is_confirmed() -> None:
    aborting = backend("aborts_always")
    for when, attempts, reading in ((PRESENT, 1, terms.EXPECTED), (ABSENT, 2, terms.FAILURE)):
        known = (Expectation("*", terms.CRASH, "it aborts", when=when),)
        found = records_of([identity("a")], replace(aborting, expectations=known))["a"]
        assert (found.status, found.candidate.attempts, found.reading) == (terms.CRASH, attempts, reading)


def test_the_baseline_is_judged_like_the_candidate() -> None:
    found = records_of([identity("a")], backend("right"), baseline=backend("always_wrong"))["a"]
    assert (found.status, found.blame, found.reading) == (terms.PASS, terms.BASELINE, terms.NOTED)
    assert found.baseline is not None
    assert (found.baseline.status, found.baseline.attempts) == (terms.MISMATCH, 2)


def test_both_wrong_is_said_of_both() -> None:
    wrong = backend("always_wrong")
    found = records_of([identity("a")], wrong, baseline=replace(wrong, name="another"))["a"]
    assert (found.status, found.blame) == (terms.MISMATCH, terms.BOTH)


@pytest.mark.slow
def test_the_reference_is_asked_as_a_further_oracle_and_agrees() -> None:
    found = records_of([identity("a")], backend("right"), reference=resolve("reference"))["a"]
    assert found.oracles == {"reference": "agrees"}


def test_two_candidates_have_a_record_each() -> None:
    taken: list[Record] = []
    run_plan(Plan(identities(3), (backend("right"), backend("always_wrong"))), taken.append)
    names = ("python:faulty_backends:right", "python:faulty_backends:always_wrong")
    assert {(found.candidate.target, found.case.sample): found.status for found in taken} == {
        **{(names[0], f"number_{n}"): terms.PASS for n in range(3)},
        **{(names[1], f"number_{n}"): terms.MISMATCH for n in range(3)},
    }


def test_an_expectation_is_read_and_the_failure_stays_a_failure() -> None:
    known = Expectation("Identity-*/a*", terms.MISMATCH, "it adds one")
    records = records_of([identity("a"), identity("b")], backend("always_wrong", expectations=(known,)))
    assert {name: (found.status, found.reading) for name, found in records.items()} == {
        "a": (terms.MISMATCH, terms.EXPECTED),
        "b": (terms.MISMATCH, terms.FAILURE),
    }


def test_what_is_done_already_is_not_run_again() -> None:
    target, cases, taken = backend("right"), identities(4), list[Record]()
    done = {(target.name, cases[0].id), (target.name, cases[2].id), ("another", cases[1].id)}
    run_plan(Plan(cases, (target,), done=done), taken.append)
    assert sorted(found.case.sample for found in taken) == ["number_1", "number_3"]


def test_a_case_that_cannot_be_built_is_skipped_and_the_others_are_judged() -> None:
    def broken(case: Case) -> BuiltCase:
        raise ZeroDivisionError(f"{case.sample}\nhas no shape")

    records = records_of([identity("a"), replace(identity("b"), builder=broken), identity("c")], backend("right"))
    assert [records[name].status for name in "abc"] == [terms.PASS, terms.SKIPPED, terms.PASS]
    found = records["b"]
    assert (found.reading, found.blame, found.baseline) == (terms.FAILURE, terms.NOBODY, None)
    assert found.reason == "the case cannot be built: ZeroDivisionError: b has no shape"
    assert "in broken" in found.candidate.log_tail


@pytest.mark.slow
def test_the_facts_of_every_worker_come_before_the_first_record() -> None:
    seen: list[object] = []
    plan = Plan(identities(2), (backend("right"),), reference=resolve("reference"))
    run_plan(plan, seen.append, seen.append)
    facts = seen[0]
    assert isinstance(facts, dict)
    assert facts.keys() == {"python:faulty_backends:right", "reference"}
    assert facts["python:faulty_backends:right"]["function"] == "faulty_backends:right"
    assert all(isinstance(item, Record) for item in seen[1:])


@pytest.mark.slow
def test_a_target_that_goes_down_in_the_middle_leaves_what_was_recorded() -> None:
    """Its worker starts once and never again."""
    taken: list[Record] = []
    target = backend("slow", window=1)

    def spoil_the_target_in_the_middle() -> None:
        is_spoiled = False
        with CaseScheduler(Plan((), (target,)), taken.append) as session:
            for case in identities(20):
                session.submit(case)
            while session.under_way:
                session.turn()
                if len(taken) == 3 and not is_spoiled:  # once: a worker that repeats a case lives on
                    is_spoiled = True
                    session._pools.pool(target).supervisors[0]._client.target = replace(
                        target, arguments=("python:nothing:there",)
                    )
                    for child in psutil.Process().children():
                        child.kill()

    with pytest.raises(TargetDown, match="does not start"):
        spoil_the_target_in_the_middle()
    assert [found.status for found in taken] == [terms.PASS] * len(taken)
    assert 3 <= len(taken) < 20


def test_whatever_the_sink_raises_ends_the_run_and_its_workers() -> None:
    def full(_record: Record) -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        run_plan(Plan(identities(3), (backend("right"),)), full)
    assert own_workers() == []


def test_one_case_can_be_asked_without_judging_it() -> None:
    outcome = ask(backend("always_wrong"), prepared_case.of(identity("a", 4).build()))
    assert outcome.outputs["y"].tolist() == [0.0, 5.0]
    assert own_workers() == []
