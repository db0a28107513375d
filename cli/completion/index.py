"""What completion knows of this installation: commands, options, operators, targets, kept as one file in the cache.

Reading it takes milliseconds; making it imports every command and operator, which takes a second. It is made when
completion is installed, and again after this installation changed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PACKAGES = Path(__file__).resolve().parents[2]
"""Where the packages lie: of a checkout its root, of an installation `epcheck/`."""

NAME = "completion.json"

WATCHED = ("cli", "api", "generators/operators")
"""Folders below PACKAGES whose files change what there is to complete."""


@dataclass(frozen=True)
class Flag:
    """An option. kind: what its value is, of `candidates.KINDS`; empty for files, text and numbers. choices: the values
    that it may have, where these are few. help: a sentence."""

    kind: str
    choices: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Command:
    """A command, `lab install` for one below another. flags: name -> Flag. argument: kind of what stands without a
    flag. help: a sentence."""

    help: str
    flags: Mapping[str, Flag]
    argument: str


@dataclass(frozen=True)
class Index:
    """stamp: tells one state of an installation from another. operators: name, with its domain -> versions, newest
    first. dtypes: as `--dtype` takes them. targets: those that every machine knows."""

    stamp: str
    commands: Mapping[str, Command]
    operators: Mapping[str, tuple[int, ...]]
    dtypes: tuple[str, ...]
    targets: tuple[str, ...]


def path() -> Path | None:
    """Where the index is kept: in the folder of the cache, which EPCHECK_CACHE names; None when the user wants none."""
    chosen = os.environ.get("EPCHECK_CACHE", "")
    if chosen == "off":
        return None
    if chosen:
        return Path(chosen) / NAME
    import platformdirs

    return platformdirs.user_cache_path("epcheck") / NAME


def stamp() -> str:
    """Of this installation, from the times of its folders and files."""
    times = [path.stat().st_mtime_ns for name in WATCHED for path in (PACKAGES / name).rglob("*.py")]
    return f"{PACKAGES}|{sys.version_info[0]}.{sys.version_info[1]}|{len(times)}|{max(times)}"


def read() -> Index | None:
    """The index of this installation; None where there is none, or one of another state."""
    kept = path()
    if kept is None:
        return None
    try:
        data: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return _index(data) if data["stamp"] == stamp() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write(index: Index) -> None:
    """Keep it. A cache that cannot be written keeps nobody from completing: it takes a second each time."""
    target = path()
    if target is None:
        return
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(asdict(index)), encoding="utf-8")
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)


def _index(data: Mapping[str, Any]) -> Index:
    commands = {
        name: Command(row["help"], {flag: Flag(**each) for flag, each in row["flags"].items()}, row["argument"])
        for name, row in data["commands"].items()
    }
    return Index(data["stamp"], commands, data["operators"], data["dtypes"], data["targets"])
