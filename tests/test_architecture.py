"""What `docs/architecture.md` says of the code and a test can hold: folders, layers, file names, limits, words."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import pytest

from tests.test_imports import MAY_IMPORT, PACKAGES, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

LINES_OF_A_CLASS, LINES_OF_A_FUNCTION, PARAMETERS = 250, 60, 8

FORBIDDEN = {
    # They name nothing: a value is named for what it is.
    "given", "one", "said", "told",
    # Bare participles: a function is a verb with its object (`round_output`), a property a noun.
    "_accumulated", "_activated", "_added", "_admitted", "_aligned", "_allowed_arguments", "_attended", "_biased",
    "_blamed", "_bounded", "_centred", "_clipped", "_computed", "_contracted", "_converted", "_convolved", "_cropped",
    "_declared", "_decoded", "_defined", "_divided", "_enumerated", "_evaluated", "_exported", "_extrapolated",
    "_failed", "_filtered", "_fitted", "_fixed", "_flushed", "_folded", "_forgotten_end", "_fused", "_gathered",
    "_generated", "_grouped", "_indexed", "_interpolated", "_judged", "_laid_out", "_masked", "_mixed", "_normalised",
    "_normalized", "_overruled", "_padded", "_parsed", "_passed_on", "_permuted", "_projected", "_quantised",
    "_quantized", "_reached", "_reduced", "_reflected", "_repeated", "_replaced", "_rescaled", "_reshaped", "_resized",
    "_rotated", "_sampled", "_scanned", "_scattered", "_shuffled", "_squared", "_stacked", "_strided", "_summed",
    "_timed_trial", "_trained", "_transformed", "_trimmed", "_turned", "_unmoved", "_unrounded", "_unsolved", "_used",
    "_widened", "accumulated", "adapted", "advised", "built_of", "concatenated", "consumed", "costly", "deduplicated",
    "disconnected", "distrusted", "extended", "fixed_sizes", "flagged", "inlined_file", "mapped", "observed", "paired",
    "passed_on", "received_by", "refreshed", "reshaped", "rotated", "scattered", "shown_by", "spread_of", "squeezed",
    "thinned", "tied", "transformed", "uncalled", "unsqueezed",
    # Words of a private dialect, and the field's words for them.
    "Answered",  # RunResult, PlacementAnswer
    "Ask", "asker", "askers",  # Runner, make_runner
    "LeftOut",  # Exclusion
    "Manner",  # ValidationRequest
    "Restamped", "Restamping", "restamp", "restamping", "restampings",  # version conversion
    "WrittenNode",  # SerializedNode
    "beside_rules", "by_rule",  # an engine's cases
    "company", "in_company",  # packmates, packed
    "established_version",  # newest_claimed_version
    "hindrance", "hindrances",  # unavailable_reason
    "is_built_by",  # Case.source
    "made_up",  # feeds_generated
    "on_sign", "still_s",  # heartbeat, idle_s
    # Participles, which say neither what a function does nor to what.
    "_banded", "_captured_log", "_claimed", "_composed", "_counted_by", "_fed", "_loaded", "_lowered", "_moved_most",
    "_prefixed", "_tried_as", "_unclaimed", "_unescaped", "_vetted", "_when_settled",
    "checked_line",  # check_line
    "compared_with_earlier",  # compare_with_earlier
    "fenced",  # fence_text
    "guarded_by",  # find_guarded_worker
    "joined_facts",  # join_facts
    "laid_out",  # lay_out
    "measured_accuracy",  # measure_accuracy
    "piped",  # start_piped
    "unknown_option",  # find_unknown_option
}  # fmt: skip
"""Identifiers that no file has: each with what takes its place."""


@cache
def tracked() -> tuple[PurePosixPath, ...]:
    """Every file of the repository that is committed or about to be, vendored ones left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout.splitlines()
    paths = (PurePosixPath(name) for name in listed)
    return tuple(path for path in paths if "vendor" not in path.parts and (ROOT / path).is_file())


def sources() -> list[PurePosixPath]:
    return [path for path in tracked() if path.suffix == ".py"]


class Defined(NamedTuple):
    """What is held of a class or a function: what it is, where, its length, and how many parameters it takes."""

    kind: str
    name: str
    path: PurePosixPath
    lines: int
    parameters: int


class Sources(NamedTuple):
    """What tests hold of all sources. nameless: where an identifier names nothing. unencoded: where what a process
    prints is read in no stated encoding. asking: files that ask `platform` for what Windows asks WMI. bare: where a
    package of epcheck is imported without `epcheck.`."""

    defined: list[Defined]
    nameless: set[str]
    unencoded: list[str]
    asking: set[str]
    bare: list[str]


@cache
def read_sources() -> Sources:
    """Each source is parsed once; the trees are not kept."""
    found = Sources([], set(), [], set(), [])
    for path in sources():
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if (name := identifier(node)) in FORBIDDEN:
                found.nameless.add(f"{path}: {name}")
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                kind = "class" if isinstance(node, ast.ClassDef) else "function"
                lines = (node.end_lineno or 0) - node.lineno + 1
                found.defined.append(Defined(kind, node.name, path, lines, parameters(node)))
            if isinstance(node, ast.keyword) and reads_text(node):
                found.unencoded.append(f"{path}:{node.lineno}")
            if isinstance(node, ast.Attribute) and asks_management(node):
                found.asking.add(str(path))
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.bare.extend(f"{path}:{node.lineno}: {name}" for name in bare_packages(node))
    return found


def reads_text(node: ast.keyword) -> bool:
    """Whether it is `text=True`."""
    return (
        node.arg in ("text", "universal_newlines") and isinstance(node.value, ast.Constant) and node.value.value is True
    )


def asks_management(node: ast.Attribute) -> bool:
    """Whether it is one of MANAGED."""
    return node.attr in MANAGED and isinstance(node.value, ast.Name) and node.value.id == "platform"


def bare_packages(node: ast.Import | ast.ImportFrom) -> list[str]:
    """What it imports of epcheck's packages by the names of their folders."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        names = [] if node.level else [node.module or ""]
    return [name for name in names if name.partition(".")[0] in PACKAGES]


def parameters(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many a caller gives."""
    if isinstance(node, ast.ClassDef):
        return 0
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def identifier(node: ast.AST) -> str:
    """The name that it has or asks for, if any."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.Attribute):
        return "" if node.attr == "given" and ast.unparse(node) == "hypothesis.given" else node.attr
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else ""


def section(title: str) -> str:
    """The text of the page under a heading, to the next one of the same depth."""
    _, _, text = PAGE.partition(f"\n## {title}\n")
    assert text, title
    return text.partition("\n## ")[0]


def rows(text: str) -> Iterator[list[str]]:
    """The cells of a Markdown table's rows, without the head."""
    for line in text.splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|\s-]+", line):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_states_the_layers_that_the_imports_are_held_to(package: str) -> None:
    (row,) = [
        row for row in rows(section("Layout: a folder is a package")) if row[0] == f"`{package}/`" and len(row) == 4
    ]
    shown = MAY_IMPORT[package] - {package}
    if package == "cli":
        assert row[3] == "`api`, and what it shows"
        assert "api" in shown
    else:
        assert set(quoted(row[3])) == shown


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_names_every_folder_of_a_package(package: str) -> None:
    found = [
        row for row in rows(section("Layout: a folder is a package")) if row[0] == f"`{package}/`" and len(row) == 2
    ]
    named = {name.partition("/")[0] for row in found for name in quoted(row[1])}
    assert named == {path.parts[1] for path in tracked() if path.parts[0] == package and len(path.parts) > 2}


def test_every_file_that_the_page_names_is_there() -> None:
    names = [name for name in quoted(PAGE) if re.fullmatch(r"[\w./]+\.(py|md|toml)", name)]
    assert len(names) > 20
    assert [name for name in names if not (ROOT / name).is_file() and name != "epcheck.toml"] == []


def test_the_journey_follows_a_case_that_the_suite_has() -> None:
    from epcheck.generators import suite

    (case_id,) = re.findall(r"This section follows `([^`]+)`", PAGE)
    assert suite.case_by_id(case_id).id == case_id


def test_the_glossary_explains_each_word_once_and_in_order() -> None:
    words = [row[0] for row in rows(section("Glossary"))][1:]
    assert len(words) > 20
    assert words == sorted(set(words))


def test_classes_and_functions_fit_a_screen_or_a_few() -> None:
    defined = read_sources().defined
    assert {each.kind for each in defined} == {"class", "function"}
    limits = {"class": LINES_OF_A_CLASS, "function": LINES_OF_A_FUNCTION}
    too_long = [
        f"{each.path}: {each.kind} {each.name} has {each.lines} lines"
        for each in defined
        if each.lines > limits[each.kind]
    ]
    assert too_long == []


def test_functions_take_few_parameters() -> None:
    defined = read_sources().defined
    too_many = [f"{each.path}: {each.name} takes {each.parameters}" for each in defined if each.parameters > PARAMETERS]
    assert too_many == []


def test_a_package_of_epcheck_is_imported_by_its_full_name() -> None:
    """The root of the checkout is on the path of the tests: `import models` would load `epcheck.models` once more."""
    assert read_sources().bare == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import models.zoo, numpy", ["models.zoo"]),
        ("from api import run", ["api"]),
        ("from reports.store import query", ["reports.store"]),
        ("from epcheck.reports import store", []),
        ("from .models import zoo", []),
        ("from . import cli", []),
        ("from tests.models import small_models", []),
    ],
)
def test_an_import_by_the_name_of_a_folder_is_found(source: str, names: list[str]) -> None:
    (node,) = ast.parse(source).body
    assert isinstance(node, ast.Import | ast.ImportFrom)
    assert bare_packages(node) == names


@pytest.mark.parametrize("folder", ["benchmarks", "docs", "tests"])
def test_no_installed_package_is_taken_for_a_folder_that_tests_import_from(folder: str) -> None:
    """A folder without `__init__.py` comes after every installed package of its name."""
    assert (ROOT / folder / "__init__.py").is_file()


def test_an_identifier_says_what_it_names() -> None:
    assert sorted(read_sources().nameless) == []


def test_no_file_is_named_for_nothing() -> None:
    nothing = {"util", "utils", "helper", "helpers", "misc", "common", "manager"}
    assert [str(path) for path in tracked() if Path(path).stem in nothing] == []


def test_what_a_process_prints_is_read_in_a_stated_encoding() -> None:
    """`text=True` alone means the code page of Windows, of which what prints knows nothing."""
    assert read_sources().unencoded == []


MANAGED = ("machine", "node", "platform", "processor", "release", "system", "uname", "version", "win32_ver")
"""Functions of `platform` that on Windows ask WMI, a service that may be stopped: then they take minutes."""

ASK_ELSEWHERE = {
    "conformance/lab/system.py": "of Linux",
    "conformance/targets/recipes/swiftshader.py": "of Linux",
    "conformance/workers/program/machine.py": "of other systems than Windows",
    "conformance/workers/program/namespaces.py": "of Linux",
    "conformance/workers/program/seccomp.py": "of Linux",
}
"""File -> of what it asks `platform`."""


def test_nothing_asks_the_management_of_windows() -> None:
    found = {path for path in read_sources().asking if PurePosixPath(path).parts[0] in PACKAGES}
    assert found == set(ASK_ELSEWHERE)
