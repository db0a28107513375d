"""Who may import whom: the layout table of the design, held."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("generators", "conformance", "models", "reports")

MAY_IMPORT = {
    "generators": {"generators"},
    "conformance": {"conformance", "generators"},
    "models": {"models", "generators", "conformance"},
    "reports": {"reports", "conformance.record", "conformance.strict_json", "generators.error"},
    "the command line": set(FOLDERS),
}
COMMAND_LINE = ("conformance/cli.py", "conformance/commands/", "conformance/plugin.py")
"""What knows all of them."""


def modules() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """What a module imports of ours, at the top or anywhere inside, without the leading `epcheck.`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            base = ".".join([*(["epcheck"] if package else []), *package, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            assert name != "epcheck", f"{path}: `import epcheck` imports a namespace without code"
            if name.startswith("epcheck."):
                yield name.removeprefix("epcheck.")


def owner(path: Path) -> str:
    relative = path.relative_to(ROOT).as_posix()
    return "the command line" if relative.startswith(COMMAND_LINE) else relative.split("/")[0]


def is_allowed(name: str, allowed: set[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in allowed)


def test_relative_imports_are_resolved() -> None:
    assert "conformance.lab.errors.LabError" in set(imported(ROOT / "conformance" / "lab" / "wine.py"))


@pytest.mark.parametrize("path", list(modules()), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_module_imports_only_what_its_folder_may(path: Path) -> None:
    forbidden = [name for name in imported(path) if not is_allowed(name, MAY_IMPORT[owner(path)])]
    assert forbidden == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from epcheck.reports import store", ["reports.store"]),
        ("import epcheck.models.zoo", ["models.zoo"]),
        ("def f():\n    from epcheck import models", ["models"]),
        ("import numpy, onnx\nfrom pathlib import Path", []),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, names: list[str], tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(source, encoding="utf-8")
    assert list(imported(module)) == names


def test_the_record_is_not_a_way_to_the_rest_of_conformance() -> None:
    assert is_allowed("conformance.record", MAY_IMPORT["reports"])
    assert is_allowed("conformance.record.Record", MAY_IMPORT["reports"])
    assert not is_allowed("conformance.records", MAY_IMPORT["reports"])
    assert not is_allowed("conformance.runner", MAY_IMPORT["reports"])


def test_the_worker_imports_nothing_of_ours() -> None:
    assert list(imported(ROOT / "conformance" / "worker.py")) == []


def test_the_namespace_holds_no_code() -> None:
    assert not (ROOT / "__init__.py").exists()
    assert not (ROOT / "epcheck").exists()


def test_every_folder_with_modules_is_a_package_that_is_shipped() -> None:
    folders = {path.parent.relative_to(ROOT) for path in modules()}
    assert {folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()} == set()
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert set(setuptools["packages"]) == {f"epcheck.{folder.as_posix().replace('/', '.')}" for folder in folders}
    assert setuptools["package-dir"] == {f"epcheck.{folder}": folder for folder in FOLDERS}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_package_is_typed(folder: str) -> None:
    assert (ROOT / folder / "py.typed").is_file()
