"""Sessions used as applications use them: several at once in their threads, again and again with other feeds and
shapes, and created and released in any order.

A use returns outputs: those of the first run that gives other bits than the same feeds gave a session of its own, in
which nothing had run before; else those of the last run. The `run.py` of a reproduction has a copy of this file beside
it, so it needs nothing else of epcheck than numpy.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
    them is the matter of one use alone. accepts: whether feeds are valid (`is_valid`) for the first of `others`, or for
    the model: some kernels do not look whether sizes and values are. others: make sessions of the other models that the
    use needs. bind, reference: make an InferenceSession of the model, which outputs can be bound to: the
    provider's, and one of the CPU provider of the first of `others`, or of the model. register_again: takes the library
    of the provider away and registers it again. end: makes a session in a process of its own, runs the feeds, and ends
    the process while the session is there; its exit code. share: makes a session of the model whose initializers have
    the memory that all sessions made so share. read_device_bytes: of the process (`device_memory`).
    """

    make: Callable[[], Session]
    settle: Callable[[], None] = lambda: None
    accepts: Callable[[Values], bool] = lambda _feeds: True
    others: tuple[Callable[[], Session], ...] = ()
    bind: Callable[[], Any] | None = None
    reference: Callable[[], Any] | None = None
    register_again: Callable[[], None] | None = None
    end: Callable[[Values], int] | None = None
    share: Callable[[], Session] | None = None
    read_device_bytes: Callable[[], int] = lambda: 0

    def __call__(self) -> Session:
        return self.make()


RUNS, MOST_RUNS = 8, 400
"""Runs of each session that others run beside, at least, and those of one that waits for the others."""

SESSIONS, FEWEST_SESSIONS, SESSIONS_S, LEFT_S = 200, 40, 1.0, 20.0
"""Sessions that are created, run and released before one counts what they have left behind; fewer where they take
longer than so many seconds, and no memory is weighed of fewer. While something stays of these, more are created, up to
the second number of seconds: on a busy GPU CUDA's provider left 100 kB of each of 40 to 90, on an idle one nothing of
200. The first quarter is not counted: a runtime keeps some of what it makes once."""

COUNTS = 20
"""How often one counts."""

KEPT_BYTES = 64 << 10
"""Of resident memory, and of a device's, that each released session may leave: an allocator does not give all back."""

DEVICE_BYTES = "bytes of device memory"

FIRST_RUNS = 30
"""Sessions whose first run several threads do at once."""

FAILED_SESSIONS = 32
"""Sessions whose creation fails before one is created that must not."""

OTHER_SESSIONS = 10
"""Sessions with other weights, each between two of the model's own."""

LARGE = 1 << 15
"""Elements of the first input of large feeds: a run then takes long enough to meet another."""

MOST_ROWS, MOST_TIMES = 24, 12
"""The sizes of an axis from 1 on, and how many times its size the last two axes have at most."""

MOST_SIZES = 2 * MOST_ROWS + 5
"""Of `list_sizes`: those of two axes, four of the last two, and one order of integers."""

SIZES_S, GROWING_S, LARGE_S = 0.5, 0.005, 0.1
"""Seconds for all sizes, at most; of the CPU provider for feeds that are to grow further; and of the provider for one
run of large feeds."""

WEIGHED = 24
"""Sizes after which one looks whether memory stays of each."""

OTHER_VALUES = 1e-2
"""Of the greatest value of an output: a difference that no rounding makes."""

GUARD, PATTERN = 64, 0xDB
"""Bytes before and behind an output that is bound, at least, and what is in them."""

SWITCH_S = 1e-5
"""How long Python lets a thread run while others wait, so that runs that take microseconds meet."""

WAIT_S = 60.0
"""How long the threads of a use wait for each other."""


@dataclass(frozen=True)
class Extent:
    """How much a use does; what it does not have is as here. `epcheck repro` looks for the least that fails.

    threads: that begin at once. sessions: of each thread, or one after the other. runs: of each session, at least.
    others: whether other values are run, by turns or in every second thread. own, large: whether the feeds of the case
    are run, and large ones. sizes: the other sizes that are run, by number. weighed: the sizes after which one looks
    whether memory stays of each.
    """

    threads: int = 1
    sessions: int = 1
    runs: int = 1
    others: bool = False
    own: bool = True
    large: bool = False
    sizes: Sequence[int] = ()
    weighed: int = 0


class NotUsableError(Exception):
    """The case cannot be used in this way; the message says why."""


FOUND = "epcheck found: "
"""The beginning of what a use says of sessions whose outputs are right."""


class UseError(Exception):
    """Sessions that are used so do what those that are used alone do not; the message says what."""

    def __init__(self, what: str) -> None:
        super().__init__(FOUND + what)


def run_threads(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """Sessions of their own in so many threads, which all begin at once: each creates a session and runs it, twice;
    those with odd numbers have other values. Then the same with large feeds, where the model takes them."""
    return _run_small_and_large(create, feeds, extent, lambda make: make)


def run_shared(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """One session for all threads; those with odd numbers have other feeds, where there are any. Then one session and
    large feeds, where the model takes them."""
    return _run_small_and_large(create, feeds, extent, lambda make: _share(make()))


def _run_small_and_large(
    create: Sessions,
    feeds: Values,
    extent: Extent,
    prepare: Callable[[Callable[[], Session]], Callable[[], Session]],
) -> Values:
    """prepare: makes what makes the sessions of the threads."""
    outputs = _run_at_once(create, prepare(create.make), feeds, extent) if extent.own else create()(feeds)
    if extent.large and (large := enlarge(create, feeds)):
        make, values = large
        _run_at_once(create, prepare(make), values, replace(extent, sessions=1), is_large=True)
    return outputs


def run_first(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """The first run of a session, in several threads at once; so many sessions, one after the other."""
    expected = create()(feeds)
    found: list[Values] = []
    for _ in range(extent.sessions):
        session = create()
        found += _at_once([lambda session=session: session(feeds)] * extent.threads)  # type: ignore[misc]
    return _first_other(found, expected)


def _share(session: Session) -> Callable[[], Session]:
    return lambda: session


def _run_at_once(
    create: Sessions, make: Callable[[], Session], feeds: Values, extent: Extent, is_large: bool = False
) -> Values:
    """Threads that begin at once; each makes its sessions and runs each until all have run so often.
    Of those that have the feeds the first outputs that differ. Raises UseError for others that differ."""
    count = extent.threads
    expected = make()(feeds)
    others = change_values(create, feeds) if extent.others else {}
    wanted = make()(others) if others else expected
    runs = [0] * count
    least_s = LARGE_S / 2 if is_large else 0.0

    def work(number: int, own: Values, right: Values) -> Callable[[], Values]:
        def run() -> Values:
            for done in range(1, extent.sessions + 1):
                session, began = make(), time.monotonic()
                own_runs = 0
                while min(runs) < done * extent.runs or time.monotonic() < began + least_s:
                    outputs = session(own)
                    runs[number] += 1
                    own_runs += 1
                    if is_other(outputs, right):
                        return outputs
                    if own_runs == MOST_RUNS:
                        break
            return session(own)

        def run_to_end() -> Values:
            try:
                return run()
            finally:
                runs[number] = sys.maxsize

        return run_to_end

    pairs = [(others, wanted) if number % 2 and others else (feeds, expected) for number in range(count)]
    found = _at_once([work(number, own, right) for number, (own, right) in enumerate(pairs)])
    for outputs, (own, right) in zip(found, pairs):
        if is_other(outputs, right) and (own is not feeds or is_large):
            raise UseError(f"{count} threads at once: {'large' if is_large else 'other'} feeds give other values")
    return _first_other([outputs for outputs, (own, _) in zip(found, pairs) if own is feeds], expected)


def run_beside_creation(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """One session runs, large feeds where it takes them, while another thread creates and releases sessions."""
    make, values = (enlarge(create, feeds) if extent.large else None) or (create.make, feeds)
    expected = make()(values)
    session = make()
    over = threading.Event()

    def churn() -> Values:
        while not over.is_set():
            create()(feeds)
        return expected

    def work() -> Values:
        try:
            for _ in range(extent.runs):
                outputs = session(values)
                if is_other(outputs, expected):
                    return outputs
            return outputs
        finally:
            over.set()

    outputs = _first_other(_at_once([work, churn]), expected)
    if values is feeds:
        return outputs
    if is_other(outputs, expected):
        raise UseError("large feeds give other values while another thread creates and releases sessions")
    return create()(feeds)


def run_again(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """The feeds and other values by turns, in one session, each time at another address. Raises UseError where a run
    changes its feeds, or how its thread computes with denormal numbers."""
    if not feeds:
        raise NotUsableError("it has no input")
    restore_denormals()
    had_denormals = keeps_denormals()
    others = change_values(create, feeds) if extent.others else {}
    turns = [feeds, others] if others else [feeds]
    wanted = [create()(_copy(values)) for values in reversed(turns)][::-1]
    session = create()
    kept, found = [], []
    for number in range(extent.runs):
        of = number % len(turns)
        kept.append(_copy(turns[of]))
        outputs = session(kept[-1])
        if is_other(kept[-1], turns[of]):
            raise UseError("a run changes its feeds")
        if of == 0:
            found.append(outputs)
        elif is_other(outputs, wanted[of]):
            raise _changed("those that a session runs after the first")
    if had_denormals and not keeps_denormals():
        raise UseError("a run leaves its thread without denormal numbers")
    return _first_other(found, wanted[0])


def run_shapes(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """The feeds, twice as many on the first axis, half as many, none, and the feeds again, in one session of a model
    whose sizes are dynamic. None where both others are valid and no input may be an index of the first."""
    try:
        create()
    except Exception as error:
        raise NotUsableError(f"no session takes dynamic sizes: {error}") from None
    resized = [change_size(feeds, times) for times in (2.0, 0.5, 0.0)]
    valid = [number for number, values in enumerate(resized[:2]) if values and create.accepts(values)]
    if len(valid) == 2 and resized[2] and not any(takes_index(value) for value in feeds.values()):
        valid.append(2)  # the CPU provider is not asked: some of its kernels divide by an empty size
    others = [resized[number] for number in valid if number in extent.sizes]
    if not others:
        raise NotUsableError("no other size of its first input is valid")
    return _run_between(create, feeds, others)


def run_sizes(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """Many sizes in one session, growing, and in another one, shrinking: both give the same. The model's sizes are
    dynamic. Raises UseError where memory stays of each size."""
    try:
        create()
    except Exception as error:
        raise NotUsableError(f"no session takes dynamic sizes: {error}") from None
    if sum(np.asarray(value).size for value in feeds.values()) > LARGE:
        raise NotUsableError("its inputs are large")
    sizes, began = [], time.monotonic()
    for number, values in enumerate(list_sizes(feeds)):
        if number in extent.sizes and create.accepts(values):
            sizes.append(values)
        if time.monotonic() > began + SIZES_S:
            break
    if extent.sizes and not sizes:
        raise NotUsableError("no other size of its inputs is valid")
    expected = create()(feeds)
    growing, shrinking = create(), create()
    first, began = [], time.monotonic()
    for values in sizes:
        first.append(_run_or_none(create, growing, values))
        if time.monotonic() > began + SIZES_S:
            break
    sizes = sizes[: len(first)]
    second = [_run_or_none(create, shrinking, values) for values in reversed(sizes)][::-1]
    for outputs, others in zip(first, second):
        if outputs is not None and others is not None and is_other(outputs, others):
            raise UseError("a size gives other values after larger sizes than after smaller ones")
    found = [growing(feeds), shrinking(feeds)]
    del growing, shrinking
    _weigh_sizes(create, feeds, extent.weighed)
    return _first_other(found, expected)


def _run_or_none(create: Sessions, session: Session, feeds: Values) -> Values | None:
    try:
        return session(feeds)
    except Exception:
        create.settle()
        return None


def _weigh_sizes(create: Sessions, feeds: Values, count: int) -> None:
    """Raise UseError where each of many sizes, `count` of a session, leaves memory after its session is released."""
    if not count or sum(value.nbytes for value in feeds.values() if isinstance(value, np.ndarray)) > KEPT_BYTES // 16:
        return
    grown: list[float] = []
    before = _weigh()
    for batch in range(3):
        session = create()
        for size in range(batch * count, (batch + 1) * count):
            values = set_size(feeds, [0], size + MOST_ROWS)
            if not values or not create.accepts(values) or _run_or_none(create, session, values) is None:
                return
        del session
        now = _weigh()
        grown.append(now - before)
        before = now
    if all(each > KEPT_BYTES * count for each in grown[1:]):
        raise UseError(
            f"{2 * count} sizes leave {sum(grown[1:]):,.0f} bytes of memory when their sessions are released"
        )


def _weigh() -> float:
    gc.collect()
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim:
            trim(0)
    return measure_process().get("bytes of memory", 0)


def run_types(create: Sessions, feeds: Values, _extent: Extent) -> Values:
    """Sessions of the model in other types of its tensors, before a session of the model."""
    others = []
    for other, to in zip(create.others, types_beside(feeds)):
        values = change_types(feeds, to)
        try:
            session = other()
            others.append((session, values, session(values), to))
        except Exception:  # the operator has no such type, or the provider does not take it
            create.settle()
    if not others:
        raise NotUsableError("no session takes other types")
    first, second = create(), create()
    found = [first(feeds)]
    for session, values, right, _ in others:
        if is_other(session(values), right):
            raise UseError("sessions of other types give other values after one of the model's type")
    found.append(second(feeds))
    return _first_other(found, found[0])


def run_bound(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """Outputs bound into buffers of the application, which go on before and behind them; the feeds and others by turns.
    Raises UseError where a run writes beyond an output."""
    expected = create()(_copy(feeds))
    others = change_values(create, feeds) if extent.others else {}
    turns = [feeds, others, feeds] if others else [feeds, feeds]
    wanted = create()(_copy(others)) if others else expected
    session = _bind(create, feeds, expected)
    if {name: (value.dtype, value.shape) for name, value in wanted.items()} != {
        name: (value.dtype, value.shape) for name, value in expected.items()
    }:
        turns = [feeds, feeds]
    found = []
    for values in turns:
        outputs = _run_guarded(session, _copy(values), expected)
        if values is feeds:
            found.append(outputs)
        elif is_other(outputs, wanted):
            raise _changed("whose outputs are bound")
    return _first_other(found, expected)


def _bind(create: Sessions, feeds: Values, outputs: Values) -> Any:
    """A session whose inputs and outputs can be bound."""
    if create.bind is None:
        raise NotUsableError("it makes no sessions of ONNX Runtime")
    if not feeds:
        raise NotUsableError("it has no input")
    for value in (*feeds.values(), *outputs.values()):
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
            raise NotUsableError("an input or an output is no tensor of numbers that numpy has")
    if feeds.keys() & outputs.keys():
        raise NotUsableError("an input is an output as well")
    return create.bind()


def _run_guarded(session: Any, feeds: Values, like: Values) -> Values:
    """The outputs, of the shapes of `like`, from buffers of which GUARD bytes before and behind must stay as they
    are."""
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    buffers = {}
    for name, value in like.items():
        if not value.size:
            binding.bind_output(name, "cpu")
            continue
        room = np.full(value.nbytes + 3 * GUARD, PATTERN, np.uint8)
        start = GUARD + -room.ctypes.data % GUARD
        binding.bind_output(name, "cpu", 0, value.dtype, value.shape, room.ctypes.data + start)
        buffers[name] = room, start
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    outputs = {name: value for name, value in like.items() if not value.size}
    for name, (room, start) in buffers.items():
        end = start + like[name].nbytes
        if (room[:start] != PATTERN).any() or (room[end:] != PATTERN).any():
            raise UseError("a run writes beyond an output that is bound")
        outputs[name] = room[start:end].view(like[name].dtype).reshape(like[name].shape).copy()
    return {name: outputs[name] for name in like}


def run_in_place(create: Sessions, feeds: Values, _extent: Extent) -> Values:
    """An output bound to the memory of an input, as a state that is updated: where the operator permits it, and the CPU
    provider gives then what it gives otherwise."""
    if not create.others:
        raise NotUsableError("no output may have the memory of an input")
    expected = create()(_copy(feeds))
    session = _bind(create, feeds, expected)
    reference = create.reference() if create.reference else None
    if reference is None:
        raise NotUsableError("the CPU provider is not there")
    found = []
    names = [output.name for output in reference.get_outputs()]
    right = dict(zip(names, reference.run(names, _copy(feeds))))
    for name, value in feeds.items():
        for output, like in expected.items():
            fits = value.size and like.dtype == value.dtype and like.shape == value.shape
            if fits and not is_other(_run_onto(reference, feeds, expected, name, output), right):
                found.append(_run_onto(session, feeds, expected, name, output))
    if not found:
        raise NotUsableError("no output may have the memory of an input")
    return _first_other(found, expected)


def _run_onto(session: Any, feeds: Values, like: Values, name: str, output: str) -> Values:
    """The outputs of a run in which one has the memory of an input."""
    feeds = _copy(feeds)
    place = np.ascontiguousarray(feeds[name])
    binding = session.io_binding()
    for each, value in feeds.items():
        if each == name:
            binding.bind_input(name, "cpu", 0, place.dtype, place.shape, place.ctypes.data)
        else:
            binding.bind_cpu_input(each, value)
    others = [each for each in like if each != output]
    binding.bind_output(output, "cpu", 0, place.dtype, place.shape, place.ctypes.data)
    for each in others:
        binding.bind_output(each, "cpu")
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    values = dict(zip([output, *others], binding.get_outputs()))
    return {each: place if each == output else np.array(values[each].numpy()) for each in like}


def run_other_weights(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """Sessions of the model with other weights are created, run and released between those of the model; one is
    released while a younger one of the model is there."""
    if not create.others:
        raise NotUsableError("it has no initializer that can have other values")
    if not create.accepts(feeds):
        raise NotUsableError("the other values of its initializers are not valid")
    (other,) = create.others
    wanted = other()(feeds)
    found = []
    for _ in range(extent.sessions):
        found.append(create()(feeds))
        if is_other(other()(feeds), wanted):
            raise UseError("sessions with other weights change their values")
    oldest = other()
    younger, youngest = create(), other()
    del oldest
    found.append(younger(feeds))
    if is_other(youngest(feeds), wanted):
        raise UseError("sessions with other weights change their values")
    if not is_other(wanted, found[0]) and create.reference is not None and _differ_on_cpu(create, feeds):
        raise UseError("a session with other weights gives the values of the model's")
    return _first_other(found, found[0])


def run_shared_weights(create: Sessions, feeds: Values, _extent: Extent) -> Values:
    """Sessions that share the memory of their initializers: two run, the older one is released, the younger one and a
    third run."""
    if create.share is None:
        raise NotUsableError("it has no initializer that sessions can share")
    expected = create()(feeds)
    older, younger = create.share(), create.share()
    found = [older(feeds), younger(feeds)]
    del older
    gc.collect()
    found += [younger(feeds), create.share()(feeds)]
    return _first_other(found, expected)


def _differ_on_cpu(create: Sessions, feeds: Values) -> bool:
    """Whether the CPU provider gives other values with the other weights."""
    assert create.reference is not None
    names, own = [], None
    try:
        session = create.reference()
        names = [output.name for output in session.get_outputs()]
        own = dict(zip(names, session.run(names, feeds)))
    except Exception:  # it does not take the model
        return False
    return is_other(own, create()(feeds)) and bool(_distance(own, create()(feeds)) > OTHER_VALUES)


def _distance(first: Values, second: Values) -> float:
    """The greatest difference of two outputs, as a part of the greatest value."""
    greatest = 0.0
    for name, value in first.items():
        if name not in second or value.shape != second[name].shape or value.dtype.kind != "f" or not value.size:
            continue
        own, other = np.asarray(value, np.float64), np.asarray(second[name], np.float64)
        with np.errstate(all="ignore"):
            scale = np.nanmax(np.abs(own))
            greatest = max(greatest, float(np.nanmax(np.abs(own - other)) / scale)) if scale else greatest
    return greatest


def run_repeatedly(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """Up to so many sessions, one after the other. Raises UseError where something of each of them stays."""

    def count() -> dict[str, float]:
        return {**measure_process(), DEVICE_BYTES: create.read_device_bytes()}

    expected = outputs = create()(feeds)
    counted, began = [count()], time.monotonic()
    each_time = max(extent.sessions // COUNTS, 1)
    for number in range(1, extent.sessions + 1):
        outputs = create()(feeds)
        if is_other(outputs, expected):
            return outputs
        if number % each_time == 0:
            gc.collect()
            counted.append(count())
            took_s = time.monotonic() - began
            if number >= FEWEST_SESSIONS and took_s > (LEFT_S if _describe_left(counted, each_time) else SESSIONS_S):
                break
    if left := _describe_left(counted, each_time):
        raise UseError(left)
    return outputs


def _describe_left(counted: Sequence[Mapping[str, float]], each_time: int) -> str:
    """What stays of each session in the second quarter of all and in the second half; empty where nothing does.
    counted: what the process has, at first and after every so many sessions."""
    steps = len(counted) - 1
    quarter, half, end = counted[steps // 4], counted[steps // 2], counted[steps]
    memory = (
        [("bytes of memory", KEPT_BYTES), (DEVICE_BYTES, KEPT_BYTES)] if steps * each_time >= FEWEST_SESSIONS else []
    )
    for what, most in (("handles", 0.5), ("threads", 0.5), *memory):
        sessions = (steps // 2 - steps // 4) * each_time, (steps - steps // 2) * each_time
        grown = half.get(what, 0) - quarter.get(what, 0), end.get(what, 0) - half.get(what, 0)
        if all(each > most * count for each, count in zip(grown, sessions)):
            return f"{sum(sessions)} sessions that were released leave {sum(grown):,} {what}"
    return ""


def run_after_failure(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """Sessions of a model with a node that nobody takes, which cannot be created; a run that must fail, for one feed is
    missing and another has an axis more; then the feeds, in that session and in a new one."""
    expected = create()(feeds)
    for other in create.others:
        for _ in range(extent.sessions):
            try:
                other()
            except Exception:  # as it must
                create.settle()
                continue
            break
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


def run_in_order(create: Sessions, feeds: Values, _extent: Extent) -> Values:
    """Three sessions: the oldest is released before the others run, the youngest before the one between runs."""
    expected = create()(feeds)
    oldest, between, youngest = create(), create(), create()
    found = [oldest(feeds), between(feeds), youngest(feeds)]
    del oldest
    found += [youngest(feeds), between(feeds)]
    del youngest
    found += [between(feeds), create()(feeds), between(feeds)]
    return _first_other(found, expected)


def run_registered(create: Sessions, feeds: Values, extent: Extent) -> Values:
    """The library of the provider is taken away and registered again, so often, with a session each time."""
    if create.register_again is None:
        raise NotUsableError("its provider has no library that is registered")
    found = [create()(feeds)]
    for _ in range(extent.sessions):
        gc.collect()
        create.register_again()
        found.append(create()(feeds))
    return _first_other(found, found[0])


def run_to_end(create: Sessions, feeds: Values, _extent: Extent) -> Values:
    """The process ends while a session is there. Raises UseError for its exit code; where no other process can be
    started, this one ends so."""
    session = create()
    outputs = session(feeds)
    if create.end is None:
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))
        return outputs
    if code := create.end(feeds):
        raise UseError(f"a process that ends while a session is there has the exit code {code}")
    return outputs


@dataclass(frozen=True)
class Use:
    """What runs sessions in one way, and how much of it."""

    run: Callable[[Sessions, Values, Extent], Values]
    extent: Extent = Extent()

    def __call__(self, create: Sessions, feeds: Values, **changes: Any) -> Values:
        """The outputs. changes: of the extent."""
        return self.run(create, feeds, replace(self.extent, **changes))


_THREADS = Extent(sessions=2, runs=RUNS, others=True, large=True)

USES: dict[str, Use] = {
    "threads=2": Use(run_threads, replace(_THREADS, threads=2)),
    "threads=4": Use(run_threads, replace(_THREADS, threads=4)),
    "threads=shared": Use(run_shared, replace(_THREADS, threads=5, sessions=1)),
    "threads=first": Use(run_first, Extent(threads=3, sessions=FIRST_RUNS)),
    "threads=creation": Use(run_beside_creation, Extent(runs=4 * RUNS, own=False, large=True)),
    "reruns=feeds": Use(run_again, Extent(runs=RUNS, others=True)),
    "reruns=shapes": Use(run_shapes, Extent(sizes=range(3))),
    "reruns=sizes": Use(run_sizes, Extent(sizes=range(MOST_SIZES), weighed=WEIGHED)),
    "reruns=types": Use(run_types),
    "reruns=bound": Use(run_bound, Extent(others=True)),
    "reruns=in_place": Use(run_in_place),
    "weights=other": Use(run_other_weights, Extent(sessions=OTHER_SESSIONS)),
    "weights=shared": Use(run_shared_weights),
    "lifecycle=repeated": Use(run_repeatedly, Extent(sessions=SESSIONS)),
    "lifecycle=failed": Use(run_after_failure, Extent(sessions=FAILED_SESSIONS)),
    "lifecycle=order": Use(run_in_order),
    "lifecycle=registered": Use(run_registered, Extent(sessions=2)),
    "lifecycle=exit": Use(run_to_end),
}
"""Variant -> the use."""


def is_other(first: Values, second: Values) -> bool:
    """Whether outputs differ in a bit."""
    return first.keys() != second.keys() or any(_describe(first[name]) != _describe(second[name]) for name in first)


@functools.lru_cache(maxsize=1)
def list_shapes(ort: Any, model: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The inputs of a model with their shapes: numbers, and the names of free dimensions."""
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    return tuple((value.name, tuple(value.shape or ())) for value in session.get_inputs())


def is_valid(ort: Any, model: Any, feeds: Values) -> bool:
    """Whether the CPU provider takes the feeds of a model. A session is created for their sizes: ONNX's shape inference
    then refuses sizes that kernels do not look at. ort: the module onnxruntime. model: bytes, or a path."""
    try:
        sizes: dict[str, int] = {}
        for name, shape in list_shapes(ort, model):
            for dimension, size in zip(shape, getattr(feeds[name], "shape", ())):
                if isinstance(dimension, str) and sizes.setdefault(dimension, size) != size:
                    return False
        options = ort.SessionOptions()
        for dimension, size in sizes.items():
            options.add_free_dimension_override_by_name(dimension, size)
        ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, feeds)
    except Exception:  # whatever it says
        return False
    return True


def change_values(create: Sessions, feeds: Values) -> Values:
    """The feeds with the elements of floating-point and 8-bit tensors one place further, so that each is in the range
    that it was in; empty where that changes nothing, or they are not valid, as the batch indices of MaxRoiPool. What
    has other types may be an index or a size."""
    changed = dict(feeds)
    for name, value in feeds.items():
        if isinstance(value, np.ndarray) and _is_data(value) and value.size > 1:
            changed[name] = np.roll(value.reshape(-1), 1).reshape(value.shape)
    return changed if is_other(changed, feeds) and create.accepts(changed) else {}


def change_size(feeds: Values, times: float) -> Values:
    """The feeds with another size of the first axis of the first, and of all that have its shape; empty where there is
    none. Others of that size may have it for another reason."""
    first = next(iter(feeds.values()), None)
    if not isinstance(first, np.ndarray) or not first.ndim:
        return {}
    return set_size(feeds, [0], int(len(first) * times))


def set_size(feeds: Values, axes: list[int], size: int, times: int = 0) -> Values:
    """The feeds with this size of these axes of the first, or `times` their sizes, and of all that have its shape;
    empty where that changes nothing."""
    first = next(iter(feeds.values()), None)
    if not isinstance(first, np.ndarray) or first.ndim < len(axes) or not first.ndim or not _is_data(first):
        return {}
    changed = {}
    for name, value in feeds.items():
        changed[name] = value
        if isinstance(value, np.ndarray) and value.shape == first.shape and _is_data(value):
            for axis in axes:
                wanted = value.shape[axis] * times if times else size
                if not value.shape[axis] and wanted:
                    return {}
                changed[name] = np.take(changed[name], np.arange(wanted) % max(value.shape[axis], 1), axis)
    return changed if is_other(changed, feeds) else {}


def list_sizes(feeds: Values) -> list[Values]:
    """The feeds with other sizes of the first axis, of the last, and of the last two, and with other sizes or indices
    in integers of one axis; each is small."""
    first = next(iter(feeds.values()), None)
    if not isinstance(first, np.ndarray) or not first.ndim:
        return []
    found = [set_size(feeds, [0], size) for size in range(1, MOST_ROWS + 1)]
    if first.ndim > 1:
        found += [set_size(feeds, [-1], size) for size in range(1, MOST_ROWS + 1)]
        found += [set_size(feeds, [-2, -1], 0, times) for times in (1, 2, 4, MOST_TIMES)]
    turned = {
        name: np.roll(value, 1) if takes_index(value) and value.ndim == 1 else value for name, value in feeds.items()
    }
    found += [turned] if is_other(turned, feeds) else []
    return [each for each in found if each and sum(np.asarray(value).size for value in each.values()) <= LARGE * 4]


def enlarge(create: Sessions, feeds: Values) -> tuple[Callable[[], Session], Values] | None:
    """What makes a session of the model with dynamic sizes, and feeds whose first input has LARGE elements; None where
    it does not take them."""
    first = next(iter(feeds.values()), None)
    if not create.others or not isinstance(first, np.ndarray) or not 0 < first.size < LARGE:
        return None
    (make,) = create.others
    values: Values = {}
    for exponent in range(2, 16, 2):  # by and by: outputs may grow with a power of the feeds
        began, size = time.monotonic(), 1 << exponent
        larger = change_size(feeds, size)
        if not larger or not create.accepts(larger):
            break
        values = larger
        if time.monotonic() > began + GROWING_S or first.size * size >= LARGE:
            break
    if not values:
        return None
    try:
        session = make()
        began = time.monotonic()
        session(values)
    except Exception:  # it takes no dynamic sizes
        create.settle()
        return None
    return (make, values) if time.monotonic() < began + LARGE_S else None


TYPES_BESIDE = {
    "float32": ("int32", "float64"),
    "float64": ("int64", "float32"),
    "int32": ("float32", "int64"),
    "int64": ("float64", "int32"),
    "float16": ("float32",),
    "uint8": ("int8",),
    "int8": ("uint8",),
}
"""A type -> those in which the same model runs before: of the same size first."""


def types_beside(feeds: Values) -> tuple[str, ...]:
    """The other types for a model whose first input is that of the feeds."""
    first = next(iter(feeds.values()), None)
    return TYPES_BESIDE.get(str(first.dtype), ()) if isinstance(first, np.ndarray) else ()


def change_types(feeds: Values, to: str) -> Values:
    """The feeds of the first one's type in another: small numbers."""
    own = next(iter(feeds.values())).dtype
    changed = {}
    for name, value in feeds.items():
        is_own = isinstance(value, np.ndarray) and value.dtype == own
        changed[name] = make_small(value, to) if is_own else value
    return changed


def make_small(values: Any, to: str) -> Any:
    """The values in another type, between -100 and 100, without zeros: integers may be divided by."""
    small = np.clip(np.nan_to_num(values), -100, 100).astype(to)
    return np.where(small == 0, np.ones_like(small), small)


def keeps_denormals() -> bool:
    """Whether this thread computes with denormal numbers."""
    tiny = np.full(4, 1e-40, np.float32)
    return bool((tiny * np.float32(0.5) != 0).all())


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


def restore_denormals() -> None:
    """Have this thread compute with denormal numbers, as far as the system has a function for it: who ran before may
    have left it without."""
    import ctypes

    if sys.platform == "win32":
        ctypes.CDLL("ucrtbase")._controlfp(0, 0x03000000)  # _DN_SAVE, _MCW_DN
    elif sys.platform == "linux":
        restore = getattr(ctypes.CDLL(None), "fesetenv", None)
        if restore:
            restore(ctypes.c_void_p(-1))  # FE_DFL_ENV


def _copy(feeds: Values) -> Values:
    """The feeds at other addresses."""
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in feeds.items()}


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
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
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
