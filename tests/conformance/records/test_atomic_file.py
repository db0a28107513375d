"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from epcheck.conformance.records import atomic_file


def test_a_file_takes_the_place_of_the_old_one_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_file.replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [*tmp_path.iterdir()] == [path]


def test_an_interruption_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half() -> None:
        with atomic_file.replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_bytes() == b"old"
    assert [*tmp_path.iterdir()] == [path]


def test_a_text_is_written_in_utf8_to_a_folder_that_is_made(tmp_path: Path) -> None:
    atomic_file.write_text(tmp_path / "new/folder/file", "ä\n")
    assert (tmp_path / "new/folder/file").read_bytes() == "ä\n".encode()


def test_a_folder_in_the_way_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError), atomic_file.replacing(tmp_path) as file:
        file.write(b"")


windows = pytest.mark.skipif(sys.platform != "win32", reason="elsewhere an open file is replaced")


@windows
def test_a_file_that_is_open_for_a_moment_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_bytes(b"old")
    opened = path.open("rb")
    scanner = threading.Timer(0.5, opened.close)
    scanner.start()
    atomic_file.write_text(path, "new")
    scanner.join()
    assert path.read_bytes() == b"new"
    assert [*tmp_path.iterdir()] == [path]


@windows
def test_what_cannot_replace_an_open_file_is_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic_file, "REPLACING_S", 0.2)
    path, beside = tmp_path / "report.html", tmp_path / "report.new.html"
    path.write_bytes(b"old")
    with path.open("rb"), pytest.raises(PermissionError) as raised:
        atomic_file.write_text(path, "new")
    assert (path.read_bytes(), beside.read_bytes()) == (b"old", b"new")
    assert {*tmp_path.iterdir()} == {path, beside}
    assert raised.value.strerror == (
        f"another program has it open; what was to replace it is in '{beside}'; close it there"
    )


def test_the_name_of_the_machine_is_found_without_asking_windows_management() -> None:
    """`platform.node` takes minutes where the service is stopped."""
    assert atomic_file._node().casefold() == platform.node().casefold()


def test_what_a_killed_process_left_goes_when_the_file_is_written_again(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    path = tmp_path / "a[1].json"
    here, there = atomic_file.machine(), "00c0ffee"
    over = [tmp_path / f".{path.name}.{where}-{ended.pid}.tmp" for where in (here, there)]
    own = tmp_path / f".{path.name}.{here}-{os.getpid()}.tmp"
    others = [
        tmp_path / f".{path.name}.{name}.tmp"
        for name in (f"{here}-{psutil.Process().ppid()}", "x", f"{here}-" + "9" * 30)
    ]
    foreign, new = tmp_path / f".b.json.{here}-{ended.pid}.tmp", tmp_path / f".{path.name}.{there}-{ended.pid}0.tmp"
    for file in (*over, own, *others, foreign, new):
        file.write_bytes(b"half")
        os.utime(file, (1, 1))
    for file in (over[0], new):  # of this machine it is known that the process has ended
        os.utime(file)
    atomic_file.write_text(path, "whole")  # which takes the name of `own`
    assert {*tmp_path.iterdir()} == {path, foreign, new, *others}


def test_what_killed_processes_left_goes_with_other_names_too(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = atomic_file.machine()
    left = tmp_path / f".nightly.html.{here}-{ended.pid}.tmp"
    kept = [
        tmp_path / name for name in (f".nightly.html.{here}-{os.getpid()}.tmp", "report.html", ".a.tmp", ".b.x-y.tmp")
    ]
    for file in (left, *kept):
        file.touch()
    atomic_file.remove_abandoned(tmp_path)
    assert {*tmp_path.iterdir()} == {*kept}
    atomic_file.remove_abandoned(tmp_path / "no folder")
