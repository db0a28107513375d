"""The benchmark of refused sessions: what it runs, and what it makes of workers that ended."""

from __future__ import annotations

from benchmarks import refused_sessions
from epcheck.conformance.scheduling.trace import Span


def span(kind: str, name: str) -> Span:
    return Span("dml", 1, kind, name, 0.0, 0.1, 1)


def test_every_case_must_be_refused() -> None:
    once = refused_sessions.refused_cases()
    assert len(once) > 1000
    assert all(case.sample.startswith("refused_") for case in once)


def test_a_case_that_ends_each_worker_is_told_from_one_that_others_survive() -> None:
    spans = [
        span("starting", "starting"),
        span("lost", "LpPool-2/float32/refused_strides_0[runtime]: the worker process ended: exit code 148"),
        span("lost", "LpPool-2/float32/refused_strides_0_again2[runtime]: the worker process ended: exit code 148"),
        span("session", "Add-7/float32/refused_two_dtypes[runtime]"),
    ]
    text, is_bad = refused_sessions.report(spans)
    assert text.splitlines() == [
        "3 sessions, 2 ended their worker, of which 0 hung",
        "  2 x the worker process ended: exit code 148",
        "ends its worker every time: LpPool-2/float32/refused_strides_0[runtime] (2 sessions)",
    ]
    assert not is_bad
    lost = span("lost", "Add-7/float32/refused_two_dtypes_again2[runtime]: no response, and no CPU time used for 4 s")
    text, is_bad = refused_sessions.report([*spans, lost])
    assert "4 sessions, 3 ended their worker, of which 1 hung" in text
    assert "ended its worker 1 times of 2: Add-7/float32/refused_two_dtypes[runtime]" in text
    assert is_bad


def test_no_session_that_cpu_refuses_ends_its_worker() -> None:
    text, is_bad = refused_sessions.report(refused_sessions.spans_of(refused_sessions.refused_cases()[:40], "cpu"))
    assert text == "40 sessions, 0 ended their worker, of which 0 hung"
    assert not is_bad
