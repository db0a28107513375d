"""The trace of a run: sums that add up, and a trace that Perfetto's format describes."""

from __future__ import annotations

import time

import pytest

from epcheck.conformance.scheduling.trace import (
    LOST,
    PREPARING,
    SESSION,
    STARTING,
    WAITING,
    PhaseClock,
    Span,
    Trace,
)


def trace_of_two_targets() -> Trace:
    trace = Trace(begun=10.0)
    for span in (
        Span("dml", 7, STARTING, STARTING, 10.0, 2.0),
        Span("dml", 7, SESSION, "Add and 31 more", 12.5, 1.0, 32),
        Span("dml", 7, LOST, "it hangs", 14.0, 3.0, 1),
        Span("dml", 8, STARTING, STARTING, 17.0, 1.0),
        Span("cpu", 9, SESSION, "Add", 10.0, 0.25, 1),
    ):
        trace.add(span)
    return trace


def test_sums_of_workers_add_up_to_their_lives() -> None:
    dml = trace_of_two_targets().targets()["dml"]
    assert (dml.workers, dml.sessions, dml.cases, dml.lost) == (2, 1, 32, 1)
    assert dml.in_words() == {
        "workers": 2, "sessions": 1, "cases": 32, "lost": 1,
        "starting_s": 3.0, "session_s": 1.0, "lost_s": 3.0, "waiting_s": 1.0,
    }  # fmt: skip


def test_a_trace_has_a_process_for_each_target_and_microseconds() -> None:
    written = trace_of_two_targets().trace_events()
    names = {event["pid"]: event["args"]["name"] for event in written["traceEvents"] if event["ph"] == "M"}
    assert names == {1: "dml", 2: "cpu"}
    session = next(event for event in written["traceEvents"] if event.get("cat") == SESSION)
    assert session == {
        "ph": "X", "name": "Add and 31 more", "cat": "session", "pid": 1, "tid": 7, "ts": 2_500_000, "dur": 1_000_000,
        "args": {"cases": 32},
    }  # fmt: skip


def test_the_runner_s_phases_add_up() -> None:
    started = time.perf_counter()
    clock = PhaseClock()
    clock.enter(PREPARING)
    time.sleep(0.03)
    clock.enter(WAITING)
    time.sleep(0.01)
    clock.enter(PREPARING)
    assert 0.03 <= clock.seconds[PREPARING] < clock.seconds[PREPARING] + clock.seconds[WAITING]
    assert sum(clock.seconds.values()) == pytest.approx(time.perf_counter() - started, abs=0.005)
