"""Two runs compared: what counts as a regression and what does not, and which cases are one line."""

from __future__ import annotations

import dataclasses
import random

import pytest

from epcheck.conformance.records.terms import READINGS, STATUSES
from epcheck.reports.diff.classification import (
    APPEARED,
    FLAPPING,
    KINDS,
    NOT_RUN,
    OTHERWISE,
    REGRESSION,
    REPAIRED,
    STILL,
    TOLERATED,
    VANISHED,
    classify,
)
from epcheck.reports.diff.difference import Difference, compare
from epcheck.reports.diff.row import Row
from tests.reports.compared_rows import a_compared_run, a_row


def what(older: tuple[str, str], newer: tuple[str, str]) -> str:
    """The kind of a case with these statuses and readings."""
    (old_status, old_reading), (new_status, new_reading) = older, newer
    return classify(a_row(status=old_status, reading=old_reading), a_row(status=new_status, reading=new_reading))


@pytest.mark.parametrize("status", [s for s in STATUSES if s not in ("pass", "skipped", "flaky")])
@pytest.mark.parametrize("reading", ["ok", "failure", "noted"])
def test_a_pass_that_became_anything_else_is_a_regression(status: str, reading: str) -> None:
    assert what(("pass", "ok"), (status, reading)) == REGRESSION


@pytest.mark.parametrize("older", [r for r in READINGS if r != "failure"])
def test_a_reading_that_became_failure_is_a_regression(older: str) -> None:
    assert what(("refused", older), ("refused", "failure")) == REGRESSION


def test_a_generator_that_fails_now_is_a_regression_though_its_case_is_skipped() -> None:
    assert what(("pass", "ok"), ("skipped", "failure")) == REGRESSION


def test_what_is_skipped_is_not_run() -> None:
    assert what(("pass", "ok"), ("skipped", "ok")) == NOT_RUN


@pytest.mark.parametrize("other", ["pass", "mismatch", "crash"])
def test_a_flaky_case_is_listed_and_is_no_regression(other: str) -> None:
    assert what((other, "ok"), ("flaky", "failure")) == FLAPPING
    assert what(("flaky", "failure"), (other, "failure")) == FLAPPING


def test_a_case_that_its_history_knows_as_flaky_is_no_regression() -> None:
    older, newer = a_row(), a_row(status="mismatch")
    assert classify(older, newer) == REGRESSION
    assert classify(older, newer, flaky=True) == FLAPPING
    assert classify(newer, newer, flaky=True) == STILL


def test_what_is_expected_since_then_is_tolerated() -> None:
    assert what(("mismatch", "failure"), ("mismatch", "expected")) == TOLERATED
    assert what(("pass", "ok"), ("mismatch", "expected")) == TOLERATED


def test_an_expectation_that_was_there_before_hides_nothing() -> None:
    assert what(("pass", "fixed"), ("mismatch", "expected")) == REGRESSION


def test_an_expectation_that_allows_both_is_no_repair() -> None:
    assert what(("mismatch", "expected"), ("pass", "ok")) == TOLERATED
    assert what(("mismatch", "expected"), ("pass", "fixed")) == REPAIRED


def test_what_was_wrong_and_is_right_is_fixed() -> None:
    assert what(("mismatch", "failure"), ("pass", "ok")) == REPAIRED
    assert what(("unplaced", "ok"), ("pass", "noted")) == REPAIRED


def test_a_failure_that_fails_in_another_way_still_fails() -> None:
    assert what(("mismatch", "failure"), ("crash", "failure")) == STILL


def test_what_was_never_good_and_is_no_failure_is_only_changed() -> None:
    assert what(("unplaced", "ok"), ("refused", "ok")) == OTHERWISE
    assert what(("mismatch", "expected"), ("refused", "expected")) == OTHERWISE
    assert what(("skipped", "ok"), ("pass", "ok")) == OTHERWISE


@pytest.mark.parametrize("reading", ["ok", "noted", "fixed"])
def test_nothing_is_said_of_a_case_that_passes_in_both(reading: str) -> None:
    assert what(("pass", "ok"), ("pass", reading)) == ""


def test_a_case_that_only_one_run_has_appeared_or_vanished_or_was_not_reached() -> None:
    assert classify(None, a_row()) == APPEARED
    assert classify(a_row(), None) == VANISHED
    assert classify(a_row(), None, cut_short=True) == NOT_RUN


def test_every_pair_of_verdicts_has_at_most_one_kind() -> None:
    rows = [a_row(status=status, reading=reading) for status in STATUSES for reading in READINGS]
    assert {classify(old, new) for old in rows for new in rows} <= {"", *KINDS}


def test_500_cases_that_broke_in_the_same_way_are_one_group() -> None:
    samples = [(f"start_{number}_step_1", dtype) for number in range(250) for dtype in ("float32", "int8")]
    older = [a_row(sample, dtype=dtype) for sample, dtype in samples]
    newer = [a_row(s, "mismatch", d, reason=f"dml: {n} of 8 {d} differ") for n, (s, d) in enumerate(samples)]
    (group,) = compare(a_compared_run(*older), a_compared_run(*newer)).groups
    assert (group.kind, group.operator, group.sample) == (REGRESSION, "Slice", "start_*_step_*")
    assert (group.older, group.newer, group.blame) == ("pass", "mismatch", "candidate")
    assert (group.versions, group.dtypes, len(group.case_ids)) == ((13,), ("float32", "int8"), 500)


def test_another_reason_status_blame_or_operator_is_another_group() -> None:
    older = [a_row(f"rank_{n}", operator="TopK" if n == 5 else "Slice") for n in range(1, 6)]
    newer = [
        a_row("rank_1", "mismatch"),
        a_row("rank_2", "mismatch", reason="dml: the shape is wrong"),
        a_row("rank_3", "crash"),
        a_row("rank_4", "mismatch", blame="both"),
        a_row("rank_5", "mismatch", operator="TopK"),
    ]
    assert len(compare(a_compared_run(*older), a_compared_run(*newer)).of(REGRESSION)) == 5


def test_what_only_one_run_has_is_one_group_for_an_operator_unless_it_fails() -> None:
    newer = [a_row("rank_1"), a_row("nan_first"), a_row("rank_2", "mismatch")]
    appeared = compare(a_compared_run(), a_compared_run(*newer)).of(APPEARED)
    assert [(g.sample, g.reading, len(g.case_ids)) for g in appeared] == [("rank_*", "failure", 1), ("*", "ok", 2)]


def test_the_key_of_a_group_is_the_same_in_every_comparison() -> None:
    older, newer = [a_row("rank_1"), a_row("rank_2")], [a_row("rank_1", "mismatch"), a_row("rank_2", "mismatch")]
    first = compare(a_compared_run(*older), a_compared_run(*newer))
    second = compare(a_compared_run(*older[1:], run_id="20250301-000000-cccc"), a_compared_run(*newer[1:]))
    assert [group.key for group in first.groups] == [group.key for group in second.groups]


def test_the_order_of_records_does_not_matter() -> None:
    older = [a_row(f"rank_{n}") for n in range(40)]
    newer = [a_row(f"rank_{n}", ("pass", "mismatch", "crash", "flaky")[n % 4]) for n in range(3, 43)]
    shuffled = random.Random(7).sample(newer, len(newer))
    assert compare(a_compared_run(*older), a_compared_run(*newer)) == compare(
        a_compared_run(*older), a_compared_run(*shuffled)
    )


def test_cases_that_an_interrupted_run_did_not_reach_are_not_run() -> None:
    older = [a_row("rank_1"), a_row("rank_2")]
    found = compare(a_compared_run(*older), a_compared_run(older[0], planned=2, status="interrupted"))
    assert [(group.kind, group.case_ids) for group in found.groups] == [(NOT_RUN, (older[1].case_id,))]
    assert not found.newer.is_whole


def test_a_run_that_says_it_is_complete_and_lacks_records_is_not_whole() -> None:
    assert not compare(a_compared_run(a_row()), a_compared_run(a_row(), planned=2)).newer.is_whole
    assert not compare(a_compared_run(a_row()), a_compared_run()).newer.is_whole


def test_the_fingerprints_are_compared() -> None:
    older = a_compared_run(a_row(), targets={"dml": {"adapter": "H200", "driver_version": "565"}})
    newer = a_compared_run(a_row(), targets={"dml": {"adapter": "H200", "driver_version": "570"}})
    found = compare(older, newer)
    assert [str(change) for change in found.changed] == ["driver: 565 → 570"]
    assert found.same_class


def test_two_targets_may_be_compared() -> None:
    found = compare(a_compared_run(a_row()), a_compared_run(a_row(), target="cpu", targets={}))
    assert (found.older.target, found.newer.target, found.same_class, found.compared) == ("dml", "cpu", False, 1)


def test_a_comparison_with_itself_finds_nothing() -> None:
    rows = [a_row(f"rank_{n}", status, reading=reading) for n, status in enumerate(STATUSES) for reading in READINGS]
    unlike = {row.case_id: row for row in rows if row.reading != "failure" and row.status != "flaky"}.values()
    found = compare(a_compared_run(*unlike), a_compared_run(*unlike))
    assert (found.groups, found.accuracy, found.placement, found.changed) == ((), (), (), ())


def test_groups_come_worst_first_and_largest_first() -> None:
    names = ("rank_1", "nan_1", "nan_2", "zero")
    older = [a_row("rank_1"), a_row("nan_1"), a_row("nan_2"), a_row("zero", "mismatch")]
    newer = [a_row(name, "pass" if name == "zero" else "mismatch") for name in names]
    found: Difference = compare(a_compared_run(*older), a_compared_run(*newer))
    assert [(g.kind, g.sample) for g in found.groups] == [
        (REGRESSION, "nan_*"),
        (REGRESSION, "rank_*"),
        (REPAIRED, "zero"),
    ]
    assert found.cases(REGRESSION, REPAIRED) == 4


def test_a_row_has_what_a_comparison_needs_of_a_record() -> None:
    from tests.reports.stored_records import a_wrong_slice, an_opinion

    record = a_wrong_slice()
    two = an_opinion("dml", assignment=(("DmlExecutionProvider", "Slice"), ("DmlExecutionProvider", "Cast")) * 2)
    row = Row.of(dataclasses.replace(record, candidate=two))
    assert (row.case_id, row.operator, row.dtype, row.status) == (record.case_id, "Slice", "float16", "mismatch")
    assert (row.create_s, row.run_s, row.placement) == (0.0061, 0.00098, "DmlExecutionProvider: Cast x2, Slice x2")
