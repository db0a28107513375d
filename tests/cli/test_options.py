"""A command made from a dataclass of options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner, Result

from epcheck.api.option import Group, Option, OptionError
from epcheck.cli.options import command


def pairs(texts: Sequence[str]) -> Mapping[str, str]:
    return dict(text.split("=") for text in texts)


def number(text: str) -> int:
    if not text.isdecimal():
        raise OptionError(f"--level {text}: is no number")
    return int(text)


@dataclass(frozen=True)
class Colours:
    names: Annotated[tuple[str, ...], Option("A colour; repeat.", flags=("--colour", "-c"))] = ("red", "blue")
    bright: Annotated[bool, Option("Brighter.")] = True
    hidden: int = 7


@dataclass(frozen=True)
class Options:
    path: Annotated[Path, Option("A file.", argument=True, metavar="FILE")]
    size: Annotated[int, Option("How many.", minimum=1)] = 3
    pairs: Annotated[Mapping[str, str], Option("NAME=VALUE.", flags=("--pair",), parse=pairs, many=True)] = field(
        default_factory=dict
    )
    level: Annotated[int | None, Option("How high.", parse=number)] = None
    colours: Annotated[
        Colours, Group(("bright", "names"), {"bright": Option("Not so dark.", flags=("--bright",), after="size")})
    ] = field(default_factory=Colours)


@pytest.fixture
def parsed() -> Callable[..., tuple[Options | None, Result]]:
    def parse(*arguments: str) -> tuple[Options | None, Result]:
        app, found = typer.Typer(), list[Options]()

        @command(app, Options)
        def take(options: Options) -> int:
            """Take them."""
            found.append(options)
            return 3

        result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "120", "NO_COLOR": "1"})
        return (found[0] if found else None), result

    return parse


Parsed = Callable[..., tuple[Options | None, Result]]


def test_what_is_left_out_has_the_fields_default(parsed: Parsed) -> None:
    options, result = parsed("a.txt")
    assert options == Options(Path("a.txt"))
    assert result.exit_code == 3


def test_what_is_written_becomes_values(parsed: Parsed) -> None:
    options, _ = parsed("a", "--size", "4", "--pair", "a=1", "--pair", "b=2", "--level", "5", "-c", "green", "--bright")
    assert options == Options(Path("a"), 4, {"a": "1", "b": "2"}, 5, Colours(("green",), True))


def test_what_cannot_be_parsed_is_one_sentence_and_exit_code_2(parsed: Parsed) -> None:
    options, result = parsed("a", "--level", "high")
    assert (options, result.exit_code, result.stderr) == (None, 2, "epcheck: --level high: is no number\n")
    assert parsed("a", "--size", "0")[1].exit_code == 2
    assert parsed()[1].exit_code == 2


def test_help_lists_options_as_they_are_declared(parsed: Parsed) -> None:
    shown = parsed("--help")[1].stdout
    order = [shown.index(text) for text in ("--size", "--bright", "--pair", "--level", "--colour")]
    assert order == sorted(order)
    assert "Take them." in shown
    assert "Not so dark." in shown
    assert "hidden" not in shown
    assert "[default: 3]" in shown
