"""Steps that are done once: a stamp says what a finished step was made from, a lock keeps two installs apart.

A step whose inputs have changed since, or that was interrupted, has no valid stamp and is done again from its start.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from epcheck.conformance.lab.errors import LabError
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.process import Progress, Say
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
    """Do, in order, the steps that are not done, and those that need one of these. A step's exception leaves it, and
    what comes after, undone."""
    wanted, done = digests(steps), valid_stamps(layout, steps)
    for step in steps:
        if any(name in wanted and name not in done for name in step.needs):
            done.pop(step.name, None)
            stamp_path(layout, step.name).unlink(missing_ok=True)
    for index, step in enumerate(steps, 1):

        def say(
            message: str, count: int | None = None, total: int | None = None, name: str = step.name, index: int = index
        ) -> None:
            if report:
                report(Progress(name, index, len(steps), message, count, total))

        if step.name in done:
            say("done before")
            continue
        path = stamp_path(layout, step.name)
        path.unlink(missing_ok=True)
        say("")
        began = time.monotonic()
        detail, facts = step.work(say)
        seconds = round(time.monotonic() - began, 1)
        stamp = {"inputs": wanted[step.name], "detail": detail, "facts": facts, "seconds": seconds}
        atomic_file.write_text(path, json.dumps(stamp, indent=1) + "\n")
        say(f"{detail} ({seconds:.1f} s)")


@contextlib.contextmanager
def locked(layout: Layout, *, wait: float = 0.0) -> Iterator[int]:
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
