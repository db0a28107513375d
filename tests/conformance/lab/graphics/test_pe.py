import struct
from pathlib import Path

from epcheck.conformance.lab.graphics.pe import find_module_names, mark_builtin, read_imports, strip_debug

ALIGNMENT = 0x200
TEXT, DEBUG = b"\xc3" * ALIGNMENT, b"D" * ALIGNMENT


def image(sections: list[tuple[bytes, int, bytes]], tail: bytes = b"", symbols: int = 0) -> bytes:
    """A PE32+ file: for each section its name, its address and its content, in the order of the file."""
    headers, content, start = b"", b"", ALIGNMENT * 2
    for name, address, data in sections:
        place = start + len(content)
        headers += struct.pack("<8sIIIIIIHHI", name, len(data), address, len(data), place, 0, 0, 0, 0, 0)
        content += data
    optional = bytearray(240)
    struct.pack_into("<H", optional, 0, 0x20B)
    struct.pack_into("<II", optional, 32, 0x1000, ALIGNMENT)
    last = sections[-1]
    struct.pack_into("<I", optional, 56, last[1] + 0x1000)
    coff = struct.pack("<HHIIIHH", 0x8664, len(sections), 0, symbols, 3 if symbols else 0, len(optional), 0x22)
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x80) + bytes(0x40)
    return (head + b"PE\0\0" + coff + bytes(optional) + headers).ljust(start, b"\0") + content + tail


def test_debug_sections_and_symbols_at_the_end_are_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "a.dll"
    end_of_text = ALIGNMENT * 3
    sections = [(b".text", 0x1000, TEXT), (b"/4", 0x2000, DEBUG), (b"/16", 0x3000, DEBUG)]
    path.write_bytes(image(sections, b"strings", symbols=ALIGNMENT * 5))
    assert strip_debug(path) == 2 * ALIGNMENT + len(b"strings")
    stripped = path.read_bytes()
    assert stripped[-ALIGNMENT:] == TEXT
    assert len(stripped) == end_of_text
    count, _, symbols, symbol_count = struct.unpack_from("<HIII", stripped, 0x80 + 6)
    assert (count, symbols, symbol_count) == (1, 0, 0)
    assert struct.unpack_from("<I", stripped, 0x80 + 24 + 56) == (0x2000,)  # SizeOfImage


def test_a_debug_section_before_another_one_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.dll"
    before = image([(b"/4", 0x1000, DEBUG), (b".text", 0x2000, TEXT)])
    path.write_bytes(before)
    assert strip_debug(path) == 0
    assert path.read_bytes() == before


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for content in (b"", b"MZ", b"#!/bin/sh\n" * 50):
        path.write_bytes(content)
        assert strip_debug(path) == 0
        assert path.read_bytes() == content


def test_a_plain_dll_becomes_one_of_wines_own(tmp_path: Path) -> None:
    source, target = tmp_path / "zlib1.dll", tmp_path / "builtin.dll"
    source.write_bytes(image([(b".text", 0x1000, TEXT)]))
    mark_builtin(source, target)
    assert target.read_bytes()[64:96] == b"Wine builtin DLL".ljust(32, b"\0")
    assert target.read_bytes()[96:] == source.read_bytes()[96:]


def with_imports(name: bytes, delayed: bytes, by_name: bytes) -> bytes:
    """A file that imports a DLL, imports another when it is first called, and has the name of a third as text."""
    start, size = 0x1000, 20
    tables = 2 * size + 2 * 32
    content = struct.pack("<5I", 0, 0, 0, start + tables, 0) + bytes(size)
    content += struct.pack("<8I", 0, start + tables + len(name) + 1, *[0] * 6) + bytes(32)
    content += b"\0".join([name, delayed, by_name]) + b"\0"
    file = bytearray(image([(b".idata", start, content.ljust(ALIGNMENT, b"\0"))]))
    optional = 0x80 + 24
    struct.pack_into("<I", file, optional + 108, 16)
    struct.pack_into("<I", file, optional + 112 + 8, start)
    struct.pack_into("<I", file, optional + 112 + 13 * 8, start + 2 * size)
    return bytes(file)


def test_a_library_says_what_it_imports_and_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "a.dll"
    path.write_bytes(with_imports(b"KERNEL32.dll", b"shell32.dll", b"winspool.drv"))
    assert read_imports(path) == ("kernel32.dll", "shell32.dll")
    assert find_module_names(path) == {"kernel32.dll", "shell32.dll", "winspool.drv"}


def test_another_file_imports_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.dll"
    for content in (b"", b"MZ", b"\x7fELF", image([(b".text", 0x1000, TEXT)])[:0x90], b"MZ" + b"\xff" * 90):
        path.write_bytes(content)
        assert read_imports(path) == ()
