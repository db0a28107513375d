"""Hostile models through every command that reads models: whatever they are, a verdict or one sentence.

    python benchmarks/attacks/models.py                                  # 750 crafted, 5,000 mutated, five commands
    python benchmarks/attacks/models.py --crafted 60 --mutated 40 --commands validate,doctor --seconds 300
    python benchmarks/attacks/models.py --target dml --jobs 8

The commands run one after the other in one process, as for somebody who imports epcheck; each tenth is a process of its
own, as for somebody who types it. Prints what was found, each with the file of the model, and a line of sums. Exit code
1 where a command ended in a traceback, hung, wrote a file that nobody asked for, or left one behind; and where the
process of the commands, in which no model is read, took more than 500 MiB.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

import hypothesis  # noqa: E402
import numpy as np  # noqa: E402
from onnx import numpy_helper  # noqa: E402

from benchmarks.attacks import shards  # noqa: E402
from benchmarks.attacks.crafted_models import crafted  # noqa: E402
from tests.command_line import ENVIRONMENT, Done, call, epcheck  # noqa: E402
from tests.fuzzing.hostile_models import hostile  # noqa: E402

TIMEOUT_S, HANG_S = 5, 300.0
"""What a step of a session may take, and after what a command hangs: the oracle has 180 s of its own."""

MEMORY_MIB = 500.0
COMMANDS = {
    "validate": ("in/model.onnx", "--seed", "0", "--timeout", str(TIMEOUT_S), "--html", "out/a.html"),
    "reduce": ("in/model.onnx", "--seconds", "20", "--timeout", str(TIMEOUT_S), "--out", "out/reduced"),
    "doctor": ("in/model.onnx", "--float16", "--seed", "0", "--seconds", "20", "--timeout",
               str(TIMEOUT_S), "--html", "out/b.html", "--write", "out/b.onnx"),
    "harvest": ("in/model.onnx", "--out", "out/harvested", "--timeout", str(TIMEOUT_S)),
    "replay": ("in",),
}  # fmt: skip


@dataclass(frozen=True)
class Ended:
    """How a command ended. fault: what is wrong with that; empty for nothing. mib: the most that the process of the
    commands ever took."""

    command: str
    fault: str
    kind: str
    seconds: float
    mib: float


class Commands:
    """A process that does one command after the other, as somebody does who imports epcheck."""

    def __init__(self, folder: Path, target: str = "cpu", typed_each: int = 0) -> None:
        """typed_each: each of so many commands is a process of its own; 0 for none."""
        self._folder, self._target, self._typed_each, self._done = folder, target, typed_each, 0
        self._changed = {"EPCHECK_CACHE": str(folder / "cache"), "TMPDIR": str(folder / "tmp")}
        for name in ("in/test_data_set_0", "out", "tmp", "cache"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(4):
            tensor = numpy_helper.from_array(np.ones((2, 3), np.float32), "x")
            (folder / f"in/test_data_set_0/input_{number}.pb").write_bytes(tensor.SerializeToString())
        if not (folder / "in/pipe").exists() and hasattr(os, "mkfifo"):
            os.mkfifo(folder / "in/pipe")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, __file__, "--serve", "--target", self._target]
        return subprocess.Popen(
            command, cwd=self._folder, env={**os.environ, **self._changed}, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def run(self, command: str, data: bytes, until: float = math.inf) -> Ended | None:
        """A command on a model of these bytes; None where the time is over before it has ended."""
        (self._folder / "in/model.onnx").write_bytes(data)
        before, began = self._files(), time.monotonic()
        self._done += 1
        if self._typed_each and self._done % self._typed_each == 0:
            ended = self._typed(command, until - began)
        else:
            ended = self._asked(command, until)
        if ended and ended.kind != "lost" and (changed := self._files() ^ before):
            return replace(ended, fault=f"{ended.fault} files: {sorted(changed)[:4]}".strip())
        return ended

    def _typed(self, command: str, left_s: float) -> Ended | None:
        """In a process of its own."""
        began = time.monotonic()
        how = {"env": {**ENVIRONMENT, **self._changed}, "timeout": max(0.1, min(HANG_S, left_s)), "errors": "replace"}
        try:
            done = epcheck(command, *_arguments(command, self._target), cwd=self._folder, **how)
        except subprocess.TimeoutExpired:
            why = f"hangs for {HANG_S:g} s"
            return None if left_s < HANG_S else Ended(command, why, "lost", HANG_S, 0.0)
        return Ended(command, *judged(done), time.monotonic() - began, 0.0)

    def _asked(self, command: str, until: float) -> Ended | None:
        """In the process of the commands."""
        began = time.monotonic()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        ending = threading.Timer(max(0.1, min(HANG_S, until - began)), self._process.kill)
        ending.start()
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        ending.cancel()
        seconds = time.monotonic() - began
        if not line:
            self._process.wait()
            if time.monotonic() >= until:
                return None
            self._process = self._start()
            why = f"hangs for {HANG_S:g} s" if seconds >= HANG_S else "the process of the commands ended"
            return Ended(command, why, "lost", seconds, 0.0)
        answer = json.loads(line)
        return Ended(command, answer["fault"], answer["kind"], seconds, answer["mib"])

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _files(self) -> set[tuple[str, int, int]]:
        """All files but those that were asked for: path, size, time of the last change."""
        kept = ("out", "cache")
        paths = [path for path in self._folder.rglob("*") if path.relative_to(self._folder).parts[0] not in kept]
        found = set()
        for path in (path for path in paths if not path.is_dir()):
            state = path.lstat()
            found.add((str(path.relative_to(self._folder)), state.st_size, state.st_mtime_ns))
        return found


def mutated(count: int, seed: int) -> list[tuple[str, bytes]]:
    """(name, bytes) of models with accidents in their protobuf."""
    found: list[bytes] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(max_examples=count, database=None, deadline=None, phases=[hypothesis.Phase.generate],
                         suppress_health_check=list(hypothesis.HealthCheck))  # fmt: skip
    @hypothesis.given(data=hostile())
    def draw(data: bytes) -> None:
        found.append(data)

    draw()
    return [(f"mutated {number}", data) for number, data in enumerate(found[:count])]


def serve(target: str) -> None:
    """Do the commands whose names arrive on stdin; what the model prints goes nowhere."""
    import resource

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        command = line.strip()
        fault, kind = _ended(command, target)
        mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        answers.write(json.dumps({"fault": fault, "kind": kind, "mib": mib}) + "\n")
        answers.flush()


def _ended(command: str, target: str) -> tuple[str, str]:
    """What is wrong with how a command ended, and how it did."""
    try:
        return judged(call(command, *_arguments(command, target)))
    except Exception as error:
        return f"traceback: {error!r}"[:400], "traceback"


def _arguments(command: str, target: str) -> tuple[str, ...]:
    return (*COMMANDS[command], *(() if command == "harvest" else ("-t", target)))


def judged(done: Done) -> tuple[str, str]:
    """What is wrong with how a command ended, and how it did."""
    printed = done.out + done.err
    if "please report it" in printed or "Traceback" in printed:
        return f"traceback: {printed[-400:]}", "traceback"
    if done.code not in (0, 1, 2):
        return f"exit code {done.code}", "code"
    if done.code == 2 and len(done.err.splitlines()) > 1:
        return f"more than a sentence: {done.err[:400]!r}", "sentences"
    if strange := [c for c in printed if not c.isprintable() and c not in "\n\t"]:
        return f"prints {strange[:3]!r}", "characters"
    return "", f"exit code {done.code}"


def attack(
    models: list[tuple[str, bytes]], commands: list[str], until: float, running: Commands, folder: Path
) -> Iterator[Ended]:
    """Each model through each command, until the time is over. Models that find something are kept in the folder."""
    (folder / "found").mkdir(exist_ok=True)
    for number, (name, data) in enumerate(models):
        for command in commands:
            ended = running.run(command, data, until)
            if ended is None:
                return
            if ended.fault:
                path = folder / "found" / f"{number}-{command}.onnx"
                path.write_bytes(data)
                print(f"{command}, {name}: {ended.fault} ({path})", flush=True)
            yield ended
    running.close()


def chosen(options: argparse.Namespace, folder: Path) -> list[tuple[str, bytes]]:
    """(name, bytes) of the models of this shard. folder: where they will lie."""
    models = list(crafted(options.crafted, folder))
    if options.models:
        models = [(path.name, path.read_bytes()) for path in sorted(options.models.rglob("*.onnx"))]
    random.Random(options.seed).shuffle(models)
    models = models[shards.part(options)]
    # Each shard draws its own: drawing thousands takes a minute.
    mine = 0 if options.models else len(range(options.mutated)[shards.part(options)])
    return models + (mutated(mine, options.seed * 1000 + shards.part(options).start) if mine else [])


def report(ended: list[Ended]) -> dict[str, Any]:
    """The sums."""
    by_command = {name: Counter(each.kind for each in ended if each.command == name) for name in COMMANDS}
    return {
        "commands": len(ended),
        "faults": sum(bool(each.fault) for each in ended),
        "longest_s": round(max((each.seconds for each in ended), default=0.0), 1),
        "parent_mib": round(max((each.mib for each in ended), default=0.0), 1),
        "by_command": {name: dict(counts) for name, counts in by_command.items() if counts},
    }


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crafted", type=int, default=750)
    parser.add_argument("--mutated", type=int, default=5000)
    parser.add_argument("--models", type=Path, help="a folder: its models, in place of crafted and mutated ones")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--target", default="cpu", help="the provider that is asked: cpu, dml")
    parser.add_argument("--typed-each", type=int, default=10, help="each of so many commands is a process of its own")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    shards.add_options(parser)
    options = parser.parse_args()
    if options.serve:
        serve(options.target)
        return 0
    if (code := shards.in_shards(__file__, options)) is not None:
        return code
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="epcheck-attack-"))).absolute()
    models = chosen(options, folder / "work" / "in")
    running = Commands(folder / "work", options.target, options.typed_each)
    ended: list[Ended] = []
    until = time.monotonic() + options.seconds
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        for each in attack(models, options.commands.split(","), until, running, folder):
            ended.append(each)
    found = report(ended)
    print(json.dumps({"models": math.ceil(len(ended) / len(options.commands.split(","))), **found}))
    return int(bool(found["faults"]) or found["parent_mib"] > MEMORY_MIB)


if __name__ == "__main__":
    raise SystemExit(main())
