"""The module stores that a lab keeps (`startup/module_store.py`): each state of epcheck's sources has one of 5 MB."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from functools import cache
from importlib.resources import files
from pathlib import Path

from epcheck.conformance.lab import startup
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.steps import read_stamp

MOST_KEPT, UNUSED_S = 12, 14 * 86_400.0
"""How many stores a lab keeps, and after how many seconds without use a store goes."""

UNFINISHED_S = 3600.0
"""A store that is being written is written in less."""

_NAME = re.compile(r"modules-[0-9a-f]{16}(\.\d+)?")


def module_store(layout: Layout, runtime_step: str) -> Path:
    """Where the workers of a runtime keep the modules that they import, for this installation of it in this folder and
    this worker program. It counts as used now."""
    installed = repr((str(layout.folder), read_stamp(layout, "python"), read_stamp(layout, runtime_step), _programs()))
    store = layout.home / f"modules-{hashlib.sha256(installed.encode()).hexdigest()[:16]}"
    with contextlib.suppress(OSError):
        os.utime(store)
    return store


def prune(layout: Layout) -> None:
    """Remove stores that were not used lately, and all but those used last. Raises nothing.

    Nobody may use the lab meanwhile: a worker that finds its store gone writes it again, which takes half a second.
    """
    ages: list[tuple[float, str]] = []
    with contextlib.suppress(OSError), os.scandir(layout.home) as entries:
        now = time.time()
        ages = sorted((now - entry.stat().st_mtime, entry.path) for entry in entries if _NAME.fullmatch(entry.name))
    whole = [(age, path) for age, path in ages if not Path(path).suffix]
    gone = [path for at, (age, path) in enumerate(whole) if at >= MOST_KEPT or age > UNUSED_S]
    gone += [path for age, path in ages if Path(path).suffix and age > UNFINISHED_S]
    for path in gone:
        with contextlib.suppress(OSError):
            Path(path).unlink()


@cache
def _programs() -> tuple[tuple[str, bytes], ...]:
    """File and content of what runs in the lab: the store, and the worker program, whose modules it keeps."""
    folders = Path(str(files(startup))), Path(str(files("epcheck.conformance.workers.program")))
    sources = [source for folder in folders for source in folder.rglob("*.py")]
    return tuple((str(source), hashlib.sha256(source.read_bytes()).digest()) for source in sorted(sources))
