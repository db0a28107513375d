"""What `--help` and Tab need of all commands and operators, kept until this installation changes.

Importing one command takes up to 1 s, all operators 3 s; a person who presses Tab has 0.5 s, and gets 0.3 s from here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

PACKAGES = Path(__file__).resolve().parents[1]
"""Where the packages lie: of a checkout its root, of an installation `epcheck/`."""

WATCHED = ("cli", "api", "generators")
"""Folders below PACKAGES whose files change commands, options and cases."""


def load(name: str, kind: type[T], make: Callable[[], T]) -> T:
    """The value of that name, made now where none is kept, or one of another installation."""
    path = find_path(name)
    try:
        content = msgspec.json.decode(path.read_bytes() if path else b"")
        if content["stamp"] == read_stamp():
            return msgspec.convert(content["value"], kind)
    except (OSError, msgspec.MsgspecError, KeyError, TypeError):
        pass
    value = make()
    if path:
        _write(path, {"stamp": read_stamp(), "value": value})
    return value


def find_path(name: str) -> Path | None:
    """Where the file is: in the folder of the cache, which EPCHECK_CACHE names; None when the user wants none."""
    chosen = os.environ.get("EPCHECK_CACHE", "")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen) / name
    import platformdirs

    return platformdirs.user_cache_path("epcheck") / name


def read_stamp() -> str:
    """Of this installation, from the times of its folders and files."""
    times = [path.stat().st_mtime_ns for name in WATCHED for path in (PACKAGES / name).rglob("*.py")]
    return f"{PACKAGES}|{sys.version_info[0]}.{sys.version_info[1]}|{len(times)}|{max(times)}"


def _write(path: Path, content: Any) -> None:
    """A cache that cannot be written costs time only."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(msgspec.json.encode(content))
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
