"""How many workers a target has whose number is measured: what was measured, when to stop, and which number pays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import psutil

from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.client import WORN

GAIN = 1.03
"""How many times as many sessions a second twice as many workers have to do, or they are not worth their memory. A run
gains more than the session that is measured, since it compiles shaders as well: on an H200 on which 4 workers did 1.04
to 1.16 times as many of these sessions as 2, they did the whole suite in 193 seconds in place of 224."""

SOFTWARE = ("llvmpipe", "lavapipe", "swiftshader", "basic render")
"""What the names of software adapters contain."""

ON_SOFTWARE = 2
"""Workers of a software adapter, which uses all cores while shaders run, and one while a session is made: half of the
time. On 2 cores the whole suite takes 288 seconds with 2 and 362 with 1."""

DESCRIBING = ("adapter", "vendor_id", "device_id", "driver_version", "graphics_stack", "onnxruntime", "directml")
"""The facts of a worker that the best number depends on."""

Rates = Mapping[int, float]
"""Number of workers -> sessions a second of all of them together, in the order in which it was measured."""


def most(target: Target) -> int:
    """How many workers can be worth measuring on this machine: no more than there are cores, and as many as fit into
    the memory that is free when each takes all that it may."""
    fitting = int(psutil.virtual_memory().available / (WORN * target.memory_bytes))
    return max(1, min(os.cpu_count() or 1, fitting))


def is_software(facts: Mapping[str, str]) -> bool:
    """Whether the worker's adapter is a program on the processor."""
    adapter = facts.get("adapter", "").lower()
    return any(name in adapter for name in SOFTWARE)


def describe_machine(facts: Mapping[str, str]) -> dict[str, str]:
    """What measurements belong to: they hold wherever this is equal."""
    return {"cores": str(os.cpu_count()), **{name: facts[name] for name in DESCRIBING if name in facts}}


def best(rates: Rates) -> int:
    """The number that pays: the last that did GAIN times as much as the one before it; 1 where nothing is known."""
    found, before = 1, 0.0
    for workers, rate in rates.items():
        if rate < GAIN * before or rate <= 0:
            break
        found, before = workers, rate
    return found


def following(rates: Rates, at_most: int) -> int | None:
    """The number that is measured next: twice the last one; None where that one did not pay, or was the last."""
    if not rates:
        return 1
    last = max(rates)
    return 2 * last if best(rates) == last and rates[last] > 0 and 2 * last <= at_most else None


def rate(answers: Sequence[Sequence[float]]) -> float:
    """Sessions a second of workers that are never idle, each worker's by the time from its first answer to its last.

    answers: of each worker, when its sessions ended, in seconds. A worker with fewer than two adds nothing.
    """
    return sum(
        (len(times) - 1) / (times[-1] - times[0]) for times in answers if len(times) > 1 and times[-1] > times[0]
    )


def in_words(target: Target, facts: Mapping[str, str], workers: int, rates: Rates) -> str:
    """`dml: 2 workers (measured on NVIDIA H200: 11.7, 15.4, 14.3 sessions/s with 1, 2, 4)`."""
    adapter = f" on {facts['adapter']}" if "adapter" in facts else ""
    measured = ", ".join(f"{rate:.3g}" for rate in rates.values())
    numbers = ", ".join(map(str, rates))
    plural = "worker" if workers == 1 else "workers"
    return f"{target.name}: {workers} {plural} (measured{adapter}: {measured} sessions/s with {numbers})"
