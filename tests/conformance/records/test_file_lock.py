"""Locks between processes: exclusive, shared, and released by the death of their holder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from epcheck.conformance.records import file_lock

HOLD = """
import os, sys
from epcheck.conformance.records import file_lock
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
print(getattr(file_lock, sys.argv[2])(descriptor), flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(path: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has taken a lock: `share` or `try_exclusive`."""
    command = [sys.executable, "-c", HOLD, str(path), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() in ("True", "None")
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    yield opened
    os.close(opened)


def test_an_exclusive_lock_has_one_holder(descriptor: int, tmp_path: Path) -> None:
    with holder(tmp_path / "lock", "try_exclusive"):
        assert not file_lock.try_exclusive(descriptor)
    assert file_lock.try_exclusive(descriptor)


def test_a_holder_that_is_killed_holds_no_longer(descriptor: int, tmp_path: Path) -> None:
    with holder(tmp_path / "lock", "try_exclusive") as process:
        process.kill()
        process.wait()
        assert file_lock.try_exclusive(descriptor)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no shared locks here")
def test_a_shared_lock_has_several_holders_and_becomes_exclusive_for_the_last(descriptor: int, tmp_path: Path) -> None:
    file_lock.share(descriptor)
    with holder(tmp_path / "lock", "share"):
        assert not file_lock.try_exclusive(descriptor)
    assert file_lock.try_exclusive(descriptor)
    second = os.open(tmp_path / "lock", os.O_RDWR)
    try:
        assert not file_lock.try_exclusive(second)
    finally:
        os.close(second)
