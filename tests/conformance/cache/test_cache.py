"""The cache: what it keeps, what goes first, and that nothing that befalls its file costs more than time."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from epcheck import reports
from epcheck.conformance.cache import cache
from epcheck.conformance.cache.cache import Cache
from tests.command_line import call, refused

ENTRIES = {f"key {number}".encode(): f"value {number}".encode() for number in range(2000)}

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "cache.sqlite"


def keep(path: Path, entries: dict[bytes, bytes], day: int | None = None, limit_bytes: int = cache.LIMIT_BYTES) -> str:
    """Put the entries, on that day, into the cache; what trouble it had."""
    with closing(Cache(path, limit_bytes)) as file:
        file._today = file._today if day is None else day
        file.put(entries)
    return file.trouble


def look_up(path: Path, *keys: bytes) -> dict[bytes, bytes]:
    with closing(Cache(path)) as file:
        return file.get(keys)


def sized(prefix: str, count: int, size_bytes: int = 1000) -> dict[bytes, bytes]:
    return {f"{prefix} {number}".encode(): bytes(size_bytes) for number in range(count)}


def test_what_was_put_is_there_when_the_file_is_opened_again(path: Path) -> None:
    assert keep(path, ENTRIES) == ""
    assert look_up(path, *ENTRIES, b"another") == ENTRIES


def test_a_later_value_replaces_an_earlier_one(path: Path) -> None:
    keep(path, {b"a": b"old", b"b": b"old"})
    keep(path, {b"a": b"new"})
    assert look_up(path, b"a", b"b") == {b"a": b"new", b"b": b"old"}


def test_entries_and_size_are_those_of_what_was_put(path: Path) -> None:
    with closing(Cache(path)) as file:
        empty = file.size_bytes()
        file.put(sized("a", 100, 10_000))
        assert file.entries() == 100
        assert 1_000_000 < file.size_bytes() - empty < 1_300_000


def test_clearing_leaves_nothing_and_a_small_file(path: Path) -> None:
    keep(path, sized("a", 100, 10_000))
    with closing(Cache(path)) as file:
        file.put({b"not written yet": b""})
        file.clear()
        assert file.entries() == 0
    assert path.stat().st_size < 50_000
    assert look_up(path, b"a 0", b"not written yet") == {}


def test_a_cache_without_a_file_takes_everything_and_has_nothing() -> None:
    with closing(Cache(None)) as file:
        file.put(ENTRIES)
        assert (file.get(tuple(ENTRIES)), file.entries(), file.size_bytes(), file.trouble) == ({}, 0, 0, "")


def test_what_was_not_used_for_longest_goes_first_and_the_file_shrinks(path: Path) -> None:
    """Three days' entries; the oldest were looked at again on the third."""
    for day in (1, 2):
        keep(path, sized(f"day {day}", 300), day)
    with closing(Cache(path)) as file:
        file._today = 3
        file.get(tuple(sized("day 1", 300)))
    limit = path.stat().st_size
    keep(path, sized("day 3", 300), 3, limit)
    kept = {prefix: len(look_up(path, *sized(prefix, 300))) for prefix in ("day 1", "day 2", "day 3")}
    assert kept["day 2"] == 0
    assert 0 < kept["day 1"] < 300
    assert kept["day 3"] == 300
    assert limit * 0.6 < path.stat().st_size <= limit * cache.SHRINK_TO


def test_an_entry_larger_than_the_limit_is_not_kept(path: Path) -> None:
    keep(path, {b"large": bytes(300_000)}, limit_bytes=200_000)
    assert path.stat().st_size <= 200_000
    assert look_up(path, b"large") == {}


def test_nothing_goes_below_the_limit(path: Path) -> None:
    keep(path, sized("a", 300))
    keep(path, {}, limit_bytes=path.stat().st_size + 1)
    assert len(look_up(path, *sized("a", 300))) == 300


def test_a_bit_that_flipped_in_the_file_makes_a_miss_and_no_wrong_value(path: Path) -> None:
    keep(path, {b"a": b"the true result", b"b": b"another"})
    written = path.read_bytes()
    assert written.count(b"the true result") == 1
    path.write_bytes(written.replace(b"the true result", b"the tr5e result"))
    assert look_up(path, b"a", b"b") == {b"b": b"another"}


def test_a_value_of_another_kind_makes_a_miss(path: Path) -> None:
    keep(path, {b"a": b"1", b"b": b"2", b"c": b"3"})
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE entries SET value = 7 WHERE key = ?", (b"a",))
        file.execute("UPDATE entries SET value = 'text' WHERE key = ?", (b"b",))
        file.commit()
    assert look_up(path, b"a", b"b", b"c") == {b"c": b"3"}


def in_the_way(path: Path, obstacle: str) -> None:
    """Make what keeps the cache from being opened there."""
    match obstacle:
        case "garbage":
            path.parent.mkdir()
            path.write_bytes(b"This is no database. " * 100)
        case "a damaged first page" | "damaged further pages":
            keep(path, ENTRIES)
            written = path.read_bytes()
            start = 100 if obstacle == "a damaged first page" else 4096
            path.write_bytes(written[:start] + bytes(len(written) - start))
        case "another table":
            path.parent.mkdir()
            with closing(sqlite3.connect(path)) as file:
                file.execute("CREATE TABLE entries (something INTEGER)")
        case "a folder":
            path.mkdir(parents=True)
        case "a file instead of its folder":
            path.parent.write_text("")


OBSTACLES = {
    "garbage": "file is not a database",
    "a damaged first page": "database disk image is malformed",
    "damaged further pages": "database disk image is malformed",
    "another table": "table entries has no column named key",
    "a folder": "unable to open database file",
    "a file instead of its folder": "exists",
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_a_file_that_cannot_be_used_is_said_and_costs_nothing_but_time(path: Path, obstacle: str) -> None:
    in_the_way(path, obstacle)
    with closing(Cache(path)) as file:
        file.put(ENTRIES)
        assert file.get(tuple(ENTRIES)) == {}
        file.put(ENTRIES)
        file.clear()
    assert file.trouble.startswith(f"the cache {path} cannot be used: ")
    assert OBSTACLES[obstacle] in file.trouble
    assert file.trouble.endswith("; delete it, or set EPCHECK_CACHE to another folder or to off")


@posix
def test_a_file_that_cannot_be_written_can_still_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an image of a container, or in somebody else's home. Root may write everywhere, so SQLite is told."""
    keep(path, {b"a": b"1"})
    connect = sqlite3.connect

    def read_only(_path: Path, timeout: float) -> sqlite3.Connection:
        return connect(f"file:{path}?mode=ro", uri=True, timeout=timeout)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    with closing(Cache(path)) as file:
        file.put({b"b": b"2"})
        assert file.get([b"a"]) == {b"a": b"1"}
        assert file.trouble == ""
    assert "attempt to write a readonly database" in file.trouble


def test_a_file_that_another_process_keeps_is_not_waited_for_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(path, {b"a": b"1"})
    monkeypatch.setattr(cache, "BUSY_S", 0.05)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with closing(Cache(path)) as file:
            assert file.get([b"a"]) == {b"a": b"1"}
            file.put({b"b": b"2"})
    assert file.trouble == f"the cache {path} cannot be used: database is locked; another process uses it"


WRITER = """
import sys
from contextlib import closing
from pathlib import Path
from epcheck.conformance.cache.cache import Cache

print("ready", flush=True)
sys.stdin.readline()
with closing(Cache(Path(sys.argv[1]))) as file:
    for number in range(3000):
        file.put({f"{sys.argv[2]} {number}".encode(): bytes(1000), f"both {number}".encode(): b"the same"})
print(file.trouble, end="")
"""


def test_two_processes_may_write_at_once(path: Path) -> None:
    keep(path, {})
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=60)[0] for writer in writers] == ["", ""]
    with closing(Cache(path)) as file:
        assert file.entries() == 9000
        assert file.get([b"one 2999", b"two 0", b"both 7"]).keys() == {b"one 2999", b"two 0", b"both 7"}


def test_kind_who_and_what_each_change_the_key() -> None:
    parts = (("prepared", "b", "c"), ("opinion", "b", "c"), ("prepared", "x", "c"), ("prepared", "b", "x"))
    assert len({cache.key(*of) for of in parts}) == 4
    assert cache.key("size", b"b", "c\udc80") == cache.key("size", "b", b"c\xed\xb2\x80")


def test_the_environment_moves_the_cache_and_switches_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPCHECK_CACHE", str(tmp_path))
    assert cache.default_path() == tmp_path / "cache.sqlite"
    monkeypatch.setenv("EPCHECK_CACHE", "off")
    assert cache.default_path() is None
    monkeypatch.delenv("EPCHECK_CACHE")
    kept = cache.default_path()
    assert kept is not None
    assert kept.name == "cache.sqlite"
    assert "epcheck" in kept.parts


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's cache is."""
    monkeypatch.setenv("EPCHECK_CACHE", str(tmp_path))
    return tmp_path / "cache.sqlite"


def test_the_command_says_where_the_cache_is_and_how_full(own: Path) -> None:
    keep(own, sized("a", 1234, 10_000))
    done = call("cache")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(rf"cache in {re.escape(str(own))}: 1,234 entries, 1\d\.\d MB of at most 1074 MB\n", done.out), (
        done.out
    )


def test_the_command_clears_the_cache(own: Path) -> None:
    keep(own, sized("a", 1234, 10_000))
    done = call("cache", "clear")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"cleared, 1\d\.\d MB freed\n", done.out), done.out
    assert own.stat().st_size < 50_000
    assert call("cache").out.startswith(f"cache in {own}: 0 entries, 0.0 MB")


@pytest.mark.parametrize("command", [("cache",), ("cache", "clear")])
def test_a_cache_that_is_off_is_said(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPCHECK_CACHE", "off")
    assert refused(*command) == "no cache: EPCHECK_CACHE is off"


@pytest.mark.parametrize("command", [("cache",), ("cache", "clear")])
def test_a_cache_that_cannot_be_used_is_said(command: tuple[str, ...], own: Path) -> None:
    own.write_bytes(b"garbage" * 1000)
    assert refused(*command).startswith(f"the cache {own} cannot be used: file is not a database; delete it, or set ")


def test_a_cache_that_fails_while_it_is_cleared_is_not_said_to_be_clear(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(own, {b"a": b"1"})
    monkeypatch.setattr(cache, "BUSY_S", 0.05)
    with closing(sqlite3.connect(own)) as other:
        other.execute("BEGIN EXCLUSIVE")
        done = call("cache", "clear")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"epcheck: the cache {own} cannot be used: database is locked; another process uses it\n"


RUN = ("run", "--target", "cpu", "--baseline", "none", "--no-reference", "--op", "Slice", "-k", "rank_", "--limit", "6")


@pytest.mark.slow
def test_a_run_with_a_damaged_cache_ends_as_one_without(own: Path, tmp_path: Path) -> None:
    own.write_bytes(b"garbage" * 1000)
    done = call(*RUN, "--root", str(tmp_path / "damaged"))
    without = call(*RUN, "--root", str(tmp_path / "without"), "--no-cache")
    assert (done.code, done.err) == (without.code, without.err) == (0, "")
    run, other = (reports.read_run(reports.latest(tmp_path / name)) for name in ("damaged", "without"))
    assert run.status == other.status == "complete"
    (note,) = run.notes
    assert note == (
        f"the cache {own} cannot be used: file is not a database; delete it, or set "
        "EPCHECK_CACHE to another folder or to off"
    )
    assert json.loads((reports.latest(tmp_path / "damaged") / "run.json").read_text())["notes"] == [note]
    assert other.notes == ()
