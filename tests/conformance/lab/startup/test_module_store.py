"""Modules from one file: the same modules as from their own files, and those where there is no such file."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from epcheck.conformance.lab.startup import module_store

PROGRAM = Path(module_store.__file__)

LOAD = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("module_store", {str(PROGRAM)!r})
store = importlib.util.module_from_spec(spec)
spec.loader.exec_module(store)
"""


def python(code: str) -> str:
    """What a Python that has no store yet prints."""
    own = {name: value for name, value in os.environ.items() if name != "EPCHECK_MODULE_STORE"}
    command = [sys.executable, "-c", LOAD + code]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8", env=own).stdout


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of what `import numpy` imports."""
    written = tmp_path_factory.mktemp("store") / "modules"
    python(f"import numpy, email.message; store.write({str(written)!r}, ('numpy',))")
    return written


SEEN = """
import numpy, email.message
print(numpy.__file__, numpy.linalg.inv(numpy.eye(2)).sum(), email.message.__file__, numpy.linalg.__package__)
print([type(sys.modules[name].__loader__).__name__ for name in ("numpy", "numpy.linalg", "email.message")])
"""


def test_modules_are_those_of_their_own_files(file: Path) -> None:
    stored = python(f"assert store.use({str(file)!r})" + SEEN).splitlines()
    own = python(SEEN).splitlines()
    assert stored[0] == own[0]
    assert stored[1] == str(["StoredModules"] * 3)
    assert "StoredModules" not in own[1]


def test_other_packages_come_from_their_own_files(file: Path) -> None:
    printed = python(f"store.use({str(file)!r}); import onnx; print(type(onnx.__loader__).__name__)")
    assert printed.split() == ["SourceFileLoader"]


def test_modules_in_an_archive_are_kept_and_libraries_are_not_looked_for(tmp_path: Path) -> None:
    """A library under two names is kept under its own."""
    with zipfile.ZipFile(tmp_path / "zipped.zip", "w") as archive:
        archive.writestr("zipped/__init__.py", "value = 3")
        archive.writestr("zipped/inner.py", "from zipped import value")
    path = f"sys.path.insert(0, {str(tmp_path / 'zipped.zip')!r})"
    store = str(tmp_path / "modules")
    python(
        f"{path}; import zipped.inner, numpy, numpy.linalg._umath_linalg as own; sys.modules['numpy.other'] = own; "
        f"store.write({store!r}, ('zipped', 'numpy'))"
    )
    seen = (
        "import zipped.inner, numpy.linalg._umath_linalg as own; "
        "print(zipped.inner.value, zipped.__path__, own.__file__, type(own.__loader__).__name__)"
    )
    stored = python(f"store.use({store!r}); {path}; {seen}; print(sys.meta_path[0].find_spec('numpy.other'))")
    nothing_looked_for = python(f"store.use({store!r}); sys.path[:] = []; import zipped; print(zipped.value)")
    assert stored == python(f"{path}; {seen}; print(None)")
    assert nothing_looked_for == "3\n"


def test_files_that_lie_in_a_package_are_found(tmp_path: Path) -> None:
    (tmp_path / "holding").mkdir()
    (tmp_path / "holding" / "__init__.py").touch()
    (tmp_path / "holding" / "table.json").write_text("[1]")
    path, store = f"sys.path.insert(0, {str(tmp_path)!r})", str(tmp_path / "modules")
    python(f"{path}; import holding; store.write({store!r}, ('holding',))")
    read = "from importlib.resources import files; print(files('holding').joinpath('table.json').read_text())"
    assert python(f"store.use({store!r}); {path}; {read}") == "[1]\n"


def test_python_uses_it_from_its_first_line_on_and_has_no_further_folder_on_its_path(file: Path) -> None:
    code = "import sys, module_store; print(module_store.is_used(), sys.path)"
    env = {**os.environ, "PYTHONPATH": str(PROGRAM.parent), "EPCHECK_MODULE_STORE": str(file)}
    run = subprocess.run([sys.executable, "-P", "-c", code], check=True, capture_output=True, encoding="utf-8", env=env)
    assert run.stdout.startswith("True [")
    assert str(PROGRAM.parent) not in run.stdout


@pytest.mark.parametrize("content", [None, b"", b"rubbish", b"\xe9\x01\x00\x00\x00", b"{"])
def test_a_store_that_is_missing_or_damaged_is_none(tmp_path: Path, content: bytes | None) -> None:
    damaged = tmp_path / "modules"
    if content is not None:
        damaged.write_bytes(content)
    assert python(
        f"before = len(sys.meta_path); print(store.use({str(damaged)!r}), len(sys.meta_path) - before)"
    ).split() == ["False", "0"]


def test_a_store_that_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    python(f"store.write({str(tmp_path / 'no' / 'folder')!r}, ())")
    assert list(tmp_path.iterdir()) == []
