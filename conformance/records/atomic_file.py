"""Files that are replaced as a whole: a reader finds the old content or the new one, never a part of it."""

from __future__ import annotations

import contextlib
import glob
import os
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

import psutil

IN_USE = (5, 32, 33)
"""ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION and ERROR_LOCK_VIOLATION of winerror.h: on Windows a file that another
program has open is not replaced, unless that program allows it; ONNX Runtime, browsers and scanners of files do not."""

REPLACING_S, AGAIN_S = 3.0, 0.05
"""For how many seconds a file that is in use is tried, and the seconds between two attempts: a scanner that looks at a
new file lets go of it in less."""

LATELY_S = 60.0
"""A temporary file that is being written changes more often, in seconds."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside `path`, which takes its place in one step when the block ends without an exception.

    Raises OSError. Whatever was at `path` is then still there, and nothing else is left behind, but where another
    program has the file open for more than REPLACING_S: then the new file stays beside it, and the error says where.
    What a process that was killed left behind goes when its file is written again.
    """
    _remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{machine()}-{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        _replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _replace(new: Path, path: Path) -> None:
    """Put a file in the place of another. Raises OSError."""
    until = time.monotonic() + REPLACING_S
    while True:
        try:
            new.replace(path)
            return
        except PermissionError as error:
            if getattr(error, "winerror", None) not in IN_USE or not path.is_file():
                raise
            if time.monotonic() > until:
                beside = path.with_name(f"{path.stem}.new{path.suffix}")
                new.replace(beside)
                words = f"another program has it open; what was to replace it is in '{beside}'; close it there"
                raise PermissionError(error.errno, words, str(path)) from None
        time.sleep(AGAIN_S)


def remove_abandoned(folder: Path) -> None:
    """Remove what killed processes left in a folder whose files nobody may write again. Raises nothing."""
    with contextlib.suppress(OSError):
        for left in folder.glob(".*.*-*.tmp"):
            where, _, number = left.name.removesuffix(".tmp").rpartition(".")[2].rpartition("-")
            _remove_if_abandoned(left, where, number)


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files of `path` whose process has ended."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*-*.tmp"):
        where, _, number = left.name.removeprefix(f".{path.name}.").removesuffix(".tmp").rpartition("-")
        _remove_if_abandoned(left, where, number)


def _remove_if_abandoned(left: Path, where: str, number: str) -> None:
    """Whether the process of another machine has ended is not known: its files go when they have not changed lately."""
    if not number.isdecimal() or len(number) > 9:
        return
    with contextlib.suppress(OSError):
        if not psutil.pid_exists(int(number)) if where == machine() else _is_old(left):
            left.unlink()


def _is_old(file: Path) -> bool:
    return time.time() - file.stat().st_mtime > LATELY_S


@cache
def machine() -> str:
    """This machine, among those that share a folder; where the system has them, this namespace of process ids."""
    space = ""
    with contextlib.suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    return f"{zlib.crc32(f'{_node()} {space}'.encode()):08x}"


def _node() -> str:
    """The machine's name in its network. `platform.node` would have Windows' WMI asked for the release, too."""
    return os.environ.get("COMPUTERNAME", "") if sys.platform == "win32" else os.uname().nodename


def write_text(path: Path, text: str) -> None:
    """Replace the file `path` by this text in UTF-8; its folder is made if need be. Raises OSError."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file `path` by this content; its folder is made if need be. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)
