"""Whether a process does anything: for how long it has used no CPU time to speak of."""

from __future__ import annotations

IDLE_SHARE = 0.05
"""Of one core: a process that uses less stands still. Threads that wake up to look around use about a hundredth."""

CLOCK_STEP_S = 0.02
"""CPU time that means nothing, in seconds: systems count it in steps of 10 or 15.6 ms."""


class CpuIdle:
    """The CPU time of a process, looked at now and then. Times are those of time.monotonic()."""

    def __init__(self, now: float, cpu_s: float) -> None:
        """cpu_s: CPU time that the process has used so far."""
        self._since, self._cpu_s = now, cpu_s
        self.longest_s = 0.0

    def idle_s(self, now: float, cpu_s: float) -> float:
        """For how many seconds the process has stood still; the longest of them is kept in `longest_s`. Where it
        has used less than before, a child of it has ended."""
        if abs(cpu_s - self._cpu_s) > CLOCK_STEP_S + IDLE_SHARE * (now - self._since):
            self._since, self._cpu_s = now, cpu_s
        idle_s = now - self._since
        self.longest_s = max(self.longest_s, idle_s)
        return idle_s
