"""ELF files: which libraries one needs, and which loader and library folder a program names.

The format: System V ABI, "Object Files" and "Program Loading and Dynamic Linking". Only 64-bit little-endian files
count.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3  # of program headers
_NEEDED, _STRTAB, _RPATH, _RUNPATH = 1, 5, 15, 29  # of the dynamic section
_LONGEST_PATH = 4096  # bytes with the closing zero, Linux' PATH_MAX


@dataclass(frozen=True)
class _Segment:
    """A program header. at: where it stands in the file."""

    at: int
    kind: int
    offset: int
    address: int
    size: int


def read_needed(path: Path) -> tuple[str, ...]:
    """The names of the libraries that an ELF file asks for; none for a file of another format. Raises OSError."""
    data = path.read_bytes()
    try:
        entries = _dynamic(data, _segments(data))
        start = entries[_STRTAB][0]
        return tuple(_text(data, start + offset) for offset in entries.get(_NEEDED, []))
    except (ValueError, KeyError, IndexError, OverflowError, struct.error):
        return ()


def interpreter(path: Path) -> str | None:
    """The loader that a program names; None for a library and for a file of another format. Raises OSError."""
    data = path.read_bytes()
    try:
        return next((_text(data, s.offset) for s in _segments(data) if s.kind == _INTERPRETER), None)
    except (ValueError, IndexError, OverflowError, struct.error):
        return None


def search_path_from_itself(path: Path, folder: str) -> None:
    """Make a program look for its libraries in `folder`, a path that starts with `$ORIGIN`, wherever the program lies.

    The new path takes the place of the old one (DT_RPATH or DT_RUNPATH), which must not be shorter. Raises ValueError
    when it is, or when there is none, and OSError.
    """
    data = bytearray(path.read_bytes())
    try:
        entries = _dynamic(data, _segments(data))
        ((offset, *_),) = [entries[tag] for tag in (_RPATH, _RUNPATH) if tag in entries]
        start = entries[_STRTAB][0] + offset
        old = _text(data, start)
    except (ValueError, KeyError, IndexError, OverflowError, struct.error):
        raise ValueError(f"{path} names no folder of libraries") from None
    if len(folder) > len(old):
        raise ValueError(f"{path} has no room for {folder}")
    data[start : start + len(old)] = folder.encode().ljust(len(old), b"\0")
    path.write_bytes(data)


def set_interpreter(path: Path, loader: Path) -> None:
    """Make a program start with this loader.

    The kernel reads the loader's name from the file, not from memory (`load_elf_interp` in Linux' fs/binfmt_elf.c), so
    the name may stand behind everything else, as long as need be. The old name stays where it was. Raises ValueError
    when the file names no loader or the path is too long, and OSError.
    """
    data = bytearray(path.read_bytes())
    name = str(loader).encode() + b"\0"
    try:
        (segment,) = [s for s in _segments(data) if s.kind == _INTERPRETER]
    except (ValueError, IndexError, OverflowError, struct.error):
        raise ValueError(f"{path} is not a program that names a loader") from None
    if len(name) > _LONGEST_PATH:
        raise ValueError(f"{loader} is longer than {_LONGEST_PATH - 1} bytes")
    struct.pack_into("<Q", data, segment.at + 8, len(data))
    struct.pack_into("<Q", data, segment.at + 32, len(name))
    path.write_bytes(data + name)


def _segments(data: bytes | bytearray) -> list[_Segment]:
    if bytes(data[:6]) != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    found = []
    for at in range(table, table + size * count, size):
        kind, _, offset, address, _, stored = struct.unpack_from("<IIQQQQ", data, at)
        found.append(_Segment(at, kind, offset, address, stored))
    return found


def _dynamic(data: bytes | bytearray, segments: list[_Segment]) -> dict[int, list[int]]:
    """Tag -> values; that of the string table as an offset in the file."""
    entries: dict[int, list[int]] = {}
    for segment in segments:
        if segment.kind == _DYNAMIC:
            for at in range(segment.offset, segment.offset + segment.size, 16):
                tag, value = struct.unpack_from("<QQ", data, at)
                entries.setdefault(tag, []).append(value)
    (address,) = entries[_STRTAB]
    (load,) = [s for s in segments if s.kind == _LOAD and s.address <= address < s.address + s.size]
    entries[_STRTAB] = [address - load.address + load.offset]
    return entries


def _text(data: bytes | bytearray, start: int) -> str:
    return bytes(data[start : data.index(b"\0", start)]).decode()
