"""Who may import whom: the layers of `docs/architecture.md`, without exemption, and without a circle anywhere."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("generators", "conformance", "models", "reports", "api", "cli")

SHOWN = {
    "conformance.directml.probing",
    "conformance.judging.coverage",
    "conformance.lab.status",
    "conformance.records",
    "conformance.targets.configuration_notice",
    "generators.case",
    "generators.registry",
    "generators.suite",
    "models.validation",
    "reports",
}
"""What the command line shows: results of the calls of `api`, and what they are made of."""

MAY_IMPORT = {
    "generators": {"generators"},
    "conformance": {"conformance", "generators"},
    "models": {"models", "conformance", "generators"},
    "reports": {"reports", "conformance.records", "conformance.start_process"},
    "api": {"api", "generators", "conformance", "models", "reports"},
    "cli": {"cli", "api", *SHOWN},
}
"""Package -> what its modules may import of ours, at the top or inside a function."""


@cache
def modules() -> dict[str, Path]:
    """Dotted name without the leading `epcheck.` -> file; a package's own module ends in `.__init__`."""
    found = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in found}


def imported(path: Path, package: str = "") -> Iterator[str]:
    """The full names of all that a file imports of ours, wherever the statement stands, without `epcheck.`.

    package: of the file, dotted, against which relative imports are resolved.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = f"epcheck.{package}".split(".")[: -node.level + 1 or None] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            assert name != "epcheck", f"{path}: `import epcheck` imports a namespace without code"
            if name.startswith("epcheck."):
                yield name.removeprefix("epcheck.")


@cache
def imported_by(module: str) -> frozenset[str]:
    """The modules of ours that a module imports, by name; a package is its `__init__`."""
    names = imported(modules()[module], module.rpartition(".")[0])
    return frozenset(known for name in names if (known := _module(name)) and known != module)


def _module(name: str) -> str:
    """The module that a full name lies in; empty for none."""
    for candidate in (name, name.rpartition(".")[0]):
        for known in (candidate, f"{candidate}.__init__"):
            if known in modules():
                return known
    return ""


def is_allowed(name: str, allowed: set[str]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)


def circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """The names along one circle of a graph; empty when it has none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_what_its_package_may(module: str) -> None:
    allowed = MAY_IMPORT[module.partition(".")[0]]
    names = imported(modules()[module], module.rpartition(".")[0])
    assert [name for name in names if not is_allowed(name, allowed)] == []


def test_no_module_imports_in_a_circle() -> None:
    assert circle({module: imported_by(module) for module in modules()}) == []


def folders() -> list[str]:
    return sorted({module.rpartition(".")[0] for module in modules()} | {""})


@pytest.mark.parametrize("folder", folders())
def test_the_parts_of_a_folder_do_not_import_each_other_in_a_circle(folder: str) -> None:
    """Its parts are its files and its folders, each folder as a whole."""
    inside = f"{folder}." if folder else ""
    parts: dict[str, set[str]] = {}
    for module in modules():
        if module.startswith(inside):
            part = module.removeprefix(inside).partition(".")[0]
            others = {
                name.removeprefix(inside).partition(".")[0] for name in imported_by(module) if name.startswith(inside)
            }
            parts.setdefault(part, set()).update(others - {part})
    assert circle(parts) == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from epcheck.reports import store", ["reports.store"]),
        ("import epcheck.models.zoo", ["models.zoo"]),
        ("def f():\n    from epcheck import models", ["models"]),
        ("from .wine import run", ["conformance.lab.wine.run"]),
        ("from ..records import record", ["conformance.records.record"]),
        ("import numpy, onnx\nfrom pathlib import Path", []),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, names: list[str], tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(source, encoding="utf-8")
    assert list(imported(module, "conformance.lab")) == names


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != []
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_records_are_not_a_way_to_the_rest_of_conformance() -> None:
    assert is_allowed("conformance.records.record.Record", MAY_IMPORT["reports"])
    assert not is_allowed("conformance.recordset", MAY_IMPORT["reports"])
    assert not is_allowed("conformance.scheduling.session", MAY_IMPORT["reports"])


def test_the_worker_program_imports_nothing_of_ours_but_itself() -> None:
    program = [module for module in modules() if module.startswith("conformance.workers.program.")]
    assert len(program) > 1
    for module in program:
        source = modules()[module].read_text(encoding="utf-8")
        assert "epcheck." not in "".join(line for line in source.splitlines() if "import" in line), module


def test_the_namespace_holds_no_code() -> None:
    assert not (ROOT / "__init__.py").exists()
    assert not (ROOT / "epcheck").exists()


def test_every_folder_with_modules_is_a_package_that_is_shipped() -> None:
    folders = {path.parent.relative_to(ROOT) for path in modules().values()}
    assert {folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()} == set()
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert set(setuptools["packages"]) == {f"epcheck.{folder.as_posix().replace('/', '.')}" for folder in folders}
    assert setuptools["package-dir"] == {f"epcheck.{package}": package for package in PACKAGES}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
