"""Files that are replaced as a whole: a reader finds the old content or the new one, never a part of it."""

from __future__ import annotations

import contextlib
import glob
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

LATELY_S = 60.0
"""A temporary file that is being written changes more often, in seconds."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside `path`, which takes its place in one step when the block ends without an exception.

    Raises OSError. Whatever was at `path` is then still there, and nothing else is left behind. What a process that was
    killed left behind goes when its file is written again.
    """
    _remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of `path` whose process has ended. One that changed lately is left: it may be written by a
    process of another machine."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        number = left.name.removeprefix(f".{path.name}.").removesuffix(".tmp")
        with contextlib.suppress(OSError):
            is_old = time.time() - left.stat().st_mtime > LATELY_S
            if is_old and number.isdecimal() and len(number) < 10 and not psutil.pid_exists(int(number)):
                left.unlink()


def write_text(path: Path, text: str) -> None:
    """Replace the file `path` by this text in UTF-8; its folder is made if need be. Raises OSError."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file `path` by this content; its folder is made if need be. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)
