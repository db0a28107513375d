import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from epcheck.conformance.lab.packages import elf

ElfFile = Callable[[Sequence[str], str, str], bytes]
RELATIVE = "$ORIGIN/../x86_64-linux-gnu"


@pytest.fixture
def program(elf_file: ElfFile, tmp_path: Path) -> Path:
    path = tmp_path / "wine64"
    path.write_bytes(elf_file(["libc.so.6", "libdl.so.2"], "/home/somebody/lab/root/usr/lib", "/lib64/ld.so"))
    return path


def test_a_program_says_what_it_needs(program: Path) -> None:
    assert elf.read_needed(program) == ("libc.so.6", "libdl.so.2")
    assert elf.interpreter(program) == "/lib64/ld.so"


def test_the_loader_may_lie_at_any_path(program: Path, tmp_path: Path) -> None:
    loader = tmp_path / ("a" * 200) / "ld-linux-x86-64.so.2"
    for _ in range(2):
        elf.set_interpreter(program, loader)
        assert elf.interpreter(program) == str(loader)
    assert elf.read_needed(program) == ("libc.so.6", "libdl.so.2")
    with pytest.raises(ValueError, match="is longer than 4095 bytes"):
        elf.set_interpreter(program, Path("/" + "a/" * 2100))


def test_libraries_are_looked_for_from_where_the_program_lies(program: Path) -> None:
    before = program.stat().st_size
    for _ in range(2):
        elf.search_path_from_itself(program, RELATIVE)
    assert RELATIVE.encode() + b"\0" in program.read_bytes()
    assert b"somebody" not in program.read_bytes()
    assert (program.stat().st_size, elf.read_needed(program)) == (before, ("libc.so.6", "libdl.so.2"))
    with pytest.raises(ValueError, match="has no room for"):
        elf.search_path_from_itself(program, RELATIVE + "/further")


@pytest.mark.parametrize("content", [b"", b"MZ", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 90])
def test_another_file_needs_nothing_and_is_not_changed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert (elf.read_needed(path), elf.interpreter(path)) == ((), None)
    with pytest.raises(ValueError, match="names no folder of libraries"):
        elf.search_path_from_itself(path, RELATIVE)
    with pytest.raises(ValueError, match="is not a program that names a loader"):
        elf.set_interpreter(path, Path("/lib64/ld.so"))
    assert path.read_bytes() == content


@pytest.mark.skipif(sys.platform != "linux", reason="runs a program of Linux")
def test_linux_starts_a_program_with_the_loader_that_was_set(tmp_path: Path) -> None:
    program, loader = tmp_path / "program", tmp_path / "a longer folder" / "loader"
    shutil.copy("/bin/true", program)
    if not (original := elf.interpreter(program)):
        pytest.skip("/bin/true has no loader here")
    elf.set_interpreter(program, loader)
    with pytest.raises(FileNotFoundError):
        subprocess.run([program], check=True)
    loader.parent.mkdir()
    shutil.copy(original, loader)
    subprocess.run([program], check=True)
