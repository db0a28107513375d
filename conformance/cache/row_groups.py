"""Rows that are read together: what the cache keeps of each case, on shelves.

A run asks for all cases of an operator version and dtype one after the other, and reading a row of a few kilobytes by
itself takes several times as long as reading its whole shelf takes for each.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

from epcheck.conformance.cache import cache
from epcheck.conformance.cache.cache import Cache
from epcheck.generators.case import Case

UNREADABLE = (
    pickle.UnpicklingError, AttributeError, EOFError, IndexError, KeyError, MemoryError, OverflowError, RecursionError,
    TypeError, ValueError,
)  # fmt: skip
"""What reading rows may raise when they are none."""

UNWRITTEN = 64
"""Shelves with new rows, until those that wait for longest are written: most are complete by then."""

Shelf = Mapping[Any, Any]
"""Name -> row, both of builtin types."""


def shelf(case: Case) -> str:
    """With which others a case is read: `Slice-13/float32`."""
    return case.id.rpartition("/")[0]


def plain_pickle(data: bytes) -> Any:
    """What a pickle of builtin types holds. Raises UnpicklingError for anything more, one of UNREADABLE for less."""
    return _PlainUnpickler(io.BytesIO(data)).load()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no builtin type")


class Rows:
    """The rows of one kind in a cache. What is damaged, or not there, is a miss."""

    def __init__(self, kept: Cache, kind: str, who: bytes | str = "") -> None:
        """kind, who: as in `cache.key`, whose third part is the shelf."""
        self._cache = kept
        self._kind = kind
        self._who = who
        self._read: dict[str, Shelf] = {}
        self._new: dict[str, dict[Any, Any]] = {}

    def of(self, shelves: Iterable[str]) -> dict[str, Shelf]:
        """Name of a shelf -> its rows, of those that have any, as far as they are written."""
        wanted = dict.fromkeys(shelves)
        found = {name: self._read[name] for name in wanted if name in self._read}  # one goes on where a batch ends
        found |= self._look_up([name for name in wanted if name not in found])
        self._read = found
        return found

    def put(self, on: str, name: Any, row: Any) -> None:
        """Keep a row on that shelf; it is written some time later, at the latest by `write`."""
        if self._cache.is_used:
            self._new.setdefault(on, {})[name] = row
            if len(self._new) > UNWRITTEN:
                self._write([*islice(self._new, UNWRITTEN // 2)])

    def write(self) -> None:
        """Hand all new rows to the cache."""
        self._write([*self._new])

    def _write(self, shelves: list[str]) -> None:
        old = self._look_up(shelves)
        for name in shelves:
            rows = {**old.get(name, {}), **self._new.pop(name)}
            self._read.pop(name, None)
            self._cache.put({self._key(name): pickle.dumps(rows, pickle.HIGHEST_PROTOCOL)})

    def _look_up(self, shelves: Iterable[str]) -> dict[str, Shelf]:
        keys = {self._key(name): name for name in shelves}
        return {keys[key]: _shelf(value) for key, value in self._cache.get([*keys]).items()}

    def _key(self, name: str) -> bytes:
        return cache.key(self._kind, self._who, name)


def _shelf(value: bytes) -> Shelf:
    try:
        rows = plain_pickle(value)
    except UNREADABLE:
        return {}
    return rows if isinstance(rows, dict) else {}
