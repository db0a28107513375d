"""Windows binaries as Debian ships Wine's: marking them as Wine's own, and leaving the debug information out.

The file format: Microsoft, "PE Format".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

_BUILTIN = b"Wine builtin DLL\0".ljust(32, b"\0")  # at offset 64: Wine loads such a file as one of its own

_IMPORT_DIRECTORIES = ((1, 20, 12), (13, 32, 4))
"""Index of the data directory, bytes of an entry, where the entry has the name: of imports and of delayed imports."""

_MODULE_NAME = re.compile(rb"([A-Za-z0-9_.-]{1,60}\.(?:dll|drv|exe|sys))\0")


def strip_debug(path: Path) -> int:
    """Cut the DWARF sections off the end of a PE32+ file, in place; returns the bytes saved.

    Wine's libraries are 4 times as large with them, and every prefix holds copies. Only sections that come last and
    whose long name (`/123`, how .debug_* is spelled) shows what they are go; anything unexpected is left alone.
    """
    data = bytearray(path.read_bytes())
    if data[:2] != b"MZ" or len(data) < 0x40:
        return 0
    (pe,) = struct.unpack_from("<I", data, 0x3C)
    if data[pe : pe + 4] != b"PE\0\0":
        return 0
    count, _, symbols, symbol_count, optional_size = struct.unpack_from("<HIIIH", data, pe + 6)
    optional = pe + 24
    if struct.unpack_from("<H", data, optional)[0] != 0x20B:
        return 0
    headers = [optional + optional_size + 40 * i for i in range(count)]
    kept = count
    while kept and data[headers[kept - 1]] == ord("/"):
        kept -= 1
    if kept in (0, count):
        return 0
    raw = [struct.unpack_from("<I", data, h + 20)[0] for h in headers[kept:]]
    end = min([r for r in raw if r] + ([symbols] if symbols and symbol_count else []), default=len(data))
    last = max(
        sum(struct.unpack_from("<II", data, h + 16))
        for h in headers[:kept]
        if struct.unpack_from("<I", data, h + 16)[0]
    )
    if end < last:
        return 0
    struct.pack_into("<H", data, pe + 6, kept)
    struct.pack_into("<II", data, pe + 12, 0, 0)
    virtual_size, address = struct.unpack_from("<II", data, headers[kept - 1] + 8)
    (alignment,) = struct.unpack_from("<I", data, optional + 32)
    struct.pack_into("<I", data, optional + 56, -(-(address + virtual_size) // alignment) * alignment)
    for header in headers[kept:]:
        data[header : header + 40] = bytes(40)
    path.write_bytes(data[:end])
    return len(data) - end


def mark_builtin(source: Path, target: Path) -> None:
    """Copy a plain DLL so that Wine takes it for one of its own, as libwine's post-installation script does."""
    data = bytearray(source.read_bytes())
    data[64:96] = _BUILTIN
    target.write_bytes(data)


def read_imports(path: Path) -> tuple[str, ...]:
    """The names in lower case of the DLLs that a PE32+ file asks for: when it is loaded, and when a function of them is
    first called (delayed imports). None for a file of another format. Raises OSError.
    """
    data = path.read_bytes()
    try:
        return tuple(_imports(data))
    except (ValueError, IndexError, UnicodeDecodeError, struct.error):
        return ()


def find_module_names(path: Path) -> frozenset[str]:
    """The names in lower case of all modules that a file has as text: what it imports, and what it may load by name.

    Wine's libraries keep delayed imports in a table of their own, and end when such a module is not there. Raises
    OSError.
    """
    return frozenset(match[1].decode().lower() for match in _MODULE_NAME.finditer(path.read_bytes()))


def _imports(data: bytes) -> Iterator[str]:
    if data[:2] != b"MZ":
        return
    (pe,) = struct.unpack_from("<I", data, 0x3C)
    count, optional_size = struct.unpack_from("<H12xH", data, pe + 6)
    optional = pe + 24
    if data[pe : pe + 4] != b"PE\0\0" or struct.unpack_from("<H", data, optional)[0] != 0x20B:
        return
    sections = [struct.unpack_from("<IIII", data, optional + optional_size + 40 * i + 8) for i in range(count)]

    def position(address: int) -> int:
        for virtual_size, start, raw_size, raw in sections:
            if start <= address < start + max(virtual_size, raw_size):
                return int(address - start + raw)
        raise ValueError("an address that no section has")

    (directories,) = struct.unpack_from("<I", data, optional + 108)
    for directory, entry_size, name_at in _IMPORT_DIRECTORIES:
        table = struct.unpack_from("<I", data, optional + 112 + 8 * directory)[0] if directory < directories else 0
        at = position(table) if table else 0
        while table and (name := struct.unpack_from("<I", data, at + name_at)[0]):
            start = position(name)
            yield data[start : data.index(b"\0", start)].decode("ascii").lower()
            at += entry_size
