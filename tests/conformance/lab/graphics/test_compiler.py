import sys
from pathlib import Path

import psutil
import pytest

from epcheck.conformance.lab import LabError
from epcheck.conformance.lab.graphics import compiler
from epcheck.conformance.lab.process import Watch, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the lab is for Linux")

ELF = b"\x7fELF" + bytes(100)


def program(path: Path, content: bytes, mode: int = 0o755) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_only_executables_that_name_a_loader_are_patched(tmp_path: Path) -> None:
    gcc = program(tmp_path / "gcc", ELF + b"/lib64/ld-linux-x86-64.so.2\0")
    assert compiler._is_program(gcc)
    assert not compiler._is_program(program(tmp_path / "plugin.so", ELF))
    assert not compiler._is_program(program(tmp_path / "yacc", b"#!/bin/sh\n# /lib64/ld-linux-x86-64.so.2\n"))
    assert not compiler._is_program(program(tmp_path / "data", gcc.read_bytes(), mode=0o644))
    assert not compiler._is_program(tmp_path)


def test_a_private_gcc_does_not_know_the_machines_linker(tmp_path: Path) -> None:
    collect2 = program(tmp_path / "collect2", ELF + b"/usr/bin/x86_64-w64-mingw32-ld\0/usr/bin/other\0")
    compiler._forget_machine(collect2)
    assert collect2.read_bytes() == ELF + b"/nowhere/x86_64-w64-mingw32-ld\0/usr/bin/other\0"


def test_a_compiler_without_flex_and_bison_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path / "x86_64-w64-mingw32-gcc", b"#!/bin/sh\n")
    assert compiler.host_compiler() is None
    for name in ("flex", "bison"):
        program(tmp_path / name, b"#!/bin/sh\n")
    found = compiler.host_compiler()
    assert found is not None
    assert found.gcc == (str(tmp_path / "x86_64-w64-mingw32-gcc"),)


def test_a_program_that_fails_is_one_sentence_with_its_reason(tmp_path: Path) -> None:
    failing = program(tmp_path / "gcc", b"#!/bin/sh\necho note >&2\necho 'a.c:1: error: no such type' >&2\nexit 1\n")
    with pytest.raises(LabError, match=r"^compiling a\.c failed: a\.c:1: error: no such type$"):
        run([failing], what="compiling a.c")
    with pytest.raises(LabError, match=r"^linking needs the program ld-of-nowhere, which this machine lacks$"):
        run(["ld-of-nowhere"], what="linking")


def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    hanging = program(tmp_path / "hang", b"#!/bin/sh\nexec sleep 987.5\n")
    with pytest.raises(LabError, match="waiting did not end within 0 s; run the install again"):
        run([hanging], what="waiting", timeout=0.3)
    assert [each for each in psutil.process_iter(["cmdline"]) if "987.5" in (each.info["cmdline"] or ())] == []


def test_progress_is_the_growth_of_the_watched_folder(tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(bytes(100))
    reports: list[tuple[str, int | None, int | None]] = []
    writing = f"dd if=/dev/zero of={tmp_path}/new bs=1000 count=5 2>/dev/null; sleep 0.5; echo done"
    printed = run(["sh", "-c", writing], what="m", watch=Watch(lambda *report: reports.append(report), tmp_path, 5000))
    assert printed == "done\n"
    assert reports[-1] == ("m", 5000, 5000)
