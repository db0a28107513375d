"""Every command line in README and docs is one that epcheck takes: command, options, and the types of their values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from epcheck.cli import main

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md"))
    if path.name != "CHANGELOG.md"  # it names what is gone, too
)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)(?:(?: {4}|\t).*\n)+")
INLINE = re.compile(r"`epcheck ([^`]+)`")
INCOMPLETE = ("MissingParameter", "NoArgsIsHelpError")
SHELL = ("", "sh", "console", "bash")


def in_blocks(text: str) -> Iterator[str]:
    """The command lines of a page that stand in blocks, without `epcheck`."""
    blocks = [block for language, block in FENCED.findall(text) if language in SHELL]
    for block in (*blocks, *INDENTED.findall(FENCED.sub("", text))):
        for line in block.replace("\\\n", " ").splitlines():
            command, *_ = re.split(r"\s#\s", line.strip())
            for part in re.split(r" && | \| ", command):
                if part.startswith("epcheck "):
                    yield part.removeprefix("epcheck ")


def in_sentences(text: str) -> Iterator[str]:
    """The command lines of a page that stand in its sentences, without `epcheck`."""
    prose = INDENTED.sub("", FENCED.sub("", text))
    return (found.replace("\n", " ") for found in INLINE.findall(prose))


@cache
def command(name: str) -> Any:
    root = typer.main.get_command(main.app)
    return root.get_command(typer.Context(root, info_name="epcheck"), name)  # type: ignore[attr-defined]


def problem(line: str, partly: bool = False) -> str:
    """Why epcheck would not take a line; empty where it would. partly: whether what is required may lack."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        return str(error)
    name, *rest = words
    if name.startswith("-"):
        return ""
    chosen = command(name)
    if chosen is None:
        return f"no command '{name}'"
    while hasattr(chosen, "commands") and rest and not rest[0].startswith("-"):
        if rest[0] not in chosen.commands:
            return f"no command '{name} {rest[0]}'"
        chosen = chosen.commands[rest.pop(0)]
    try:
        chosen.make_context(name, rest)
    except Exception as error:
        kind = type(error).__name__
        if partly and (kind in INCOMPLETE or str(error).endswith("requires an argument.")):
            return ""
        return f"{kind}: {getattr(error, 'message', error)}"
    return ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_epcheck_takes_every_command_line_of_a_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = {line: problem(line) for line in in_blocks(text)}
    found |= {line: problem(line, partly=True) for line in in_sentences(text) if line not in found}
    assert {line: why for line, why in found.items() if why} == {}


def test_command_lines_are_found_and_wrong_ones_are_wrong() -> None:
    found = [line for path in PAGES for line in in_blocks(path.read_text(encoding="utf-8"))]
    assert len(found) > 120
    for line in ("rum", "run --no-such", "run --limit many", "lab instal", "repro", "store add"):
        assert problem(line) != ""
    assert problem("repro", partly=True) == ""
    assert problem("repro --no-such", partly=True) != ""
