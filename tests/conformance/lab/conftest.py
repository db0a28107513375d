"""Small ELF files, which the tests of the lab's packages and of packed labs read and change."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import pytest

ElfFile = Callable[[Sequence[str], str, str], bytes]
"""Makes a program of the libraries that it needs, its DT_RPATH and its loader."""


@pytest.fixture(scope="session")
def elf_file() -> ElfFile:
    """The headers of a 64-bit program, and no code."""

    def make(needed: Sequence[str], search_path: str, loader: str) -> bytes:
        strings, places = b"\0", {}
        for text in (*needed, search_path):
            places[text] = len(strings)
            strings += text.encode() + b"\0"
        start, address = 64 + 3 * 56, 0x400000
        entries = [*((1, places[name]) for name in needed), (15, places[search_path]), (5, address + start), (0, 0)]
        dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
        name = loader.encode() + b"\0"
        at_dynamic, at_name = start + len(strings), start + len(strings) + len(dynamic)
        segments = [(1, 0, address, at_name), (2, at_dynamic, address + at_dynamic, len(dynamic)),
                    (3, at_name, address + at_name, len(name))]  # fmt: skip
        headers = b"".join(struct.pack("<IIQQQQQQ", k, 4, o, a, a, size, size, 1) for k, o, a, size in segments)
        head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56, 3, 0, 0, 0)
        return head + headers + strings + dynamic + name

    return make
