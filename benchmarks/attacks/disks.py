"""Disks that are full, fill up or cannot be written, under each place that a command writes to.

    python benchmarks/attacks/disks.py                       # Linux, as root or where user namespaces are allowed
    python benchmarks/attacks/disks.py --scenes "run,lab unpack" --pack lab.pack

A command runs while one folder is a file system of its own: of 16 or 120 KiB, or read-only. It must end with an exit
code and without a traceback, say the reason on one line at most, and leave no process. Then the file system has room,
and the command is resumed or done again: what was recorded is still there, and the result is that of one with room.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from benchmarks.attacks import scenes, shards  # noqa: E402
from benchmarks.attacks.attacked import Attacked, InChild, do_again, faults, program, undisturbed  # noqa: E402
from benchmarks.attacks.scenes import Scene  # noqa: E402

NEW_NAMESPACE, NEW_USERS = 0x00020000, 0x10000000
READ_ONLY, REMOUNT, PRIVATE, RECURSIVE = 1, 32, 1 << 18, 1 << 14
ROOM = "size=2g"
TROUBLES = ("size=16k", "size=120k", "read-only")
PLACES = {
    "run": ("runs", "cache", "tmp", "user"), "nightly": ("runs", "store", "cache", "tmp"), "validate": ("tmp", "user"),
    "store add": ("store", "run", "tmp"), "lab unpack": ("lab", "tmp"),
}  # fmt: skip
"""Scene -> the folders that become file systems."""

REASONS = ("No space left", "Read-only file system")


def mount(place: Path, options: str, flags: int = 0) -> None:
    """Mount a file system in memory. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"none", bytes(place), b"tmpfs", flags, options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(place))


def own_mounts() -> None:
    """This process, and what it forks, sees file systems that nobody else does. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    user = os.getuid()
    if library.unshare(NEW_NAMESPACE | (NEW_USERS if user else 0)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if user:
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    if library.mount(b"none", b"/", None, PRIVATE | RECURSIVE, None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def one_trouble(scene: Scene, place: str, trouble: str, folder: Path, truth: Any) -> list[str]:
    """The faults of a command whose folder `place` is in trouble."""
    own_mounts()
    (folder / place).mkdir(parents=True)
    mount(folder / place, ROOM)
    scene.prepare(folder)
    is_empty = not any((folder / place).iterdir())
    if trouble == "read-only" or not is_empty:
        mount(folder / place, ROOM, REMOUNT | READ_ONLY)
    else:
        mount(folder / place, trouble, REMOUNT)
    ended = Attacked(scene.command, folder, folder / "cache").ended()
    found = faults("nothing", ended)
    lines = sum(any(reason in line for reason in REASONS) for line in ended.printed.splitlines())
    if lines > 1:
        found.append(f"says it on {lines} lines: {ended.printed[-500:]}")
    kept = scene.kept(folder)
    mount(folder / place, ROOM, REMOUNT)
    return found + do_again(scene, folder, folder / "cache", kept, truth)


def in_a_process(scene: Scene, place: str, trouble: str, folder: Path, truth: Any) -> list[str]:
    """`one_trouble`, in a process whose mounts end with it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        with os.fdopen(read) as pipe:
            text = pipe.read()
        os.waitpid(pid, 0)
        return list(json.loads(text))
    try:
        found = one_trouble(scene, place, trouble, folder, truth)
    except InChild:
        os.close(write)
        raise
    except BaseException:
        found = [f"the program fails: {traceback.format_exc()[-600:]}"]
    os.write(write, json.dumps(found).encode()[:60_000])
    os._exit(0)


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scenes.add_options(parser)
    shards.add_options(parser)
    options = parser.parse_args()
    if (code := shards.in_shards(__file__, options)) is not None:
        return code
    folder = (options.folder or Path(tempfile.mkdtemp(prefix="epcheck-disks-"))).absolute()
    random.seed(options.seed)
    troubles = [
        (scene, place, trouble)
        for scene in scenes.chosen(options)
        for place in PLACES.get(scene.name, ())
        for trouble in TROUBLES
    ]
    truths: dict[str, Any] = {}
    wrong = 0
    for scene, place, trouble in troubles[shards.part(options)]:
        if scene.name not in truths:
            truths[scene.name], _ = undisturbed(scene, folder, folder / "cache")
        found = in_a_process(scene, place, trouble, folder / f"{scene.name}-{place}-{trouble}", truths[scene.name])
        for fault in found:
            print(f"{scene.name}, {place}, {trouble}: {fault}", flush=True)
        wrong += bool(found)
    print(json.dumps({"troubles": len(troubles[shards.part(options)]), "with_faults": wrong}))
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(program(main))
