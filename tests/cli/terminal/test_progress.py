"""The progress of a run: a bar in a terminal, and a line every half minute where there is none."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from epcheck.cli.terminal import progress_log
from epcheck.cli.terminal.progress import SHOWN_FAILURES, TerminalProgress
from epcheck.cli.terminal.progress_log import INTERVAL_S, ProgressLog, Say, duration
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.records.terms import EXPECTED, FAILURE, OK
from tests.command_line import call
from tests.reports.stored_records import a_wrong_slice, an_opinion


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def lines(
    log: ProgressLog, clock: Clock, during: list[list[str]], last_s: float = 0.0, say: Say | None = None
) -> list[str]:
    """The lines of a run in which records with these readings come in each interval; it ends `last_s` after them."""
    found: list[str] = []
    intervals = iter(during)

    def wait(seconds: float) -> bool:
        readings = next(intervals, None)
        if readings is None:
            clock.now += last_s
            return True
        for reading in readings:
            log.take(reading)
        clock.now += seconds
        return False

    log.say_lines(wait, say or found.append)
    return found


def test_a_line_comes_every_half_minute_with_rate_failures_and_time_left() -> None:
    clock = Clock()
    log = ProgressLog(62_053, 0, clock)
    found = lines(log, clock, [[OK] * 12_000, [OK] * 11_998 + [FAILURE, EXPECTED], [FAILURE] * 2])
    assert INTERVAL_S == 30
    assert found == [
        "12,000 of 62,053 cases, 400 cases/s, 0 failures, about 2 min left",
        "24,000 of 62,053 cases, 400 cases/s, 1 failure, about 2 min left",
        "24,002 of 62,053 cases, 267 cases/s, 3 failures, about 2 min left",
    ]


def test_a_run_that_is_shorter_has_no_line() -> None:
    clock = Clock()
    assert lines(ProgressLog(10, 0, clock), clock, [], last_s=INTERVAL_S - 0.1) == []


def test_what_an_earlier_run_did_counts_as_done_and_not_for_the_rate() -> None:
    clock = Clock()
    log = ProgressLog(1000, 900, clock)
    assert lines(log, clock, [[OK] * 30]) == ["930 of 1,000 cases, 1.0 cases/s, 0 failures, about 70 s left"]


def test_a_run_in_which_nothing_happens_has_lines() -> None:
    clock = Clock()
    expected = "0 of 8 cases, 0.0 cases/s, 0 failures, time left unknown"
    assert lines(ProgressLog(8, 0, clock), clock, [[], []]) == [expected, expected]


def test_after_the_last_case_reports_are_written() -> None:
    clock = Clock()
    found = lines(ProgressLog(3, 0, clock), clock, [[OK, OK, FAILURE]])
    assert found == ["3 of 3 cases, 1 failure; writing reports"]


def test_a_log_that_takes_no_more_does_not_end_the_run() -> None:
    def full(_line: str) -> None:
        raise OSError(28, "No space left on device")

    clock = Clock()
    assert lines(ProgressLog(3, 0, clock), clock, [[OK], [OK]], say=full) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.4, "0 s"),
        (89, "89 s"),
        (90, "2 min"),
        (600, "10 min"),
        (5300, "88 min"),
        (5400, "1 h 30 min"),
        (12_000, "3 h 20 min"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


class TerminalFile(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("file", "color", "is_bar"),
    [(io.StringIO(), False, False), (io.StringIO(), True, False), (TerminalFile(), True, True)],
)
def test_a_bar_is_for_terminals_alone(
    file: io.StringIO, color: bool, is_bar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_log, "INTERVAL_S", 0.01)
    with TerminalProgress(Terminal(file, colours=color, width=120)).recording(5, 2) as take:
        take(OK)
        for _ in range(500):
            if "3 of 5" in file.getvalue() or is_bar:
                break
            time.sleep(0.01)
    assert ("3 of 5 cases, " in file.getvalue(), "3/5" in file.getvalue()) == (not is_bar, is_bar)


def test_the_first_failures_are_shown_while_the_run_goes_on() -> None:
    file = io.StringIO()
    terminal = Terminal(file, width=60)
    progress = TerminalProgress(terminal)
    for number in range(SHOWN_FAILURES + 3):
        opinion = an_opinion("dml", status="crash", message=f"exit code {number}")
        for sample in (f"rank_{number}", "of_the_same_cause"):
            reason = "[bold]" + "x" * 200
            progress.report_failure(a_wrong_slice(sample=sample, candidate=opinion, reason=reason, reading="flaky"))
    first, *others, last = file.getvalue().splitlines()
    assert first == f"flaky Slice-13/float16/rank_0[runtime] (mismatch): [bold]{'x' * 154}…"
    assert (len(others), last) == (SHOWN_FAILURES - 1, "further failures are counted only; see the report")


def test_a_short_run_without_a_terminal_says_nothing_of_its_progress(tmp_path: Path) -> None:
    done = call(
        "run",
        "-t",
        "cpu",
        "--baseline",
        "none",
        "--no-reference",
        "--op",
        "Slice",
        "--limit",
        "3",
        "--root",
        str(tmp_path),
    )
    assert done.code == 0
    assert done.out.startswith("cpu")
    assert "cases/s" not in done.out + done.err
