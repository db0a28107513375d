"""What need not be computed twice on one machine: prepared cases, and what baseline and reference said of them.

One SQLite file in the user's cache folder, bounded in size; what was not used for longest goes first. Keys are digests
of everything that a value depends on, the code that makes it included, so nothing has to be invalidated. A cache that
cannot be read or written costs time and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import platformdirs

from epcheck.conformance.cache.code_digest import code_digest
from epcheck.generators.error import EpcheckError

FOLDER = "EPCHECK_CACHE"
"""Environment variable: the folder of the cache instead of `epcheck` in the user's own; `off` for none."""

LIMIT_BYTES = 1 << 30
"""How large the file may become: room for about 150,000 cases."""

SHRINK_TO = 0.8
"""The share of the limit that is kept when it is passed."""

AT_ONCE = 512
"""Entries that are read or written by one statement."""

UNWRITTEN_BYTES = 1 << 24
"""Bytes of entries that wait to be written."""

BUSY_S = 2.0
"""How long another process may keep the file, in seconds."""

DAY_S = 86_400

SCHEMA = """
PRAGMA journal_mode = wal;
PRAGMA synchronous = normal;
PRAGMA wal_autocheckpoint = 16384;
CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, day INTEGER NOT NULL, value BLOB NOT NULL);
"""
"""The day stands before the value, so that whoever looks for old entries need not read the values."""


class CacheError(EpcheckError, ValueError):
    """There is no cache; the message says why and what to do."""


def default_path() -> Path | None:
    """Where the cache is; None when the user wants none."""
    chosen = os.environ.get(FOLDER, "")
    if chosen == "off":
        return None
    return (Path(chosen) if chosen else platformdirs.user_cache_path("epcheck")) / "cache.sqlite"


def key(kind: str, who: bytes | str, what: bytes | str) -> bytes:
    """The key of what depends on these and on the code that makes it: what kind of entry, of whom, about what.

    kind: one of `code_digest.MAKERS`. Raises KeyError for another.
    """
    parts = [p if isinstance(p, bytes) else p.encode("utf-8", "surrogatepass") for p in (kind, who, what)]
    return hashlib.blake2b(b"\0".join(parts), digest_size=16, key=code_digest(kind)).digest()


def _checksum(name: bytes, value: bytes) -> bytes:
    """What stands before a value in the file: SQLite does not see a bit that flipped, and it must not judge."""
    return zlib.crc32(value, zlib.crc32(name)).to_bytes(4, "little")


def _value(name: bytes, checked: bytes) -> bytes | None:
    """The value that was kept under that name; None when it is damaged."""
    if not isinstance(checked, bytes):
        return None
    value = checked[4:]
    return value if checked[:4] == _checksum(name, value) else None


@contextlib.contextmanager
def open_cache() -> Iterator[Cache]:
    """The user's cache, to look at or to clear. Raises CacheError when there is none, and when it fails."""
    path = default_path()
    if path is None:
        raise CacheError(f"no cache: {FOLDER} is off")
    with contextlib.closing(Cache(path)) as kept:
        if not kept.trouble:
            yield kept
        if kept.trouble:
            raise CacheError(kept.trouble)


class Cache:
    """The file, or nothing at all: without a path, or when it cannot be opened, every question is a miss.

    trouble: why it is not used, in words; empty while all is well.
    """

    def __init__(self, path: Path | None, limit_bytes: int = LIMIT_BYTES) -> None:
        self.path = path
        self.trouble = ""
        self._limit = limit_bytes
        self._today = int(time.time() // DAY_S)
        self._unwritten: dict[bytes, bytes] = {}
        self._unwritten_bytes = 0
        self._old: list[bytes] = []
        self._file: sqlite3.Connection | None = None
        if path is not None:
            self._open(path)

    @property
    def is_used(self) -> bool:
        """Whether there is a file: what is put into another one is gone."""
        return self._file is not None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that are there."""
        found = {name: self._unwritten[name] for name in keys if name in self._unwritten} if self._unwritten else {}
        keys = [name for name in keys if name not in found] if found else keys
        for start in range(0, len(keys) if self._file else 0, AT_ONCE):
            for name, checked, day in self._rows(keys[start : start + AT_ONCE]):
                if (value := _value(name, checked)) is None:
                    continue
                found[name] = value
                if day != self._today:
                    self._old.append(name)
        return found

    def put(self, entries: Mapping[bytes, bytes]) -> None:
        """Keep these; they are written some time later, at the latest by `close`."""
        if self._file is None:
            return
        self._unwritten.update(entries)
        self._unwritten_bytes += sum(map(len, entries.values()))
        if len(self._unwritten) >= AT_ONCE or self._unwritten_bytes >= UNWRITTEN_BYTES:
            self._write()

    def close(self) -> None:
        """Write what is left, delete what is too much, close the file."""
        if self._file is not None:
            self._write()
            self._shrink()
        if self._file is not None:
            self._file.close()
            self._file = None

    def entries(self) -> int:
        """How many there are."""
        self._write()
        return next((int(row[0]) for row in self._execute("SELECT count(*) FROM entries")), 0)

    def size_bytes(self) -> int:
        """The size of the file without what it has free."""
        pages, free, page = (
            next((int(row[0]) for row in self._execute(f"PRAGMA {name}")), 0)
            for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * page

    def clear(self) -> None:
        """Forget everything."""
        self._unwritten.clear()
        self._execute("DELETE FROM entries")
        self._commit()
        self._execute("VACUUM")

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=BUSY_S)
            self._file.executescript(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)

    def _rows(self, keys: Sequence[bytes]) -> Iterable[tuple[bytes, bytes, int]]:
        marks = ",".join("?" * len(keys))
        return self._execute(f"SELECT key, value, day FROM entries WHERE key IN ({marks})", keys)

    def _write(self) -> None:
        entries, self._unwritten, self._unwritten_bytes = self._unwritten, {}, 0
        old, self._old = self._old, []
        self._many(
            "INSERT OR REPLACE INTO entries (key, day, value) VALUES (?, ?, ?)",
            ((name, self._today, _checksum(name, value) + value) for name, value in entries.items()),
        )
        self._many("UPDATE entries SET day = ? WHERE key = ?", ((self._today, name) for name in old))
        self._commit()

    def _shrink(self) -> None:
        size, wanted = self.size_bytes(), self._limit * SHRINK_TO
        if size <= self._limit:
            return
        while size > wanted and (count := self.entries()):
            surplus = max(1, math.ceil(count * (1 - wanted / size)))
            self._execute(
                f"DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries ORDER BY day, rowid LIMIT {surplus})"
            )
            size = self.size_bytes()
        self._commit()
        self._execute("VACUUM")

    def _execute(self, statement: str, values: Sequence[bytes] = ()) -> list[tuple[bytes, bytes, int]]:
        if self._file is None:
            return []
        try:
            return self._file.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._give_up(error)
            return []

    def _many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        if self._file is not None:
            try:
                self._file.executemany(statement, rows)
            except sqlite3.Error as error:
                self._give_up(error)

    def _commit(self) -> None:
        if self._file is not None:
            try:
                self._file.commit()
            except sqlite3.Error as error:
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        advice = "another process uses it" if busy else f"delete it, or set {FOLDER} to another folder or to off"
        self.trouble = f"the cache {self.path} cannot be used: {error}; {advice}"
        if self._file is not None:
            with contextlib.suppress(sqlite3.Error):
                self._file.close()
            self._file = None
