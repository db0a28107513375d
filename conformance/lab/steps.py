"""Steps that are done once: a stamp says what a finished step was made from, a lock keeps two installs apart.

A step whose inputs have changed since, or that was interrupted, has no valid stamp and is done again from its start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.process import Progress, Say, submit
from epcheck.conformance.records import atomic_file, file_lock

Work = Callable[[Say], tuple[str, dict[str, str]]]
"""What a step does; returns a line for people and facts for the status."""


@dataclass(frozen=True)
class Step:
    """One part of a lab. inputs: everything (as JSON) that decides its result; needs: steps that come before it."""

    name: str
    inputs: object
    work: Work
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stamp:
    """What is kept of a finished step: the hash of its inputs, a line for people, facts, and seconds taken."""

    inputs: str
    detail: str
    facts: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def stamp_path(layout: Layout, name: str) -> Path:
    return layout.stamps / f"{name}.json"


def read_stamp(layout: Layout, name: str) -> Stamp | None:
    """The stamp of a finished step; None for one that is unfinished or whose stamp cannot be read."""
    try:
        return Stamp(**json.loads(stamp_path(layout, name).read_text()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def digests(steps: Sequence[Step]) -> dict[str, str]:
    """The hash of each step's inputs, the steps that it needs included."""
    found: dict[str, str] = {}
    for step in steps:
        content = json.dumps([step.inputs, [found[name] for name in step.needs]], sort_keys=True)
        found[step.name] = hashlib.sha256(content.encode()).hexdigest()
    return found


def valid_stamps(layout: Layout, steps: Sequence[Step]) -> dict[str, Stamp]:
    """The stamps of the steps that need not be done again."""
    found = {}
    for name, digest in digests(steps).items():
        stamp = read_stamp(layout, name)
        if stamp and stamp.inputs == digest:
            found[name] = stamp
    return found


def perform(layout: Layout, steps: Sequence[Step], report: Callable[[Progress], None] | None) -> None:
    """Do the steps that are not done, and those that need one of these; what does not need each other at the same time.

    steps: each after those that it needs. report: called in this thread. When a step fails, the programs of the others
    are ended, nothing further begins, and its exception is raised once all have ended; so it is with an interruption.
    What has ended by then stays done.
    """
    wanted, done = digests(steps), set(valid_stamps(layout, steps))
    for step in steps:
        if any(name in wanted and name not in done for name in step.needs):
            done.discard(step.name)
            stamp_path(layout, step.name).unlink(missing_ok=True)
    events: queue.SimpleQueue[Progress | Future[Progress]] = queue.SimpleQueue()
    tell = report or (lambda _report: None)
    places = {step.name: (index, len(steps)) for index, step in enumerate(steps, 1)}
    for name in (step.name for step in steps if step.name in done):
        tell(Progress(name, *places[name], "done before", ended=True))
    waiting, under_way, stop = [step for step in steps if step.name not in done], 0, threading.Event()
    with ThreadPoolExecutor(len(steps)) as pool:
        try:
            while waiting or under_way:
                ready = [step for step in waiting if all(name in done or name not in wanted for name in step.needs)]
                for step in ready:
                    waiting.remove(step)
                    job = submit(pool, stop, _perform, layout, step, wanted[step.name], places[step.name], events.put)
                    job.add_done_callback(events.put)
                under_way += len(ready)
                event = events.get()
                if isinstance(event, Future):
                    under_way -= 1
                    event = event.result()
                    done.add(event.step)
                tell(event)
        except BaseException:
            stop.set()
            raise


def _perform(
    layout: Layout, step: Step, digest: str, place: tuple[int, int], tell: Callable[[Progress], None]
) -> Progress:
    """Do one step and stamp it; returns its last report. digest: of its inputs. place: its number, and of how many."""

    def say(message: str, count: int | None = None, total: int | None = None) -> None:
        tell(Progress(step.name, *place, message, count, total))

    path = stamp_path(layout, step.name)
    path.unlink(missing_ok=True)
    say("")
    began = time.monotonic()
    detail, facts = step.work(say)
    seconds = round(time.monotonic() - began, 1)
    stamp = {"inputs": digest, "detail": detail, "facts": facts, "seconds": seconds}
    atomic_file.write_text(path, json.dumps(stamp, indent=1) + "\n")
    return Progress(step.name, *place, f"{detail} ({seconds:.1f} s)", ended=True)


@contextlib.contextmanager
def lock_lab(layout: Layout, *, wait: float = 0.0) -> Iterator[int]:
    """Hold the lab's lock; yields its descriptor, for programs started here to hold as well.

    The lock of a killed install lives on in the downloads it started, which are waited for. wait: seconds to wait for
    an install that is alive. Raises LabError when somebody else works in the lab.
    """
    if sys.platform == "win32":
        raise LabError("the lab is for Linux; on Windows, DirectML runs without it")
    else:
        layout.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            began = time.monotonic()
            while not file_lock.try_exclusive(descriptor):
                holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
                patience = wait if _is_alive(holder) else max(wait, 120.0)
                if time.monotonic() - began > patience:
                    busy = f"another install (process {holder or '?'}) is at work in {layout.folder}"
                    raise LabError(f"{busy}; wait until it ends")
                time.sleep(0.2)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield descriptor
        finally:
            os.close(descriptor)


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
