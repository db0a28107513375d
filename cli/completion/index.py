"""What completion knows of this installation: commands, options, operators, targets, kept as one file in the cache.

Reading it takes milliseconds; making it imports every command and operator, which takes seconds. It is made when
completion is installed, and again after this installation changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from epcheck.cli import kept_file

NAME = "completion.json"


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
    """operators: name, with its domain -> versions, newest first. dtypes: as `--dtype` takes them. targets: those that
    every machine knows."""

    commands: Mapping[str, Command]
    operators: Mapping[str, tuple[int, ...]]
    dtypes: tuple[str, ...]
    targets: tuple[str, ...]


def read() -> Index | None:
    """The index of this installation; None where there is none, or one of another state."""
    data = kept_file.read(NAME)
    try:
        return None if data is None else _index(data)
    except (KeyError, TypeError, AttributeError):
        return None


def write(index: Index) -> None:
    """Keep it."""
    kept_file.write(NAME, asdict(index))


def _index(data: Mapping[str, Any]) -> Index:
    commands = {
        name: Command(row["help"], {flag: Flag(**each) for flag, each in row["flags"].items()}, row["argument"])
        for name, row in data["commands"].items()
    }
    return Index(commands, data["operators"], data["dtypes"], data["targets"])
