"""Two writers at once on a store: of a run the file with more of it stays, whoever comes last."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from epcheck.reports import StoreError
from epcheck.reports.store import maintenance, writer_lock
from epcheck.reports.store.maintenance import Addition
from epcheck.reports.store.store import open_store
from epcheck.reports.store.writer_lock import only_writer
from tests.reports.stored_nights import a_night, keep
from tests.reports.stored_records import a_slice, many

WRITER = """
import sys
from pathlib import Path
from epcheck.reports.store import maintenance
store, *files = map(Path, sys.argv[1:])
print("ready", flush=True)
sys.stdin.readline()
for file in files * 5:
    maintenance.add(store, file)
"""
RECORDS = 40


def writer(store: Path, files: list[Path]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(store), *map(str, files)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, encoding="utf-8", stdin=pipe, stdout=pipe, stderr=pipe)


def test_writers_in_several_processes_leave_each_run_whole(tmp_path: Path) -> None:
    """Three processes add ten runs each, one of all those runs half of the records, in other orders."""
    half, whole = tmp_path / "half" / "s", tmp_path / "whole" / "s"
    for folder in (half, whole):
        folder.parent.mkdir()
    records = tuple(many(RECORDS))
    fewer = [keep(half, a_night(day), records[: RECORDS // 2], RECORDS) for day in range(1, 11)]
    all_of_it = [keep(whole, a_night(day), records) for day in range(1, 11)]
    store = tmp_path / "store"
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(writer(store, files)) for files in (fewer, all_of_it, fewer[::-1])]
        for each in writers:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        ends = [each.communicate("go\n") for each in writers]
    assert [(each.returncode, errors) for each, (_, errors) in zip(writers, ends, strict=True)] == [(0, "")] * 3
    opened = open_store(store)
    assert (opened.problems, [run.recorded for run in opened.runs]) == ((), [RECORDS] * 10)
    assert len(list(store.iterdir())) == 10


def test_a_file_that_arrives_while_another_is_checked_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment between looking at the store and writing: what has come by then is compared again."""
    for name in ("few", "more"):
        (tmp_path / name).mkdir()
    fewer = keep(tmp_path / "few" / "s", a_night(1), [a_slice()], 2)
    more = keep(tmp_path / "more" / "s", a_night(1), tuple(many(2)))
    check, store = maintenance.check_file, tmp_path / "store"

    def slow(_stored: object) -> None:
        monkeypatch.setattr(maintenance, "check_file", check)
        assert maintenance.add(store, more).addition is Addition.ADDED

    monkeypatch.setattr(maintenance, "check_file", slow)
    assert maintenance.add(store, fewer).addition is Addition.FULLER
    assert [run.recorded for run in open_store(store).runs] == [2]


def test_a_writer_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_lock, "PATIENCE_S", 0.1)
    message = r"another epcheck has been writing to it for 0\.1 s"
    with only_writer(tmp_path), pytest.raises(StoreError, match=message), only_writer(tmp_path):
        pass
    began = time.monotonic()
    with only_writer(tmp_path):
        assert time.monotonic() - began < 0.1
    assert list(tmp_path.iterdir()) == []
