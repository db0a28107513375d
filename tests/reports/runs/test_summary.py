"""Counting: what is wrong in the same way is one finding, and what was not recorded is never a low score."""

import dataclasses
import gc
import math
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.opinion import Excused
from epcheck.conformance.records.record import Record
from epcheck.reports import Tally, headline, read_records, sample_stem, summarize
from epcheck.reports.dtypes import dtype_order
from epcheck.reports.runs.accuracy import ErrorStatistics
from tests.reports.stored_records import (
    DTYPES,
    a_crashed_topk,
    a_refused_qlinearconv,
    a_run,
    a_slice,
    a_wrong_slice,
    changed,
    stored,
)


def test_the_same_fault_in_many_dtypes_is_one_finding() -> None:
    wrong = [
        a_wrong_slice(dtype, f"start_minus_{n}_step_2", reason=f"dml: output: {n} of 8 elements of {dtype} are wrong")
        for n, dtype in enumerate(DTYPES)
    ]
    (target,) = summarize(a_run(), wrong).targets
    (finding,) = target.findings
    assert finding.sample == "start_*_step_*"
    assert finding.reason == wrong[0].reason
    assert finding.case_ids == tuple(record.case_id for record in wrong)
    assert finding.dtypes[:3] == ("float16", "float32", "float64")


def test_a_tally_keeps_no_record(tmp_path: Path) -> None:
    tally, alive = Tally(), []
    for record in read_records(stored(tmp_path / "run", [a_slice(), *map(a_wrong_slice, DTYPES), a_crashed_topk()])):
        tally.add(record)
        alive += map(weakref.ref, (record, record.case, record.candidate))
    del record
    gc.collect()
    assert [reference for reference in alive if reference() is not None] == []
    assert tally.summary(a_run()).by_reading == {"ok": 1, "failure": len(DTYPES) + 1}


def test_the_numbers_in_a_reason_do_not_make_another_finding() -> None:
    wrong = [a_wrong_slice(reason=f"k = {k} must be within [0, 7]") for k in ("-1", "9223372036854775807", "1.5e+10")]
    (target,) = summarize(a_run(), wrong).targets
    assert len(target.findings) == 1


def test_another_status_blame_or_operator_is_another_finding() -> None:
    wrong = a_wrong_slice()
    records = [
        wrong,
        dataclasses.replace(wrong, blame="both"),
        dataclasses.replace(wrong, status="flaky"),
        a_crashed_topk(),
    ]
    (target,) = summarize(a_run(), records).targets
    assert len(target.findings) == 4


def test_findings_come_worst_and_largest_first() -> None:
    records = [a_refused_qlinearconv(), a_crashed_topk(), a_wrong_slice("float16"), a_wrong_slice("float32")]
    (target,) = summarize(a_run(), records).targets
    assert [(f.reading, f.operator, len(f.case_ids)) for f in target.findings] == [
        ("failure", "Slice", 2),
        ("failure", "TopK", 1),
        ("expected", "QLinearConv", 1),
    ]


def test_the_order_of_the_journal_is_not_that_of_the_findings() -> None:
    """Two lines of a journal in each other's place gave another report (benchmarks/attacks/corruptions.py)."""
    records = [a_crashed_topk(), a_wrong_slice("float16"), a_refused_qlinearconv()]
    ((there,), (back,)) = (summarize(a_run(), order).targets for order in (records, records[::-1]))
    assert [finding.operator for finding in there.findings] == ["Slice", "TopK", "QLinearConv"]
    assert there.findings == back.findings


@pytest.mark.parametrize(
    ("sample", "stem"),
    [
        ("start_minus_1_step_2", "start_*_step_*"),
        ("end_int32_max_plus_1_step_1", "end_*_step_*"),
        ("whole_axis_step_minus_int64_max", "whole_axis_step_*"),
        ("end_minus_length_step_1", "end_*_step_*"),
        ("rank_8_last_axis", "rank_*_last_axis"),
        ("per_channel", "per_channel"),
        ("int32_indices", "int32_indices"),
        ("conv2d", "conv2d"),
    ],
)
def test_a_stem_is_the_name_without_its_numbers(sample: str, stem: str) -> None:
    assert sample_stem(sample) == stem


def test_a_matrix_cell_counts_passes_and_takes_the_worst_reading() -> None:
    idle = a_slice("int8", status="unplaced", claimed=False)
    (target,) = summarize(a_run(), [a_slice("float16"), a_wrong_slice("float16"), a_slice("int64"), idle]).targets
    assert [(c.operator, c.since_version, c.dtype, c.passes, c.total, c.worst) for c in target.matrix] == [
        ("Slice", 13, "float16", 1, 2, "failure"),
        ("Slice", 13, "int8", 0, 1, "not-run"),
        ("Slice", 13, "int64", 1, 1, "ok"),
    ]


def test_dtypes_are_sorted_by_kind_and_width() -> None:
    dtypes = ["uint8", "bool", "int64", "float64", "float16", "int8", "uint8-int8-uint8", "bfloat16"]
    assert sorted(dtypes, key=dtype_order)[:5] == ["float16", "float64", "bfloat16", "int8", "int64"]


def test_the_headline_counts_failures_and_their_causes() -> None:
    run = a_run(4)
    records = [a_slice(), a_wrong_slice("float16"), a_wrong_slice("float64"), a_refused_qlinearconv()]
    assert headline(run, summarize(run, records)) == (
        "dml: 2 conformance failures (1 cause), 1 expected deviation (1 cause), 1 of 4 cases pass."
    )


def test_passes_by_a_published_floor_alone_are_counted() -> None:
    floor = Excused("y", 2, 5, 640.0, 4.0, "a table", 0.0008, (3,), "0.1", "0.1004")
    noted = a_slice(sample="sine", reading="noted")
    noted = replace(noted, candidate=replace(noted.candidate, excused=(floor,)))
    summary = summarize(run := a_run(2), [a_slice(), noted])
    assert summary.targets[0].excused == 1
    assert headline(run, summary) == (
        "dml: no conformance failure, 1 remark, 2 of 2 cases pass (1 only within a published absolute tolerance)."
    )
    assert [cause.text for cause in summary.targets[0].causes] == [
        "right only within a published absolute tolerance: a table"
    ]


def test_the_headline_of_a_conforming_run() -> None:
    run = a_run(1)
    assert headline(run, summarize(run, [a_slice()])) == "dml: no conformance failure, 1 of 1 cases pass."


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ("failed: no adapter", "Nothing ran (0 of 500 cases): the run failed: no adapter."),
        ("interrupted", "Nothing ran (0 of 500 cases): the run was interrupted."),
        ("running", "Nothing ran (0 of 500 cases): the run has not finished."),
    ],
)
def test_a_run_without_records_is_not_a_run_without_passes(status: str, says: str) -> None:
    run = a_run(500, status=status)
    assert headline(run, summarize(run, [])) == says


def test_an_incomplete_run_says_so_first() -> None:
    run = a_run(10, status="interrupted")
    summary = summarize(run, [a_slice()])
    assert summary.missing == 9
    assert headline(run, summary).startswith("Incomplete (1 of 10 cases): the run was interrupted. dml: ")


def test_a_run_in_which_nothing_was_placed_proves_nothing() -> None:
    run = a_run(2)
    idle = [a_slice("int8", status="unplaced"), a_slice("int16", status="skipped")]
    assert (
        headline(run, summarize(run, idle))
        == "dml: nothing proven, 0 of 2 cases pass, 2 not applicable (the provider does not take them)."
    )


def test_a_candidate_without_any_record_is_named() -> None:
    run = a_run(2, candidates=("dml", "dml-nvidia"))
    assert "dml-nvidia: no case recorded." in headline(run, summarize(run, [a_slice()]))


def test_accuracy_is_summed_up_by_operator_and_dtype_over_versions_and_cases() -> None:
    exact, rounded = Accuracy(50, 0.4, 10.0, (50,)), Accuracy(49, 2.0, 60.0, (40, 0, 9))
    wrong = Accuracy(1, math.inf, 0.0, (*[0] * 25, 1))

    def measured(version: int, candidate: Accuracy | None, baseline: Accuracy | None, **changes: object) -> Record:
        record = a_slice("float32")
        assert record.baseline is not None
        return dataclasses.replace(
            record,
            case=changed(record, since_version=version, rounded=exact).case,
            candidate=dataclasses.replace(record.candidate, accuracy=candidate),
            baseline=dataclasses.replace(record.baseline, accuracy=baseline),
            **changes,  # type: ignore[arg-type]
        )

    records = [measured(10, rounded, None), measured(13, None, None), measured(13, wrong, rounded)]
    (target,) = summarize(a_run(), records).targets
    (profile,) = target.accuracy
    assert (profile.operator, profile.dtype) == ("Slice", "float32")
    assert profile.candidate == ErrorStatistics(elements=100, max=math.inf, p99=2.0, mean=0.7)
    assert profile.baseline == ErrorStatistics(elements=149, max=2.0, p99=2.0, mean=80 / 149)


def test_accuracy_of_what_has_no_bound_in_ulp_is_nothing() -> None:
    (target,) = summarize(a_run(), [a_slice()]).targets
    assert target.accuracy == ()
