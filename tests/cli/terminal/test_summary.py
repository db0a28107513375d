"""The summary of a run in the terminal: failures stand last, accidents are folded, and what never ran is no success."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable
from pathlib import Path

import pytest

from epcheck.api import RunResult
from epcheck.cli.terminal import summary
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.record import Record
from epcheck.reports import Reported
from epcheck.reports.runs.summary import summarize
from tests.reports.stored_records import a_refused_qlinearconv, a_run, a_slice, a_wrong_slice, an_opinion, changed

IDLE = a_slice("int8", status="unplaced", claimed=False)


def result(records: Iterable[Record], notes: tuple[str, ...] = (), **options: object) -> RunResult:
    records = tuple(records)
    run = a_run(len(records), notes=notes)
    reported = Reported(Path("run"), run, summarize(run, records))
    return dataclasses.replace(RunResult.of(reported, strict=False), **options)


def shown(found: RunResult) -> list[str]:
    file = io.StringIO()
    terminal = Terminal(file, width=120)
    summary.show(terminal, found)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_cases_that_never_ran_have_a_column_of_their_own() -> None:
    heading, row = shown(result([a_slice(), IDLE, a_refused_qlinearconv()]))[1:3]
    assert heading.split() == ["operator", "cases", "pass", "expected", "not", "run"]
    assert row.split() == ["QLinearConv", "1", "-", "1", "-"]


def test_of_many_operators_those_with_failures_and_the_sum_are_shown() -> None:
    names = [f"Operator{number:02}" for number in range(summary.OPERATORS + 5)]
    records = [a_slice(operator=name, case_id=f"{name}-13/float32/a[runtime]") for name in names]
    lines = shown(result([*records, a_wrong_slice()]))
    assert [line.split() for line in lines[1:4]] == [
        ["operator", "cases", "pass", "failure"],
        ["Slice", "1", "-", "1"],
        ["all", "31", "operators", "31", "30", "1"],
    ]


def test_causes_of_failures_stand_below_notes_and_above_the_verdict() -> None:
    notes = tuple(f"a worker ended with signal 11 near {a_slice(sample=f's{n}').case_id}" for n in range(30))
    lines = shown(result([a_wrong_slice(), a_wrong_slice("float64")], notes))
    note, cause, evidence, smallest, verdict, report = lines[-6:]
    assert note == f"note {notes[0]} (and 29 more like it)"
    assert cause == (
        "failure Slice (DML_SLICE1_OPERATOR_DESC), 2 cases, mismatch, blame: candidate: wrong values: … of … elements "
        "differ"
    )
    assert evidence == "  all 2 cases"
    assert smallest == f"  smallest: {a_wrong_slice().case.repro}"
    assert verdict == "dml: 2 conformance failures (1 cause), 0 of 2 cases pass."
    assert report == f"Report: {Path('run', 'report.html')}"


def test_accuracy_suspicions_are_listed_and_fail_a_run_that_asks_for_it() -> None:
    opinions = {
        target: dataclasses.replace(an_opinion(target), accuracy=Accuracy(8, error, error, (8,)))
        for target, error in (("dml", 119.0), ("cpu", 0.48))
    }
    record = changed(a_slice(), candidate=opinions["dml"], baseline=opinions["cpu"])
    times = "119 ULP where cpu has 0.48, 238 times as far; 1 of 1 right cases are like this"
    assert f"accuracy suspicion Slice float32: {times}" in shown(result([record]))
    assert [summary.choose_exit_code(result([record], strict_accuracy=asked)) for asked in (False, True)] == [0, 1]


@pytest.mark.parametrize(
    ("strict", "max_flaky", "code"), [(False, None, 0), (True, None, 1), (False, 1, 1), (False, 2, 0), (True, 2, 0)]
)
def test_flaky_cases_have_an_exit_rule_of_their_own(strict: bool, max_flaky: int | None, code: int) -> None:
    flaky = [a_wrong_slice(dtype, status="flaky", reading="flaky") for dtype in ("float16", "float64")]
    found = result([a_slice(), *flaky], strict=strict, max_flaky=max_flaky)
    assert summary.choose_exit_code(found) == code
    lines = shown(found)
    assert ("Flaky cases fail this run. --max-flaky N allows N." in lines) == bool(code)
    assert "dml: no conformance failure, 2 flaky cases, 1 of 3 cases pass." in lines


def test_a_failure_fails_a_run_however_many_flaky_cases_are_tolerated() -> None:
    assert summary.choose_exit_code(result([a_wrong_slice()], max_flaky=9)) == 1
