"""How long the runs of a session take, and each of its nodes."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LEAST, MOST = 5, 200
"""Runs that are timed, however long or short they are."""

PROFILED = 3
"""Runs of the session whose nodes are timed; the first is left out."""


def runs(run: Callable[[], Any], seconds: float) -> list[float]:
    """The seconds that each run takes, one after the other, until that time is up."""
    taken: list[float] = []
    until = time.perf_counter() + seconds
    while len(taken) < LEAST or (len(taken) < MOST and time.perf_counter() < until):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return taken


def answer_block(
    request: dict[str, Any], run: Callable[[], Any], run_with_copies: Callable[[], Any] | None
) -> dict[str, list[int]]:
    """Nanoseconds of each run of a block: `runs` of them, after others that warm up. Without `runs`, of as many as fit
    into `seconds`, two at least. In a new session then of runs with copies, where those are something else: a quarter
    as many, and no more than take as long as the others. The garbage collection of Python is off meanwhile."""
    count = request["runs"]
    gc.disable()
    try:
        timed = run_block(run, count or 1)
        until = time.perf_counter() + request["seconds"]
        while not count and len(timed) < MOST and (len(timed) < 2 or time.perf_counter() < until):
            timed += run_block(run, 1)
        copied: list[int] = []
        if run_with_copies and not request["kept"]:
            until = time.perf_counter() + sum(timed) * 1e-9
            run_with_copies()
            while not copied or (len(copied) < len(timed) // 4 and time.perf_counter() < until):
                copied += run_block(run_with_copies, 1)
    finally:
        gc.enable()
    return {"runs_ns": timed, "copied_ns": copied}


def run_block(run: Callable[[], Any], count: int) -> list[int]:
    """Nanoseconds of each of so many runs, after a quarter as many that are not counted."""
    for _ in range(count // 4):
        run()
    taken = []
    for _ in range(count):
        started = time.perf_counter_ns()
        run()
        taken.append(time.perf_counter_ns() - started)
    return taken


def nodes(session: Any, run: Callable[[], Any]) -> list[list[Any]]:
    """[name, operator, provider, seconds of a run] of the nodes, the slowest first. session: one that profiles."""
    for _ in range(PROFILED):
        run()
    profile = Path(session.end_profiling())
    events = json.loads(profile.read_text(encoding="utf-8"))
    profile.unlink()
    found: dict[tuple[str, str, str], list[float]] = {}
    for event in events:
        name = event.get("name", "")
        if name.endswith("_kernel_time"):
            args = event["args"]
            key = (name[: -len("_kernel_time")], args.get("op_name", ""), args.get("provider", ""))
            found.setdefault(key, []).append(event["dur"] * 1e-6)
    times = []
    for key, durations in found.items():
        each = len(durations) // PROFILED or 1  # a node of a body runs several times in each run
        times.append([*key, sum(durations[each:]) / max(PROFILED - 1, 1) if len(durations) > each else sum(durations)])
    return sorted(times, key=lambda node: -node[-1])
