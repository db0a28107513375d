"""Checksums in the files of a run: in JSON a member `crc32`, the last of its object, over every byte before it; in
Parquet one of the rows and one of the footer.

CRC-32 finds what disks, copies and editors do to a file. It is no signature: who wants to deceive computes it anew.
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterator

CHANGED = "checksum mismatch: the file was changed after it was written"

_LINE_END = re.compile(rb',"crc32":"([0-9a-f]{8})"}\n\Z')
_DOCUMENT_END = re.compile(rb',\n  "crc32": "([0-9a-f]{8})"\n}\n\Z')


def line_with_checksum(line: bytes) -> bytes:
    """A line that holds one JSON object, and ends with its newline, with the checksum added."""
    body = line[:-2]  # without `}` and newline
    return b'%b,"crc32":"%08x"}\n' % (body, zlib.crc32(body))


def document_with_checksum(document: bytes) -> bytes:
    """A JSON object, indented by 2 and ending with `}` and newline after a newline, with the checksum added."""
    body = document[:-3]
    return b'%b,\n  "crc32": "%08x"\n}\n' % (body, zlib.crc32(body))


def check_line(line: bytes) -> bytes | None:
    """The line without its checksum, as it was before `line_with_checksum`; None when it has none.

    Raises ValueError when the checksum is not that of the line.
    """
    end = _LINE_END.search(line, max(0, len(line) - 24))
    if end is None:
        return None
    if not _fits(line[: end.start()], end[1]):
        raise ValueError(CHANGED)
    return line[: end.start()] + b"}\n"


def check_document(document: bytes) -> bool:
    """Whether a document has a checksum. Raises ValueError when it is not that of the document."""
    end = _DOCUMENT_END.search(document, max(0, len(document) - 40))
    if end is not None and not _fits(document[: end.start()], end[1]):
        raise ValueError(f"{CHANGED}; restore it, or delete its key crc32 to accept the change")
    return end is not None


def _fits(body: bytes, checksum: bytes) -> bool:
    return zlib.crc32(body) == int(checksum, 16)


PARQUET_KEY = "epcheck.checksums"
"""Key of a Parquet file's metadata: two CRC-32 as `89abcdef 01234567`, of what stands before the footer, and of the
footer with zeros in this place. DuckDB reads pages without a look at their own checksums, and a footer has none."""

NO_CHECKSUMS = "00000000 00000000"

_TAIL = struct.Struct("<I4s")
"""How a Parquet file ends: the footer's length in bytes, and the magic."""

_IN_FOOTER = re.compile(re.escape(PARQUET_KEY.encode()) + rb"\x18\x11([0-9a-f]{8}) ([0-9a-f]{8})")
"""Thrift's compact protocol: the next field is a string of 17 bytes."""


def parquet_with_checksums(file: memoryview) -> Iterator[bytes | memoryview]:
    """A Parquet file whose metadata has NO_CHECKSUMS under PARQUET_KEY, with the checksums in its place, in parts."""
    start = footer_start(len(file), bytes(file[-_TAIL.size :]))
    footer = bytes(file[start:])
    at = _IN_FOOTER.search(footer)
    assert at is not None
    yield file[:start]
    yield footer[: at.start(1)] + b"%08x %08x" % (zlib.crc32(file[:start]), zlib.crc32(footer)) + footer[at.end(2) :]


def footer_start(size: int, tail: bytes) -> int:
    """Where the footer of a Parquet file of so many bytes begins, by its last 8. Raises ValueError."""
    length, _ = _TAIL.unpack(tail)
    if length + _TAIL.size > size:
        raise ValueError(f"a footer of {length:,} bytes in a file of {size:,}")
    return size - _TAIL.size - int(length)


def check_footer(footer: bytes) -> None:
    """footer: with the 8 bytes after it. Raises ValueError when its checksum, if it has one, is another."""
    found = _IN_FOOTER.search(footer)
    if found is None:
        return
    if not _fits(footer[: found.start(1)] + NO_CHECKSUMS.encode() + footer[found.end(2) :], found[2]):
        raise ValueError(CHANGED)


def group_key(*parts: str) -> str:
    """A short name for what these words tell apart, the same in every run."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:10]
