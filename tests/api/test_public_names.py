"""`epcheck.api` as a package: cheap to import, without a terminal, and complete; `epcheck.reports` likewise."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from epcheck import api, reports
from epcheck.api.option import Group, Option

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "api").rglob("*.py"))


def test_importing_it_imports_none_of_the_calls() -> None:
    script = "import sys, epcheck.api; print(sorted(name for name in sys.modules if name.startswith('epcheck.')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "['epcheck.api']"


def test_what_examines_a_model_loads_nothing_for_tables() -> None:
    script = (
        "import sys, epcheck.cli.commands.models.validate, epcheck.api.models.examining.examiner\n"
        "print(sorted({'pyarrow', 'duckdb', 'onnx.reference'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", [api, reports])
def test_every_public_name_exists(package: ModuleType) -> None:
    """Type checkers read the same list, `__init__.pyi`."""
    assert len(package.__all__) > 25
    assert [name for name in package.__all__ if getattr(package, name) is None] == []
    with pytest.raises(AttributeError, match="walk"):
        _ = package.walk


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_in_it_knows_a_terminal(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case ast.Call(func=ast.Name(id="print")) | ast.Attribute(value=ast.Name(id="sys"), attr="exit" | "stdout"):
                pytest.fail(f"line {node.lineno}")
            case _:
                continue
        assert {module.split(".")[0] for module in modules}.isdisjoint({"typer", "rich", "click"})
        assert not any(module.startswith("epcheck.cli") for module in modules)


OPTIONS = [name for name in api.__all__ if name.endswith("Options")]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_frozen_documented_and_declared_once(name: str) -> None:
    options = getattr(api, name)
    assert dataclasses.is_dataclass(options)
    assert options.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert not (options.__doc__ or "").startswith(f"{name}(")
    from typing import get_type_hints

    for field, hint in get_type_hints(options, include_extras=True).items():
        (note,) = hint.__metadata__
        assert isinstance(note, Group) or (isinstance(note, Option) and note.help), field
