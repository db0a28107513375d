"""Signals at random moments to all processes of a command: nothing recorded is lost, nothing is left behind.

    python benchmarks/attacks/kills.py                       # 500, of runs, nightly, validate and store add
    python benchmarks/attacks/kills.py --count 20 --scenes run,validate --seed 3
    python benchmarks/attacks/kills.py --jobs 8 --target dml --scenes "run,lab unpack" --pack lab.pack
    python benchmarks/attacks/kills.py --signals STOP --whom "worker,fork server,examination" --count 60
    python benchmarks/attacks/kills.py --signals STOP,KILL --whom preparer --scenes "first run" --count 10

Each attack starts a command in a folder of its own, and sends SIGINT, SIGTERM, SIGHUP, SIGKILL or SIGSTOP to it or to a
process that it has started. When it has ended, nothing of it may run, and it has printed no traceback. Then the command
is resumed or done again: what was recorded is still there, the result is that of a command that nobody disturbed,
and there are no temporary files. The command is started by a fork of this process, which has imported epcheck.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.attacks import scenes, shards, victims  # noqa: E402
from benchmarks.attacks.attacked import (  # noqa: E402
    OF_COMMAND,
    OF_OTHERS,
    Attacked,
    Ended,
    do_again,
    faults,
    program,
    temporary_files,
    undisturbed,
)
from benchmarks.attacks.scenes import Scene  # noqa: E402


class Moment:
    """When a signal is sent, which, and to whom: all by chance."""

    def __init__(self, seed: str, signals: Sequence[str], whom: Sequence[str] = ()) -> None:
        """signals: the names of those that may be sent. whom: the kinds of processes that they may be sent to; any
        where there are none."""
        self.draw = random.Random(seed)
        self.whom = whom
        self.of_command = [number for number in OF_COMMAND if number.name in signals]
        self.of_others = [number for number in OF_OTHERS if number.name in signals]


@dataclass(frozen=True)
class Sent:
    """What was done to whom. kind: the signal and the kind of its process, by which it is counted."""

    words: str
    kind: str


def attack(scene: Scene, folder: Path, cache: Path, seconds: float, moment: Moment) -> tuple[Sent, Ended]:
    """One signal at a random moment; what was done to whom, and how the command ended."""
    command = Attacked(scene.command, folder, scene.cache(folder, cache))
    time.sleep(moment.draw.uniform(0, seconds))
    try:
        sent = send(command, moment)
    except (psutil.Error, ProcessLookupError):
        sent = None
    return sent or Sent("nothing: it had ended", "nothing"), command.ended()


def send(command: Attacked, moment: Moment) -> Sent | None:
    """Send a signal to a process of the command; None where it has none of the kind any more.

    Raises psutil.Error and ProcessLookupError where it has just ended.
    """
    draw = moment.draw
    if moment.whom:
        kind = draw.choice(moment.whom)
        found = victims.of_kind(command, kind)
        if not found:
            return None
        others = [] if kind == victims.COMMAND else found
    else:
        others = command.others()
        if draw.random() >= 0.6 and moment.of_command:
            others = []
    if others and moment.of_others:
        victim, number = draw.choice(others), draw.choice(moment.of_others)
        kind = victims.kind(victim)
        victim.send_signal(number)
        return Sent(
            f"{number.name} to process {others.index(victim) + 1} of {len(others)}, {kind}", f"{number.name} {kind}"
        )
    number = draw.choice(moment.of_command or moment.of_others)
    os.kill(command.pid, number)
    return Sent(f"{number.name} to the command", f"{number.name} {victims.COMMAND}")


def one_attack(
    scene: Scene, folder: Path, cache: Path, seconds: float, moment: Moment, truth: Any
) -> tuple[Sent, list[str]]:
    """Attack the command, do it again, and compare; what was done, and the faults."""
    folder.mkdir(parents=True)
    scene.prepare(folder)
    sent, ended = attack(scene, folder, cache, seconds, moment)
    found = faults(sent.words, ended)
    left = [] if ended.code == -signal.SIGKILL else temporary_files(folder)
    if left:
        found.append(f"temporary files: {left[:4]}")
    found += do_again(scene, folder, cache, scene.kept(folder), truth)
    return sent, [f"{scene.name}: {sent.words}: {fault}" for fault in found]


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--signals", default="INT,TERM,HUP,KILL,STOP,SEGV", help="which may be sent")
    parser.add_argument("--whom", help=f"kinds of processes, separated by commas, of {', '.join(victims.KINDS)}")
    scenes.add_options(parser)
    shards.add_options(parser)
    options = parser.parse_args()
    if (code := shards.in_shards(__file__, options)) is not None:
        return code
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="epcheck-kills-"))).absolute()
    until = time.monotonic() + options.seconds
    chosen = scenes.chosen(options)
    truths: dict[str, tuple[Any, float]] = {}
    found: list[str] = []
    done: Counter[str] = Counter()
    by_kind: Counter[str] = Counter()
    whom = options.whom.split(",") if options.whom else ()
    for number in range(options.count)[shards.part(options)]:
        # An attack is known by seed and number, in whichever shard it is made.
        moment = Moment(f"{options.seed} {number}", [f"SIG{name}" for name in options.signals.split(",")], whom)
        scene = moment.draw.choice(chosen)
        if scene.name not in truths:
            truths[scene.name] = undisturbed(scene, folder, folder / "cache")
        if time.monotonic() > until:
            break
        truth, seconds = truths[scene.name]
        sent, wrong = one_attack(scene, folder / str(number), folder / "cache", seconds, moment, truth)
        for words in wrong:
            print(f"{number}: {words}", flush=True)
        if not wrong:
            shutil.rmtree(folder / str(number))
        found += wrong
        done[scene.name] += 1
        by_kind[sent.kind] += 1
    print(json.dumps({"attacks": done.total(), "faults": len(found), **done, "sent": by_kind}))
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(program(main))
