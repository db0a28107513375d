"""XZ for a packed lab: written by several cores, read with bounded memory.

A file is cut into pieces that are compressed apart, each a stream of its own; `xz -d` and `tar xJf` read such a file.
"""

from __future__ import annotations

import io
import lzma
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO

_PIECE = 1 << 26  # bytes; smaller pieces compress worse
_FILTERS = [
    {"id": lzma.FILTER_X86},  # most of a lab is machine code: 10 % smaller
    {"id": lzma.FILTER_LZMA2, "preset": 9, "dict_size": 1 << 25},
]
_MOST_THREADS = 4  # each needs 0.4 GB
_READER_MEMORY = 1 << 28  # bytes; ten times what our own files need
_BLOCK = 1 << 20


def compress(source: IO[bytes], target: IO[bytes], report: Callable[[int], None]) -> None:
    """Write `source` to `target`, compressed. report: called with the bytes of `source` that are done."""
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS)) as pool:
        pending: deque[tuple[int, Future[bytes]]] = deque()
        done = 0
        while (piece := source.read(_PIECE)) or pending:
            if piece:
                pending.append((len(piece), pool.submit(_compress, piece)))
            if not piece or len(pending) > _MOST_THREADS:
                size, job = pending.popleft()
                target.write(job.result())
                done += size
                report(done)


def _compress(piece: bytes) -> bytes:
    return lzma.compress(piece, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=_FILTERS)


class Decompressed(io.RawIOBase):
    """The content of an XZ file, from its beginning to its end, once.

    most: how many bytes may be read, until more are allowed. Reading raises lzma.LZMAError, EOFError for a file that is
    not whole, and ValueError where there is more content than that.
    """

    def __init__(self, source: IO[bytes], most: int) -> None:
        self._left = most
        self._source = source
        self._stream = self._new()
        self._read = b""

    def _new(self) -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_READER_MEMORY)

    def allow(self, more: int) -> None:
        """Let `more` further bytes be read."""
        self._left += more

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes, which must be positive; nothing at the end."""
        while True:
            if self._stream.eof:
                self._read = self._stream.unused_data or self._source.read(_BLOCK)
                if not self._read:
                    return b""
                self._stream = self._new()
            elif self._stream.needs_input:
                self._read = self._source.read(_BLOCK)
                if not self._read:
                    raise EOFError("the file ends in the middle")
            content = self._stream.decompress(self._read, size)
            self._read = b""
            self._left -= len(content)
            if self._left < 0:
                raise ValueError("the file has more content than it may have")
            if content:
                return content
