"""Sessions used as applications use them: several at once in their threads, again and again with other feeds and
shapes, and created and released in any order.

A use returns outputs: those of the first run that gives other bits than the same feeds gave a session of its own, in
which nothing had run before; else those of the last run. The `run.py` of a reproduction has a copy of this file beside
it, so it needs nothing else of epcheck than numpy.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Values = dict[str, Any]
"""Name -> value, of feeds or outputs."""

Session = Callable[[Values], Values]
"""Runs feeds; it is released when nobody has it any more."""


@dataclass(frozen=True)
class Sessions:
    """Called, it makes a session of the model.

    settle: is called after a run that failed: DirectML's provider keeps commands of such a run, and what becomes of
    them is the matter of one use alone. accepts: whether feeds of other sizes are valid: some kernels do not look.
    """

    make: Callable[[], Session]
    settle: Callable[[], None] = lambda: None
    accepts: Callable[[Values], bool] = lambda _feeds: True

    def __call__(self) -> Session:
        return self.make()


RUNS = 8
"""Runs of each session that others run beside."""

SESSIONS = 40
"""Sessions that are created, run and released before one counts what they have left behind. The first quarter is not
counted: a runtime keeps some of what it makes once."""

KEPT_BYTES = 64 << 10
"""Of resident memory that each released session may leave: an allocator does not give all back."""

WAIT_S = 60.0
"""How long the threads of a use wait for each other."""


class NotUsableError(Exception):
    """The case cannot be used in this way; the message says why."""


FOUND = "epcheck found: "
"""The beginning of what a use says of sessions whose outputs are right."""


class UseError(Exception):
    """Sessions that are used so do what those that are used alone do not; the message says what."""

    def __init__(self, what: str) -> None:
        super().__init__(FOUND + what)


def run_threads(create: Sessions, feeds: Values, count: int) -> Values:
    """Sessions of their own in so many threads, which all begin at once: each creates a session and runs it, twice."""
    expected = create()(feeds)

    def work() -> Values:
        for _ in range(2):
            session = create()
            for _ in range(RUNS):
                outputs = session(feeds)
                if is_other(outputs, expected):
                    return outputs
        return outputs

    return _first_other(_at_once([work] * count), expected)


def run_shared(create: Sessions, feeds: Values, count: int = 2) -> Values:
    """One session for all threads; those with odd numbers have other feeds, where there are any."""
    expected = create()(feeds)
    others = change_values(feeds)
    wanted = _try_run(create, others) if others else None
    session = create()

    def work(own: Values, right: Values) -> Callable[[], Values]:
        def run() -> Values:
            for _ in range(2 * RUNS):
                outputs = session(own)
                if is_other(outputs, right):
                    return outputs
            return outputs

        return run

    pairs = [(others, wanted) if number % 2 and others and wanted else (feeds, expected) for number in range(count)]
    found = _at_once([work(own, right) for own, right in pairs])
    for outputs, (own, right) in zip(found, pairs):
        if is_other(outputs, right) and own is not feeds:
            raise _changed("those of a session that two threads share")
    return _first_other([outputs for outputs, (own, _) in zip(found, pairs) if own is feeds], expected)


def run_beside_creation(create: Sessions, feeds: Values) -> Values:
    """One session runs while another thread creates and releases sessions."""
    expected = create()(feeds)
    session = create()
    over = threading.Event()

    def churn() -> Values:
        while not over.is_set():
            create()
        return expected

    def work() -> Values:
        try:
            for _ in range(4 * RUNS):
                outputs = session(feeds)
                if is_other(outputs, expected):
                    return outputs
            return outputs
        finally:
            over.set()

    return _first_other(_at_once([work, churn]), expected)


def run_again(create: Sessions, feeds: Values) -> Values:
    """The feeds, other values, the feeds again, in one session."""
    others = change_values(feeds)
    if not others:
        raise NotUsableError("no input can be given other values")
    return _run_between(create, feeds, [others])


def run_shapes(create: Sessions, feeds: Values) -> Values:
    """The feeds, twice as many on the first axis, half as many, none, and the feeds again, in one session of a model
    whose sizes are dynamic. None where both others are valid and no input may be an index of the first."""
    try:
        create()
    except Exception as error:
        raise NotUsableError(f"no session takes dynamic sizes: {error}") from None
    others = [resized for times in (2.0, 0.5) if (resized := change_size(feeds, times)) and create.accepts(resized)]
    none = change_size(feeds, 0.0)
    if none and len(others) == 2 and not any(takes_index(value) for value in feeds.values()):
        others.append(none)
    if not others:
        raise NotUsableError("no other size of its first input is valid")
    return _run_between(create, feeds, others)


def run_repeatedly(create: Sessions, feeds: Values) -> Values:
    """SESSIONS sessions, one after the other. Raises UseError where something of each of them stays."""
    expected = outputs = create()(feeds)
    counted = [measure_process()]
    for number in range(SESSIONS):
        outputs = create()(feeds)
        if is_other(outputs, expected):
            return outputs
        if number + 1 in (SESSIONS // 4, SESSIONS // 2, SESSIONS):
            gc.collect()
            counted.append(measure_process())
    _, quarter, half, end = counted
    for what, most in (("handles", 0.5), ("threads", 0.5), ("bytes of memory", KEPT_BYTES)):
        sessions = SESSIONS // 4, SESSIONS // 2
        grown = half.get(what, 0) - quarter.get(what, 0), end.get(what, 0) - half.get(what, 0)
        if all(each > most * count for each, count in zip(grown, sessions)):
            raise UseError(f"{sum(sessions)} sessions that were released leave {sum(grown):,} {what}")
    return outputs


def run_after_failure(create: Sessions, feeds: Values) -> Values:
    """A run that must fail, for one feed is missing and another has an axis more; then the feeds, in that session and
    in a new one."""
    expected = create()(feeds)
    session = create()
    first = next(iter(feeds), None)
    if first is None:
        raise NotUsableError("it has no input")
    for broken in ({name: value for name, value in feeds.items() if name != first}, add_axis(feeds, first)):
        try:
            session(broken)
        except Exception:  # as it must
            continue
    return _first_other([session(feeds), create()(feeds)], expected)


def run_in_order(create: Sessions, feeds: Values) -> Values:
    """Three sessions: the oldest is released before the others run, the youngest before the one between runs."""
    expected = create()(feeds)
    oldest, between, youngest = create(), create(), create()
    found = [oldest(feeds), between(feeds), youngest(feeds)]
    del oldest
    found += [youngest(feeds), between(feeds)]
    del youngest
    found += [between(feeds), create()(feeds), between(feeds)]
    return _first_other(found, expected)


USES: dict[str, Callable[[Sessions, Values], Values]] = {
    "threads=2": lambda create, feeds: run_threads(create, feeds, 2),
    "threads=4": lambda create, feeds: run_threads(create, feeds, 4),
    "threads=shared": run_shared,
    "threads=creation": run_beside_creation,
    "reruns=feeds": run_again,
    "reruns=shapes": run_shapes,
    "lifecycle=repeated": run_repeatedly,
    "lifecycle=failed": run_after_failure,
    "lifecycle=order": run_in_order,
}
"""Variant -> what runs it."""


def is_other(first: Values, second: Values) -> bool:
    """Whether outputs differ in a bit."""
    return first.keys() != second.keys() or any(_describe(first[name]) != _describe(second[name]) for name in first)


def change_values(feeds: Values) -> Values:
    """The feeds with the elements of floating-point and 8-bit tensors one place further, so that each is in the range
    that it was in; empty where that changes nothing. What has other types may be an index or a size."""
    changed = dict(feeds)
    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and _is_data(value) and value.size > 1:
            changed[name] = np.roll(value.reshape(-1), 1).reshape(value.shape)
    return changed if is_other(changed, feeds) else {}


def change_size(feeds: Values, times: float) -> Values:
    """The feeds with another size of the first axis of the first, and of all that have its shape; empty where there is
    none. Others of that size may have it for another reason."""
    first = next(iter(feeds.values()), None)
    if not isinstance(first, np.ndarray) or not first.ndim or not _is_data(first):
        return {}
    changed = {}
    for name, value in feeds.items():
        fits = isinstance(value, np.ndarray) and value.shape == first.shape and _is_data(value)
        changed[name] = np.concatenate([value, value])[: int(len(value) * times)] if fits else value
    return changed if is_other(changed, feeds) else {}


def takes_index(value: Any) -> bool:
    """Whether a tensor has integers that may be an index or a number of elements."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.dtype.itemsize > 1


def add_axis(feeds: Values, name: str) -> Values:
    """The feeds, one of which has another axis."""
    return {**feeds, name: np.asarray(feeds[name])[None]}


def measure_process() -> dict[str, float]:
    """Handles, threads and bytes of resident memory of this process, as far as the system says them."""
    return _measure_windows() if sys.platform == "win32" else _measure_linux()


def _measure_linux() -> dict[str, float]:
    found: dict[str, float] = {}
    try:
        own = Path("/proc/self")
        found["handles"] = len(list((own / "fd").iterdir()))
        found["threads"] = len(list((own / "task").iterdir()))
        found["bytes of memory"] = int((own / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):  # no /proc, or not to be read
        pass
    return found


def _measure_windows() -> dict[str, float]:
    """https://learn.microsoft.com/windows/win32/api/psapi/ns-psapi-process_memory_counters"""
    import ctypes

    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    own = ctypes.c_void_p(kernel.GetCurrentProcess())
    handles = ctypes.c_ulong()
    found: dict[str, float] = {}
    if kernel.GetProcessHandleCount(own, ctypes.byref(handles)):
        found["handles"] = handles.value
    counters = (ctypes.c_size_t * 10)(72)  # two of 32 bits, then eight of size_t
    if kernel.K32GetProcessMemoryInfo(own, counters, 72):
        found["bytes of memory"] = counters[2]
    return found


def _is_data(value: Any) -> bool:
    """Whether a tensor holds data rather than indices, sizes or switches, by its dtype; those of ml_dtypes are `V`."""
    return bool(value.dtype.kind in "fcV" or (value.dtype.kind in "iu" and value.dtype.itemsize == 1))


def _run_between(create: Sessions, feeds: Values, others: list[Values]) -> Values:
    """Run the feeds before and after each of the others, in one session. What the others give is compared with what
    they give in a session of their own; where they are refused there, they may be refused here.

    The others come first, so that what the process keeps of them shows in the outputs of the feeds. Their sessions are
    released before the one that is judged is created: that is the matter of another use.
    """
    wanted = [_try_run(create, other) for other in others]
    expected = create()(feeds)
    session = create()
    found = [session(feeds)]
    for other, right in zip(others, wanted):
        try:
            outputs = session(other)
        except Exception:
            if right is not None:
                raise
            create.settle()
        else:
            if right is not None and is_other(outputs, right):
                raise _changed("those that a session runs after the first")
        found.append(session(feeds))
    return _first_other(found, expected)


def _changed(which: str) -> UseError:
    return UseError(f"other feeds, {which}, give other values than in a session of their own")


def _try_run(create: Sessions, feeds: Values) -> Values | None:
    try:
        return create()(feeds)
    except Exception:
        create.settle()
        return None


def _first_other(found: list[Values], expected: Values) -> Values:
    return next((outputs for outputs in found if is_other(outputs, expected)), found[-1])


def _at_once(works: list[Callable[[], Values]]) -> list[Values]:
    """What each gives, in a thread of its own; all begin at once. Raises what the first raises."""
    begin = threading.Barrier(len(works))
    found: list[Any] = [None] * len(works)

    def run(number: int) -> None:
        begin.wait(WAIT_S)
        try:
            found[number] = works[number]()
        except Exception as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in found:
        if isinstance(each, Exception):
            raise each
    return found


def _describe(value: Any) -> Any:
    """Equal for equal values: dtype, shape and bytes of a tensor, what is in a list or a map, text."""
    if isinstance(value, (list, tuple)):
        return [_describe(each) for each in value]
    if isinstance(value, dict):
        return {key: _describe(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tolist() if value.dtype.kind in "OSU" else value.tobytes()
    return value
