"""How long a session may take: by what others took, and never longer than its target says."""

from __future__ import annotations

import pytest

from epcheck.conformance.scheduling.pools.session_times import ENOUGH, Limits, SessionTimes
from epcheck.conformance.scheduling.trace import LOST, SESSION, STARTING, Trace
from epcheck.conformance.targets.target import Target


def limits(target: Target, *sessions: tuple[float, float]) -> Limits:
    times = SessionTimes(target)
    for busy_s, idle_s in sessions:
        times.add_session(busy_s, idle_s, cases=1)
    return times.limits(cases=1)


def target(deadline_s: float = 60.0, forks: bool = False) -> Target:
    return Target("fake", (), (), deadline_s=deadline_s, forks=forks)


def test_before_enough_sessions_are_measured_none_is_given_up_before_the_target_s_deadline() -> None:
    assert limits(target()) == Limits(1.0, 2.0, 60.0, 60.0)
    assert limits(target(forks=True), *[(0.5, 0.5)] * (ENOUGH - 1)) == Limits(1.0, 2.0, 60.0, 60.0)


@pytest.mark.parametrize(("forks", "suspect_s"), [(False, 1.0), (True, 0.1)])
def test_quick_sessions_leave_the_least_limits(forks: bool, suspect_s: float) -> None:
    assert limits(target(forks=forks), *[(0.001, 0.0)] * ENOUGH) == Limits(suspect_s, 2.0, 4.0, 10.0)


def test_slow_sessions_are_given_time_in_proportion() -> None:
    quick = [(0.001, 0.0)] * ENOUGH
    assert limits(target(), *quick, (8.0, 2.5), *quick) == Limits(5.0, 16.0, 5.0, 16.0)


def test_a_slow_session_before_enough_are_measured_counts() -> None:
    assert limits(target(), (3.0, 3.0), *[(0.001, 0.0)] * ENOUGH) == Limits(6.0, 6.0, 6.0, 10.0)


def test_nothing_exceeds_the_target_s_deadline() -> None:
    assert limits(target(deadline_s=5.0), *[(30.0, 30.0)] * ENOUGH) == Limits(5.0, 5.0, 5.0, 5.0)


def test_a_session_of_one_case_is_not_given_the_time_of_packs() -> None:
    times = SessionTimes(target())
    for _ in range(ENOUGH):
        times.add_session(9.0, 0.0, cases=128)
        assert times.limits(cases=1).deadline_s == times.limits(cases=128).deadline_s
        times.add_session(0.01, 0.0, cases=1)
    assert (times.limits(cases=1).deadline_s, times.limits(cases=128).deadline_s) == (10.0, 20.0)
    times.add_session(12.0, 0.0, cases=128)
    assert (times.limits(cases=1).deadline_s, times.limits(cases=128).deadline_s) == (10.0, 24.0)
    times.add_session(7.0, 0.0, cases=1)
    assert times.limits(cases=1) == Limits(1.0, 14.0, 4.0, 14.0)


def test_what_is_measured_goes_into_the_profile() -> None:
    trace = Trace(begun=100.0)
    times = SessionTimes(target(), trace)
    times.trace_start(7, 100.0, 102.0)
    times.trace_session(7, "first", 104.0, 1.5, 32)
    times.lost(7, "it hangs", 104.0, 107.0, 1)
    assert [(span.kind, span.name, span.begun, span.seconds, span.cases) for span in trace.spans] == [
        (STARTING, "starting", 100.0, 2.0, 0), (SESSION, "first", 102.5, 1.5, 32), (LOST, "it hangs", 104.0, 3.0, 1),
    ]  # fmt: skip


def test_a_use_of_sessions_has_the_deadline_of_several_cases_whatever_others_took() -> None:
    times = SessionTimes(target(deadline_s=20.0))
    for _ in range(ENOUGH):
        times.add_session(0.1, 0.0, cases=1)
    plain, used = times.limits(cases=1), times.limits(cases=1, of_use=True)
    assert plain.deadline_s == 10.0
    assert (used.overdue_s, used.deadline_s) == (40.0, 40.0)
    assert (used.suspect_s, used.stalled_s) == (plain.suspect_s, plain.stalled_s)
