"""Who may import whom: the layers of `docs/architecture.md`, without exemption, and without a circle anywhere.

An import inside a function counts, and so does a string that names a module of ours.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
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
    "conformance.workers.at_end",
    "generators.case",
    "generators.registry",
    "generators.suite",
    "models.validation",
    "reports",
}
"""What the command line shows: results of the calls of `api`, and what they are made of; and what a signal ends."""

MAY_IMPORT = {
    "generators": {"generators"},
    "conformance": {"conformance", "generators"},
    "models": {"models", "conformance", "generators"},
    "reports": {"reports", "conformance.records", "conformance.start_process"},
    "api": {"api", "generators", "conformance", "models", "reports"},
    "cli": {"cli", "api", *SHOWN},
}
"""Package -> what its modules may import of ours, at the top or inside a function."""

PROGRAMS = {
    ("api.machine.demo", "api.machine.demo_provider"),
    ("api.models.examining.examiner_process", "api.models.examining.examiner"),
    ("api.models.examining.examiner_process", "api.models.reduce"),
    ("api.models.examining.examiner_process", "models.fix.fix"),
    ("api.models.examining.examiner_process", "models.precision.doctor"),
    ("api.models.examining.examiner_process", "models.validation.validate"),
    ("conformance.preparation.preparer_pool", "conformance.preparation.preparer"),
    ("models.inspection.inspect", "models.inspection.checking"),
    ("reports.data_process", "reports.data_program"),
}
"""Module, and the program of a process that it starts: that may import whoever has it started, without a circle."""

IMPORTED_BY_NAME = {("cli.main", "cli.commands")}
"""Module, and a package of which it imports modules by their names: each command when it is called."""

READ_PACKAGES = {
    ("conformance.lab.module_stores", "conformance.workers.program"),
    ("conformance.profile.mustpass", "conformance.profile"),
    ("conformance.profile.profile", "conformance.profile"),
    ("conformance.targets.expectation_file", "conformance"),
    ("models.oracle.node", "generators"),
    ("models.oracle.node", "models"),
    ("reports.ort_conformance.report", "reports.ort_conformance"),
    ("reports.page.shell", "reports.page"),
}
"""Module, and a package whose files it reads, or whose modules it knows by their names."""


@cache
def modules() -> dict[str, Path]:
    """Dotted name without the leading `epcheck.` -> file; a package's own module ends in `.__init__`."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}


@lru_cache(1)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """The syntax of a source, of which imports and strings are read one after the other."""
    return tuple(ast.walk(ast.parse(source)))


def find_imports(source: str, package: str = "") -> Iterator[str]:
    """The full names of all that a source imports of ours, wherever the statement stands, without `epcheck.`.

    package: of the file, dotted, against which relative imports are resolved.
    """
    for node in nodes_of(source):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = f"epcheck.{package}".split(".")[: -node.level + 1 or None] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        for name in names:
            assert name != "epcheck", "`import epcheck` imports a namespace without code"
            if name.startswith("epcheck."):
                yield name.removeprefix("epcheck.")


def find_strings(source: str) -> Iterator[str]:
    """The modules and packages of ours that strings of a source name, without `epcheck.`; docstrings do not count."""
    if "epcheck." not in source:
        return
    docstrings = {id(node.value) for node in nodes_of(source) if isinstance(node, ast.Expr)}
    for node in nodes_of(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            for name in re.findall(r"\bepcheck\.(\w+(?:\.\w+)*)", node.value):
                if name in modules() or f"{name}.__init__" in modules():
                    yield name


@cache
def read(module: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a module imports by statements, those of its stub among them, and what it names in strings."""
    path = modules()[module]
    imports, strings = set[str](), set[str]()
    for file in filter(Path.is_file, (path, path.with_suffix(".pyi"))):
        source = file.read_text(encoding="utf-8")
        imports |= set(find_imports(source, module.rpartition(".")[0]))
        strings |= set(find_strings(source))
    return frozenset(imports), frozenset(strings)


@cache
def imported_by(module: str) -> frozenset[str]:
    """The modules of ours that a module imports; a package is its `__init__`."""
    imports, strings = read(module)
    named = {name for name in strings if (module, name) in IMPORTED_BY_NAME}
    return frozenset(known for name in imports | named if (known := _module(name)) and known != module)


def _module(name: str) -> str:
    """The module that a full name lies in; empty for none."""
    for candidate in (name, name.rpartition(".")[0]):
        for known in (candidate, f"{candidate}.__init__"):
            if known in modules():
                return known
    return ""


def is_allowed(name: str, allowed: set[str]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in allowed)


def find_circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """The names along one circle of a graph; empty when it has none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        names: list[str] = error.args[1]
        return names
    return []


def parts_of(folder: str) -> dict[str, set[str]]:
    """The files and folders of a folder, each folder as a whole -> which of them it imports."""
    inside = f"{folder}." if folder else ""
    parts: dict[str, set[str]] = {}
    for module in modules():
        if module.startswith(inside):
            part = module.removeprefix(inside).partition(".")[0]
            names = (name.removeprefix(inside) for name in imported_by(module) if name.startswith(inside))
            parts.setdefault(part, set()).update({name.partition(".")[0] for name in names} - {part})
    return parts


def test_modules_import_only_what_their_package_may() -> None:
    violations = [
        f"{module} imports {name}"
        for module in modules()
        for names in read(module)
        for name in names
        if not is_allowed(name, MAY_IMPORT[module.partition(".")[0]])
    ]
    assert violations == []


def test_nothing_imports_in_a_circle() -> None:
    """Neither modules, nor the parts of a folder."""
    folders = sorted({module.rpartition(".")[0] for module in modules()} | {""})
    circles = [find_circle({module: imported_by(module) for module in modules()})]
    circles += [find_circle(parts_of(folder)) for folder in folders]
    assert list(filter(None, circles)) == []


def test_what_is_named_in_a_string_is_listed() -> None:
    assert {(module, name) for module in modules() for name in read(module)[1]} == (
        PROGRAMS | IMPORTED_BY_NAME | READ_PACKAGES
    )


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
def test_imports_are_found_wherever_they_stand(source: str, names: list[str]) -> None:
    assert list(find_imports(source, "conformance.lab")) == names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import_module('epcheck.cli.main').main()", ["cli.main"]),
        ("COMMAND = 'python -m epcheck.reports.data_program'", ["reports.data_program"]),
        ("import_module(f'epcheck.cli.commands.{name}')", ["cli.commands"]),
        ("'epcheck.toml', 'epcheck.no_such_module'", []),
        ("'''`epcheck.cli.options` is a docstring.'''", []),
    ],
)
def test_modules_are_found_in_strings(source: str, names: list[str]) -> None:
    assert list(find_strings(source)) == names


def test_a_circle_is_found() -> None:
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) != []
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_records_are_not_a_way_to_the_rest_of_conformance() -> None:
    assert is_allowed("conformance.records.record.Record", MAY_IMPORT["reports"])
    assert not is_allowed("conformance.recordset", MAY_IMPORT["reports"])
    assert not is_allowed("conformance.scheduling.case_scheduler", MAY_IMPORT["reports"])


def test_the_worker_program_imports_nothing_of_ours_but_itself() -> None:
    program = [module for module in modules() if module.startswith("conformance.workers.program.")]
    assert len(program) > 1
    absolute = {
        module: [
            node
            for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8")))
            if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "epcheck" for alias in node.names))
            or (isinstance(node, ast.ImportFrom) and not node.level and str(node.module).split(".")[0] == "epcheck")
        ]
        for module in program
    }
    assert {module: nodes for module, nodes in absolute.items() if nodes or read(module)[1]} == {}


def test_the_namespace_holds_no_code_and_every_folder_with_modules_is_a_typed_package_that_is_shipped() -> None:
    assert [name for name in ("__init__.py", "epcheck") if (ROOT / name).exists()] == []
    assert [package for package in PACKAGES if not (ROOT / package / "py.typed").is_file()] == []
    main = Path("cli", "module")  # of `python -m epcheck`: a package there would be one named `epcheck`
    assert [path.name for path in (ROOT / main).glob("*.py")] == ["__main__.py"]
    folders = {path.parent.relative_to(ROOT) for path in modules().values()} - {main}
    assert {folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()} == set()
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert set(setuptools["packages"]) == {f"epcheck.{folder.as_posix().replace('/', '.')}" for folder in folders}
    own = {f"epcheck.{package}": package for package in PACKAGES}
    assert setuptools["package-dir"] == {**own, "epcheck": main.as_posix()}
