"""The Python of the README and of docs: every block runs as it stands, by itself, with the CPU provider for DirectML.

A block that needs a cluster or installs the lab or releases is not run; its imports, calls and the names of their
arguments are checked.
"""

from __future__ import annotations

import ast
import inspect
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from epcheck import api, reports
from epcheck.conformance.targets.target import Target
from tests.documents import ROOT, make_world

CASES = 12
"""Cases of each run whose options do not limit them."""

NOT_RUN = (
    "scheduler=",
    "install_lab",
    "pack_lab",
    "pack_env",
    "api.bisect",
    'CoverageOptions(provider="DmlExecutionProvider")',
)
"""Blocks with one of these are checked only; that DirectML's coverage can be asked for is told by `test_coverage`."""

IN_THE_LAB = 'resolve("directml")'
"""Blocks with this run in the lab only."""


@dataclass(frozen=True)
class Block:
    """Python in a Markdown file. line: of its first line."""

    path: Path
    line: int
    source: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}"


def blocks() -> list[Block]:
    found = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            found.append(Block(path, text.count("\n", 0, match.start(1)) + 1, match[1]))
    return found


RUNNABLE = [
    pytest.param(block, id=str(block), marks=pytest.mark.slow)
    for block in blocks()
    if not any(word in block.source for word in (*NOT_RUN, IN_THE_LAB))
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the blocks read: runs, a store, shards, a model with feeds, expectations."""
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    return folder


@pytest.fixture
def here(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(world, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    for name in ("EPCHECK_STORE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


def on_cpu(source: str) -> str:
    """The block as a machine without DirectML runs it, in seconds: fewer cases, and a target that is wrong where
    something wrong is looked for."""
    candidate = "python:wrong_relu:run" if re.search(r"api\.(reduce|report_bug)\b", source) else "cpu"
    source = re.sub(r'"cpu@[\d.]+"', '"cpu"', source)  # a release would have to be installed
    source = re.sub(r"api\.SpeedOptions\((?!.*seconds=)", "api.SpeedOptions(seconds=1, targets=", source)
    source = source.replace("seconds=10", "seconds=1")
    source = source.replace('"dml@1.20.1"', '"reference"').replace('"dml"', f'"{candidate}"')
    source = re.sub(r"minutes=[\d.]+", "minutes=0.02", source)
    if "fuzz_minutes=" not in source:  # a search takes half a minute at least
        source = source.replace("api.NightlyOptions(", "api.NightlyOptions(fuzz_minutes=0, run=")
    source = source.replace('providers=["DmlExecutionProvider"]', 'providers=["CPUExecutionProvider"]')
    return (
        source if "limit=" in source else source.replace("RunOptions(targets=", f"RunOptions(limit={CASES}, targets=")
    )


def run(block: Block, source: str) -> None:
    names: dict[str, Any] = {"__name__": "block"}
    exec(compile("\n" * (block.line - 1) + source, str(block.path), "exec"), names)
    for name, value in names.items():
        if name.startswith("test_"):
            value(epcheck_validate=validate_on_cpu)


def validate_on_cpu(model: str, **options: Any) -> api.Validation:
    """Stands in for the fixture of the plugin, which would choose DirectML in the lab."""
    return api.validate(api.ValidateOptions((Path(model),), ("cpu",), **options)).validation


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("block", RUNNABLE)
def test_a_block_runs_as_it_stands(block: Block) -> None:
    run(block, on_cpu(block.source))


def test_the_block_that_calls_directml_runs_in_the_lab(dml: Target) -> None:  # noqa: ARG001
    (block,) = (block for block in blocks() if IN_THE_LAB in block.source)
    run(block, block.source)


@pytest.mark.parametrize("block", blocks(), ids=str)
def test_the_names_in_a_block_exist(block: Block) -> None:
    check_names(block.source)


def check_names(source: str) -> None:
    """Raise where an import fails, or a function that is called by a dotted name does not exist or does not take what
    it is called with."""
    tree = ast.parse(source)
    names: dict[str, Any] = {}
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), "imports", "exec"), names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (function := named(node.func, names)) is not None:
            keywords = {keyword.arg: None for keyword in node.keywords if keyword.arg}
            arguments = [None] * len(node.args)
            signature(function)(*arguments, **keywords)


def named(node: ast.expr, names: dict[str, Any]) -> Any:
    """What a dotted name that begins with an import stands for; None for any other expression."""
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=value, attr=name):
            owner = named(value, names)
            return None if owner is None else getattr(owner, name)
    return None


def signature(function: Callable[..., Any]) -> Callable[..., object]:
    """What raises TypeError where the function cannot be called so; functions written in C take anything."""
    try:
        return inspect.signature(function).bind
    except ValueError:
        return lambda *_arguments, **_keywords: None


@pytest.mark.parametrize(
    "source",
    [
        "from epcheck import no_such_module",
        "from epcheck.api import no_such_call",
        "from epcheck import api\napi.no_such_call()",
        "from epcheck import api\napi.run(api.RunOptions(no_such_option=1))",
        "from epcheck import api\nprint([api.diff() for _ in ()])",
    ],
)
def test_a_name_that_does_not_exist_is_found(source: str) -> None:
    with pytest.raises((ImportError, AttributeError, TypeError)):
        check_names(source)


def test_blocks_are_found() -> None:
    assert len(blocks()) >= 28
    assert Path("epcheck-runs") == reports.DEFAULT_ROOT  # which the blocks name
