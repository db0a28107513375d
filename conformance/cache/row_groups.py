"""Row groups: rows of the cache, one for each case, that are read and written together.

A run asks for all cases of an operator version and dtype one after the other. To read a row of a few kilobytes by
itself takes several times as long as it takes for each row of a group that is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec

from epcheck.conformance.cache import cache
from epcheck.conformance.cache.cache import Cache
from epcheck.generators.case import Case

UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""What reading rows may raise when they are none of the type."""

pack, unpack = msgspec.msgpack.encode, msgspec.msgpack.decode
"""Values of builtin types as bytes, and back; `unpack` raises UNREADABLE."""

UNWRITTEN = 64
"""How many row groups with new rows may wait: then the older half is written, most of it complete by then."""

RowGroup = Mapping[Any, Any]
"""Name -> row, both of builtin types."""


def group_of(case: Case) -> str:
    """The name of the row group of a case: `Slice-13/float32`."""
    return case.id.rpartition("/")[0]


class RowGroups:
    """The rows of one kind in a cache, as MessagePack. What is damaged, not there, or not of the type is a miss."""

    def __init__(self, kept: Cache, kind: str, names: type, row: Any, who: bytes | str = "") -> None:
        """kind, who: as in `cache.key`, whose third part is the row group. names: the type of a row's name. row: that
        of a row, of builtin types all through."""
        self._cache = kept
        self._decoder = msgspec.msgpack.Decoder(dict[names, row])  # type: ignore[valid-type]
        self._kind = kind
        self._who = who
        self._read: dict[str, RowGroup] = {}
        self._new: dict[str, dict[Any, Any]] = {}

    def of(self, groups: Iterable[str]) -> dict[str, RowGroup]:
        """Name of a row group -> its rows, of those that have any, as far as they are written."""
        wanted = dict.fromkeys(groups)
        found = {name: self._read[name] for name in wanted if name in self._read}  # a batch may end within a group
        found |= self._look_up([name for name in wanted if name not in found])
        self._read = found
        return found

    def put(self, group: str, name: Any, row: Any) -> None:
        """Keep a row of a row group; it is written some time later, at the latest by `write`."""
        if self._cache.is_used:
            self._new.setdefault(group, {})[name] = row
            if len(self._new) > UNWRITTEN:
                self._write([*islice(self._new, UNWRITTEN // 2)])

    def write(self) -> None:
        """Hand all new rows to the cache."""
        self._write([*self._new])

    def _write(self, groups: list[str]) -> None:
        old = self._look_up(groups)
        for name in groups:
            rows = {**old.get(name, {}), **self._new.pop(name)}
            self._read.pop(name, None)
            self._cache.put({self._key(name): pack(rows)})

    def _look_up(self, groups: Iterable[str]) -> dict[str, RowGroup]:
        keys = {self._key(name): name for name in groups}
        return {keys[key]: self._group(value) for key, value in self._cache.get([*keys]).items()}

    def _group(self, value: bytes) -> RowGroup:
        try:
            rows: RowGroup = self._decoder.decode(value)
        except UNREADABLE:
            return {}
        return rows

    def _key(self, name: str) -> bytes:
        return cache.key(self._kind, self._who, name)
