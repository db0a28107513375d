"""The values of an evaluation by name, of which only so many are in memory.

The oldest of the others are in a temporary file that has no name, or is deleted by the system with its last handle: no
end of the process leaves it behind. A value comes back as it was, bit by bit and in the same order in memory, so that
products of it are the same.
"""

from __future__ import annotations

import math
import tempfile
import weakref
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from epcheck.generators.array import Array, is_of_ml_dtypes
from epcheck.models.oracle.node import OracleError

ROOM_BYTES = 256 << 20
"""Bytes of the values of one evaluation that are in memory together, one value at least."""

LEAST_BYTES = 1 << 12
"""Smaller values stay in memory."""


@dataclass(frozen=True)
class _Place:
    """Where the elements of a value are in the file, in bytes, and how they lie there."""

    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class ValueStore(MutableMapping[str, Any]):
    """Values by name. Other things than tensors of numbers, and views on parts of a tensor, stay in memory."""

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}
        self._spilled: dict[str, _Place] = {}
        self._file: IO[bytes] | None = None
        self._bytes = 0
        self._end = 0

    def __getitem__(self, name: str) -> Any:
        """The value; one from the file stays there. Raises KeyError, and OracleError where it cannot be read."""
        place = self._spilled.get(name)
        return self._held[name] if place is None else self._read(place)

    def __setitem__(self, name: str, value: Any) -> None:
        """Raises OracleError where the file cannot be written."""
        if name in self:
            del self[name]
        self._held[name] = value
        self._bytes += _count_bytes(value)
        if self._bytes > ROOM_BYTES:
            self._spill(name)

    def __delitem__(self, name: str) -> None:
        if self._spilled.pop(name, None) is None:
            self._bytes -= _count_bytes(self._held.pop(name))

    def __contains__(self, name: object) -> bool:
        return name in self._held or name in self._spilled

    def __iter__(self) -> Iterator[str]:
        yield from (*self._held, *self._spilled)

    def __len__(self) -> int:
        return len(self._held) + len(self._spilled)

    def _spill(self, newest: str) -> None:
        """Write the oldest values to the file until the others fit."""
        for name in [each for each, value in self._held.items() if each != newest and _count_bytes(value)]:
            if self._bytes <= ROOM_BYTES:
                break
            value = self._held[name]
            try:
                if self._file is None:
                    self._file = tempfile.TemporaryFile(prefix="epcheck-")  # noqa: SIM115  (it lives as long as this)
                    weakref.finalize(self, self._file.close)
                self._file.seek(self._end)
                self._file.write(value.ravel("K").data)
            except OSError as error:
                raise OracleError(f"its values do not fit into the folder '{tempfile.gettempdir()}' for temporary "
                                  f"files: {error.strerror or error}") from None  # fmt: skip
            self._spilled[name] = _Place(self._end, value.dtype, value.shape, value.strides)
            self._end += value.nbytes
            self._bytes -= value.nbytes
            del self._held[name]

    def _read(self, place: _Place) -> Array:
        assert self._file is not None
        flat = np.empty(math.prod(place.shape), place.dtype)
        self._file.seek(place.offset)
        if self._file.readinto(flat.data.cast("B")) != flat.nbytes:  # type: ignore[attr-defined]
            raise OracleError("the temporary file of its values was changed by somebody else")
        return np.lib.stride_tricks.as_strided(flat, place.shape, place.strides)


def _count_bytes(value: Any) -> int:
    """Of a value that can be spilled; 0 for any other."""
    if not isinstance(value, np.ndarray) or value.nbytes < LEAST_BYTES or value.dtype.kind not in "biuf":
        return 0
    order = sorted(range(value.ndim), key=lambda axis: -value.strides[axis])
    return value.nbytes if not is_of_ml_dtypes(value.dtype) and value.transpose(order).flags.c_contiguous else 0
