"""One writer of a store at a time: nobody else writes between looking which file has more of a run and writing it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from epcheck.conformance.records import file_lock
from epcheck.reports.runs.run_folder import StoreError

PATIENCE_S = 120.0
"""How long the writer before may take: one that copies a year's largest file takes some seconds."""

WINDOWS_FILE = ".lock"
"""What is locked on Windows, where a folder cannot be, and removed afterwards. Elsewhere it is the folder itself."""


@contextlib.contextmanager
def only_writer(store: Path) -> Iterator[None]:
    """Nobody else writes to the store meanwhile. The system takes the lock back from a process that dies.

    A store on a file system without locks is written to all the same. Raises StoreError when another writer does not
    end within `PATIENCE_S` seconds.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            descriptor = _open_lock(store)
            stack.callback(_close, descriptor, store)
            until = time.monotonic() + PATIENCE_S
            while not file_lock.try_exclusive(descriptor):
                if time.monotonic() > until:
                    raise StoreError(f"{store}: another epcheck has been writing to it for {PATIENCE_S:g} s; try again")
                time.sleep(0.02)
        yield


def _open_lock(store: Path) -> int:
    if sys.platform == "win32":
        return os.open(store / WINDOWS_FILE, os.O_RDWR | os.O_CREAT)
    return os.open(store, os.O_RDONLY)


def _close(descriptor: int, store: Path) -> None:
    os.close(descriptor)
    if sys.platform == "win32":
        with contextlib.suppress(OSError):  # the next writer has it open
            (store / WINDOWS_FILE).unlink()
