"""Arbitrary code in each kind of jailed process: it tries to reach what is outside, and nothing may be reached.

    python benchmarks/attacks/peer.py                             # all scenes, levels and users
    python benchmarks/attacks/peer.py --levels off                # what the attempts reach without a jail
    python benchmarks/attacks/peer.py --scenes examiner --attempts files,kill.*

The code comes in through the product's own path: as the function of an examination, as the prelude of a worker, as the
backend of a preparer, as a callable with `jail = true`, as the library of a plugin. All that it is tried on is made for
it: files in a folder of its own, processes, sockets on loopback, keys. What is reached is seen from outside.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.attacks.jailed import arena, forgeries, frames  # noqa: E402
from benchmarks.attacks.jailed.all_attempts import ATTEMPTS, chosen  # noqa: E402

ANSWERS, FRAMES = "forged answers", "forged frames"
SCENES = (
    "examiner", "examiner of repro", "worker", "preparer", "callable", "described plugin", "plugin", ANSWERS, FRAMES,
)  # fmt: skip
LEVELS = ("default", "landlock", "off")
USERS = ("root", "user")
ROUND_S = 150.0
ORDINARY = 65534
JAIL = "EPCHECK_JAIL"
MOST_WITHOUT_EFFECT = 10

RUN = "keep-a-program-from-being-written"
STATED: dict[str, frozenset[str]] = {
    "namespaces": frozenset((RUN,)),
    "landlock": frozenset((RUN, "write-a-file-of-shared-memory", "make-a-file-of-shared-memory")),
}
"""Level, as `epcheck status` has it -> the attempts that SECURITY.md says it does not hold."""


@dataclass
class Round:
    """What came of a scene at a level. reached: attempt -> what. report: attempt -> what the code inside says of it."""

    scene: str
    level: str
    user: str
    jail: str = ""
    not_run: str = ""
    tried: int = 0
    reached: dict[str, str] = field(default_factory=dict)
    report: dict[str, str] = field(default_factory=dict)
    otherwise_left: list[str] = field(default_factory=list)


def play(scene: str, level: str, names: list[str]) -> Round:
    """Play one round as the user of this process."""
    found = Round(scene, level, "user" if os.getuid() else "root")
    place = arena.Arena(names)
    try:
        (place.root / "order.json").write_text(json.dumps([place.outside.to_json(), ",".join(names)]))
        environment = {
            **os.environ, arena.MARK: place.token, "HOME": str(place.home), "EPCHECK_CACHE": place.outside.cache,
            "XDG_CACHE_HOME": str(place.home / ".cache"), "PYTHONPATH": str(ROOT), "COLUMNS": "400",
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        environment.pop(JAIL, None)
        if level != "default":
            environment[JAIL] = level
        found.jail = jail_in_words(environment)
        line = [sys.executable, __file__, "--enter", scene, str(place.root)]
        runner = subprocess.Popen(
            line, cwd=place.root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", preexec_fn=place.become_runner,
            pass_fds=[place.inherited, place.inherited_pipe],
        )  # fmt: skip
        try:
            place.printed, _ = runner.communicate(timeout=ROUND_S)
        except subprocess.TimeoutExpired:
            runner.kill()
            place.printed, _ = runner.communicate()
        reports = [text for text in place.printed.splitlines() if text.startswith("REPORT {")]
        if not reports:
            found.not_run = place.printed.strip()[-600:]
        place.report = json.loads(reports[0].removeprefix("REPORT ")) if reports else {}
        arena.wait_for_ends(place)
        judge(place, found)
    finally:
        place.close()
    return found


def judge(place: arena.Arena, found: Round) -> None:
    """See what was reached."""
    found.tried, found.report = len(place.names) if not found.not_run else len(place.report), place.report
    for name in place.names:
        try:
            words = ATTEMPTS[name].check(place, name)
        except (OSError, ValueError) as error:
            words = f"what is outside cannot be looked at any more: {error!r}"
        if words:
            found.reached[name] = words[:300]
    found.otherwise_left = [words for words in place.before["left"].values() if words not in ATTEMPTS]


def jail_in_words(environment: dict[str, str]) -> str:
    """What `epcheck status` says of the jail."""
    done = subprocess.run([*forgeries.EPCHECK, "status"], env=environment, capture_output=True, encoding="utf-8")
    lines = [text.strip() for text in done.stdout.splitlines()]
    return next((text.removeprefix("jail").strip() for text in lines if text.startswith("jail")), "")


def forge_all(scene: str, level: str) -> Round:
    """Have the examining process of real commands send forged answers, or a worker forged frames, and see what becomes
    of them."""
    found = Round(scene, level, "user" if os.getuid() else "root")
    trials: dict[str, Callable[[Path, dict[str, str]], str]] = {
        f"{command}: {name}": partial(forgeries.forge, command, name)
        for command in forgeries.COMMANDS for name in forgeries.FORGERIES
    }  # fmt: skip
    if scene == FRAMES:
        trials = {name: partial(frames.forge, name) for name in frames.FORGERIES}
    for label, forge in trials.items():
        with tempfile.TemporaryDirectory(prefix="epcheck-peer-forged-") as folder:
            home = Path(folder, "home")
            home.mkdir()
            environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"),
                           "PYTHONPATH": str(ROOT), "COLUMNS": "200"}  # fmt: skip
            environment.pop(JAIL, None)
            if level != "default":
                environment[JAIL] = level
            found.tried += 1
            if wrong := forge(Path(folder), environment):
                found.reached[label] = wrong
    return found


def play_elsewhere(scene: str, level: str, user: str, names: list[str]) -> Round:
    """Play one round in a process of its own, as a user."""
    line = [sys.executable, __file__, "--play", scene, level, ",".join(names)]
    if not os.getuid():
        line = apart(line, user == "user")
    done = subprocess.run(line, capture_output=True, encoding="utf-8", errors="replace")
    found = [text for text in done.stdout.splitlines() if text.startswith("ROUND ")]
    if found:
        return Round(**json.loads(found[-1].removeprefix("ROUND ")))
    return Round(scene, level, user, not_run=f"exit code {done.returncode}: {(done.stdout + done.stderr)[-800:]}")


def apart(line: list[str], as_user: bool) -> list[str]:
    """The command line in a mount namespace of its own: what an attempt of root mounts ends with the round, and never
    stands in a folder that somebody else removes. as_user: as `nobody`; an interpreter in a folder that only root may
    enter is bound to its place there, without what else that folder has."""
    private = ["unshare", "--mount", "--propagation", "private"]
    if not as_user:
        return [*private, *line]
    prefix = Path(sys.base_prefix).resolve()
    closed = [folder for folder in reversed(prefix.parents) if not folder.stat().st_mode & 1]
    user = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--inh-caps=-all", *line]
    if not closed:
        return [*private, *user]
    steps = (f"mount -t tmpfs none /mnt && mkdir /mnt/python && mount --bind {prefix} /mnt/python && "
             f"mount -t tmpfs -o mode=755 none {closed[0]} && mkdir -p {prefix} && "
             f'mount --bind /mnt/python {prefix} && exec "$@"')  # fmt: skip
    return [*private, "sh", "-c", steps, "sh", *user]


def level_of(found: Round) -> str:
    """The level that the jail really has."""
    if found.level == "off":
        return "off"
    return "namespaces" if "namespace" in found.jail and found.level != "landlock" else "landlock"


def lines_of(found: Round) -> Iterator[str]:
    """What is to be read of a round."""
    head = f"{found.scene}, {found.level}, {found.user}"
    if found.not_run:
        yield f"{head}: not run: {found.not_run}"
    stated = STATED.get(level_of(found), frozenset())
    for name, words in found.reached.items():
        if found.level != "off":
            yield f"{head}: {name}: {'stated: ' if name in stated else ''}{words}"
    for words in found.otherwise_left:
        yield f"{head}: a process is left: {words}"
    if found.level == "off":
        without = sorted(found.report.keys() - found.reached.keys())
        yield f"{head}: no effect here: {', '.join(f'{name} ({found.report[name]})' for name in without)}"


def faults(found: Round) -> int:
    """How many attempts reached what they may not."""
    if found.level == "off":
        return 0
    stated = STATED.get(level_of(found), frozenset())
    return len(found.reached.keys() - stated) + len(found.otherwise_left)


def row(found: Round) -> dict[str, object]:
    stated = STATED.get(level_of(found), frozenset())
    return {
        "scene": found.scene, "level": found.level, "user": found.user, "jail": found.jail, "tried": found.tried,
        "reached": len(found.reached.keys() - stated), "stated": len(found.reached.keys() & stated),
        "left otherwise": len(found.otherwise_left), "not run": found.not_run,
    }  # fmt: skip


def main() -> int:
    """See the module."""
    if sys.argv[1:2] == ["--enter"]:
        from benchmarks.attacks.jailed.entries import enter

        return enter(sys.argv[2], Path(sys.argv[3]))
    if sys.argv[1:2] == ["--play"]:
        scene, level, names = sys.argv[2], sys.argv[3], sys.argv[4].split(",")
        done = forge_all(scene, level) if scene in (ANSWERS, FRAMES) else play(scene, level, names)
        print("ROUND", json.dumps(asdict(done)))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", default=",".join(SCENES))
    parser.add_argument("--levels", default=",".join(LEVELS[:2]))
    parser.add_argument("--users", default=",".join(USERS) if not os.getuid() and shutil.which("setpriv") else "user")
    parser.add_argument("--attempts", default="", help="kinds, names or patterns of names, parted by commas")
    parser.add_argument("--json", type=Path, help="a file for all that was found")
    options = parser.parse_args()
    names = chosen(options.attempts)
    rounds = []
    for level in options.levels.split(","):
        for user in options.users.split(","):
            for scene in options.scenes.split(","):
                began = time.monotonic()
                rounds.append(found := play_elsewhere(scene, level, user, names))
                for text in lines_of(found):
                    print(text, flush=True)
                print(json.dumps({**row(found), "seconds": round(time.monotonic() - began)}), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(found) for found in rounds], indent=1))
    total = {"attempts": len(names), "rounds": len(rounds), "faults": sum(map(faults, rounds)),
             "not_run": sum(bool(found.not_run) for found in rounds)}  # fmt: skip
    print(json.dumps(total))
    return int(bool(total["faults"]))


if __name__ == "__main__":
    raise SystemExit(main())
