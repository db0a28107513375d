"""Attempts: what the code inside does, and how the outside is looked at afterwards. Both sides import this module."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.attacks.jailed.arena import Arena

PLANTED = "planted"
"""The name of the file that stands in the folder of each attempt."""

EACH_S = 4.0
"""Seconds that an attempt may take inside."""


@dataclass(frozen=True)
class Victim:
    """A process outside. memory: address of 16 bytes in it. secret: address of 16 others. pipe: its descriptor of one
    end of a pipe whose other end is read outside."""

    pid: int
    memory: int
    secret: int
    pipe: int


@dataclass(frozen=True)
class Outside:
    """What the code inside is told of the outside. folder: has one for each attempt. numbers: ports, keys, inodes;
    names: of sockets and queues. terminals: attempt -> file."""

    folder: str
    home: str
    cache: str
    pid: int
    numbers: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    victims: dict[str, Victim] = field(default_factory=dict)
    terminals: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def of_json(text: str) -> Outside:
        found = json.loads(text)
        found["victims"] = {name: Victim(**each) for name, each in found["victims"].items()}
        return Outside(**found)


@dataclass(frozen=True)
class Goal:
    """What one attempt is made on."""

    name: str
    outside: Outside

    @property
    def folder(self) -> Path:
        return Path(self.outside.folder) / self.name

    @property
    def planted(self) -> str:
        return str(self.folder / PLANTED)

    @property
    def victim(self) -> Victim:
        return self.outside.victims[self.name]

    @property
    def terminal(self) -> str:
        return self.outside.terminals[self.name]


Inside = Callable[[Goal], object]
Check = Callable[["Arena", str], str]


@dataclass(frozen=True)
class Attempt:
    """inside: done in a fork of the jailed process. check: what of the outside was reached, empty for nothing. needs:
    what the outside makes for it alone."""

    inside: Inside
    check: Check
    kind: str
    needs: frozenset[str]


ATTEMPTS: dict[str, Attempt] = {}


def attempt(kind: str, check: Check, *needs: str) -> Callable[[Inside], Inside]:
    """Put a function into ATTEMPTS under its name."""

    def add(inside: Inside) -> Inside:
        name = getattr(inside, "__name__", "").replace("_", "-")
        ATTEMPTS[name] = Attempt(inside, check, kind, frozenset(needs))
        return inside

    return add


def chosen(patterns: str) -> list[str]:
    """The names of the attempts of these kinds or names, parted by commas; all for nothing."""
    wanted = [word for word in patterns.split(",") if word]
    fits = [name for name, each in ATTEMPTS.items() if not wanted or each.kind in wanted
            or any(re.fullmatch(word, name) for word in wanted)]  # fmt: skip
    return fits


def attack(text: str, names: str) -> str:
    """Make the attempts, each in a fork of this process; what each came to, as JSON. text: Outside as JSON."""
    outside = Outside.of_json(text)
    return json.dumps({name: _attempted(ATTEMPTS[name].inside, Goal(name, outside)) for name in names.split(",")})


def _attempted(inside: Inside, goal: Goal) -> str:
    reader, writer = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        return repr(error)
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        ctypes.CDLL(None).prctl(15, goal.name.encode()[:15], 0, 0, 0)  # PR_SET_NAME, which its forks inherit
        try:
            result: Any = inside(goal)
        except BaseException as error:
            result = repr(error)
        os.write(writer, str(result)[:200].encode())
        os._exit(0)
    os.close(writer)
    until = time.monotonic() + EACH_S
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            break
        time.sleep(0.003)
    os.set_blocking(reader, False)
    try:
        return os.read(reader, 400).decode("utf-8", "replace") or "nothing"
    except BlockingIOError:
        return "no answer"
    finally:
        os.close(reader)
