"""A process stands still when it uses no CPU time to speak of."""

from __future__ import annotations

import pytest

from epcheck.conformance.workers.cpu_idle import CpuIdle


def longest(*looks: tuple[float, float]) -> float:
    """The longest time that a process stood still. looks: (time, CPU time)."""
    activity = CpuIdle(*looks[0])
    for now, cpu_s in looks[1:]:
        activity.idle_s(now, cpu_s)
    return activity.longest_s


def test_no_cpu_time_is_standing_still() -> None:
    activity = CpuIdle(100.0, 5.0)
    assert [activity.idle_s(100.0 + second, 5.0) for second in (0.5, 1.0, 3.0)] == [0.5, 1.0, 3.0]


def test_work_begins_the_time_anew() -> None:
    activity = CpuIdle(0.0, 0.0)
    assert activity.idle_s(1.0, 0.0) == 1.0
    assert activity.idle_s(2.0, 0.9) == 0.0
    assert activity.idle_s(2.5, 0.9) == 0.5
    assert activity.longest_s == 1.0


def test_threads_that_wake_up_to_look_around_are_no_work() -> None:
    assert longest(*((second, 0.01 * second) for second in range(60))) == 59.0


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0, 8.0])
def test_a_share_of_a_core_is_work(share: float) -> None:
    assert longest(*((tick / 5, share * tick / 5) for tick in range(300))) <= 0.6


def test_a_child_that_ends_takes_its_cpu_time_with_it() -> None:
    activity = CpuIdle(0.0, 10.0)
    assert activity.idle_s(1.0, 12.0) == 0.0
    assert activity.idle_s(2.0, 10.1) == 0.0
    assert activity.idle_s(3.0, 10.3) == 0.0
