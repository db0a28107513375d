"""Child processes: nothing that is measured shares an interpreter with anything else."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TAIL = 12
"""Lines of what a failed process said that the error repeats."""


class ChildFailed(RuntimeError):  # noqa: N818  (it is a state of the child)
    """A process ended as it must not; the message says how, and the last lines it wrote."""


@dataclass(frozen=True)
class Finished:
    """stdout: all of it. seconds: from before the start of the process to its end."""

    stdout: str
    seconds: float

    @property
    def report(self) -> dict[str, Any]:
        """The line of JSON that a script of this folder prints."""
        found: dict[str, Any] = json.loads(self.stdout.splitlines()[-1])
        return found


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    allowed: Collection[int] = (0,),
) -> Finished:
    """Run a command to its end. environment: all of it, None for this process's. allowed: exit codes.

    What it writes goes to files: a daemon that it leaves behind may hold them open, as Wine's do. Raises ChildFailed.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        started = time.perf_counter()
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment, cwd=folder, check=False
        )
        seconds = time.perf_counter() - started
        stdout.seek(0)
        stderr.seek(0)
        output, errors = (stream.read().decode(errors="replace") for stream in (stdout, stderr))
    if done.returncode not in allowed:
        last = "\n".join((output + errors).splitlines()[-TAIL:])
        raise ChildFailed(f"{Path(command[0]).name} ended with {done.returncode}:\n{last}")
    return Finished(output, seconds)
