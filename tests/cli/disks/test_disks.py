"""File systems that are full or cannot be written, under a command: real ones, in a namespace of mounts of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from epcheck.reports.store.store import open_store
from tests.command_line import ENVIRONMENT, START
from tests.reports.stored_records import a_run, many, stored

MOUNT = (
    'mkdir -p "$1" && mount -t tmpfs -o "$2" none "$1" && [ -z "$3" ] || mount -o "remount,$3" "$1"; shift 3; exec "$@"'
)


def can_mount() -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="this system allows no namespace of mounts")

FULL, READ_ONLY = ("size=16k", ""), ("size=1m", "ro")


def on(place: Path, disk: tuple[str, str], cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command while `place` is a file system of its own."""
    cwd.mkdir(exist_ok=True)
    command = ["unshare", "-rm", "sh", "-c", MOUNT, "sh", str(place), *disk, *START, *arguments]
    changed = {**ENVIRONMENT, "EPCHECK_CACHE": str(cwd / "cache"), "TMPDIR": str(cwd / "tmp")}
    (cwd / "tmp").mkdir(exist_ok=True)
    return subprocess.run(
        command, cwd=cwd, env=changed, capture_output=True, encoding="utf-8", check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("disk", "why"),
    [(FULL, "No space left on device"), (READ_ONLY, "Read-only file system")],
    ids=["full", "read-only"],
)
def test_a_store_that_cannot_be_written_is_said_once_and_has_nothing_by_halves(
    tmp_path: Path, disk: tuple[str, str], why: str
) -> None:
    stored(tmp_path / "run", tuple(many(500)), a_run(500))
    done = on(
        tmp_path / "here" / "store", disk, tmp_path / "here", "store", "add", str(tmp_path / "run"), "--store", "store"
    )
    assert done.returncode == 2
    assert (done.stdout + done.stderr).count(why) == 1
    assert len(done.stderr.splitlines()) == 1
    assert open_store(tmp_path / "here" / "store").runs == ()
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("place", ["runs", "cache"])
def test_a_run_on_a_full_disk_says_so_or_does_without(tmp_path: Path, place: str) -> None:
    """Without its cache a run takes longer; without its journal it ends."""
    arguments = (
        "run",
        "-t",
        "cpu",
        "--baseline",
        "none",
        "--no-reference",
        "--op",
        "Relu",
        "--limit",
        "3",
        "--root",
        "runs",
    )
    done = on(tmp_path / place, FULL, tmp_path, *arguments)
    printed = done.stdout + done.stderr
    assert "Traceback" not in printed
    assert len([line for line in printed.splitlines() if "No space left on device" in line]) <= 1
    assert (done.returncode, "No space left on device" in done.stderr) == ((2, True) if place == "runs" else (0, False))
