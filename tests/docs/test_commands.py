"""Every command line in README and docs is one that epcheck takes: command, options, and the types of their values."""

from __future__ import annotations

import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from epcheck.cli import main
from tests.documents import PAGES, ROOT, in_blocks, in_sentences

INCOMPLETE = ("MissingParameter", "NoArgsIsHelpError")


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
