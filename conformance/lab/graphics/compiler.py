"""The compiler for Windows that the shader-model-6 step needs: the machine's own, or Debian's, unpacked for this once.

Why Debian's and not the `ziglang` wheel, which needs no unpacking by us: it is smaller to fetch (76 MB against 94),
the whole build takes 20 s against 47 on two cores (zig builds its Windows libraries first), and flex and bison come
from Debian anyway. Both build a library that works.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages.apt import Archive
from epcheck.conformance.lab.packages.relocation import relocate
from epcheck.conformance.lab.process import Say
from epcheck.conformance.start_process import find_program

PACKAGES = ("gcc-mingw-w64-x86-64-win32", "flex", "bison")
_GCC, _FLEX, _BISON = "x86_64-w64-mingw32-gcc", "flex", "bison"


@dataclass(frozen=True)
class Compiler:
    """Three programs, gcc with arguments of its own, and their environment. root: a folder to delete afterwards."""

    name: str
    gcc: tuple[str, ...]
    flex: str
    bison: str
    env: Mapping[str, str] = field(default_factory=dict)
    root: Path | None = None


def host_compiler() -> Compiler | None:
    """The machine's own compiler, or None unless all three programs are there."""
    gcc, flex, bison = (find_program(name) for name in (_GCC, _FLEX, _BISON))
    if not (gcc and flex and bison):
        return None
    return Compiler("the machine's compiler", (gcc,), flex, bison, dict(os.environ))


def private_compiler(layout: Layout, archive: Archive, say: Say) -> Compiler:
    """Debian's compiler, unpacked into the lab."""
    root = layout.scratch / "compiler"
    packages = archive.fetch(PACKAGES)
    shutil.rmtree(root, ignore_errors=True)
    archive.unpack(packages, root)
    programs = root / "usr/bin"
    binaries = [path for path in root.rglob("*") if _is_program(path)]
    relocate(layout, root, binaries, say)
    for path in binaries:
        _forget_machine(path)
    version = next(p.version for p in packages if p.name == PACKAGES[0])
    return Compiler(
        f"{PACKAGES[0]} {version}",
        (str(programs / f"{_GCC}-win32"), f"-B{programs}/x86_64-w64-mingw32-"),
        str(programs / "flex"),
        str(programs / "bison"),
        {
            "PATH": str(programs),  # and nothing of the machine
            "LC_ALL": "C.UTF-8",
            "TMPDIR": str(layout.scratch),
            "M4": str(programs / "m4"),
            "BISON_PKGDATADIR": str(root / "usr/share/bison"),
        },
        root,
    )


def _is_program(path: Path) -> bool:
    """An executable ELF file that names a loader: shared libraries and scripts are not patched."""
    if path.is_symlink() or not path.is_file() or not path.stat().st_mode & 0o111:
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return head.startswith(b"\x7fELF") and b"/lib64/ld-linux" in head


def _forget_machine(program: Path) -> None:
    """Debian's gcc prefers the assembler and the linker in /usr/bin, whatever it is told: take their names from it."""
    content = program.read_bytes()
    changed = content.replace(b"/usr/bin/x86_64-w64-mingw32-", b"/nowhere/x86_64-w64-mingw32-")
    if changed != content:
        program.write_bytes(changed)
