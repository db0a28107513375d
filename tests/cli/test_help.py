"""`--help` from what is kept: the same text as the command's own, for every command, and in little time."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pytest
import typer

from epcheck.cli import cache as kept
from epcheck.cli import main
from epcheck.cli.outline import Outline, build_app, describe_app
from tests.command_line import call
from tests.programs import is_quick


@pytest.fixture(scope="module")
def known() -> Mapping[str, Outline]:
    return main.describe_commands()


@pytest.fixture(autouse=True)
def cache(known: Mapping[str, Outline], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EPCHECK_CACHE", str(tmp_path))
    kept.load(main.OUTLINES, dict[str, Outline], lambda: dict(known))
    return tmp_path


def words(known: Mapping[str, Outline]) -> Iterator[tuple[str, ...]]:
    for name, each in known.items():
        yield (name,)
        if len(each.commands) > 1 or each.callback:
            yield from ((name, below.name or below.function) for below in each.commands)


def test_every_help_is_that_of_the_command_itself(
    known: Mapping[str, Outline], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list(words(known))
    assert len(asked) > 40
    from_kept = [call(*each, "--help").out for each in asked]
    monkeypatch.setenv("EPCHECK_CACHE", "off")
    itself = [call(*each, "--help").out for each in asked]
    assert [each for each, shown, own in zip(asked, from_kept, itself, strict=True) if shown != own] == []
    assert "--strict" in from_kept[0]


def test_the_list_of_commands_is_the_same_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = call("--help").out
    assert [name for name in main.MODULES if f" {name} " not in shown] == []
    monkeypatch.setenv("EPCHECK_CACHE", "off")
    assert call("--help").out == shown


def test_the_list_has_every_command_in_its_group_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = call("--help").out
    at = [listed.index(f"─ {title} ─") for title in main.GROUPS]
    assert at == sorted(at)
    for title, start, end in zip(main.GROUPS, at, [*at[1:], len(listed)], strict=True):
        shown = [line.split()[1] for line in listed[start:end].splitlines() if re.match(r"│ [a-z]", line)]
        assert shown == list(main.GROUPS[title])
    assert "Nothing is sent" not in listed  # the second sentence of report-bug
    assert at[0] < listed.index("│ run ") < at[1]
    assert at[-1] < listed.index("─ Options ─") < listed.index("│ --version")
    files = {path.stem for path in (Path(main.__file__).parent / "commands").glob("*/*.py")} - {"__init__"}
    assert {module.partition(".")[2] for module in main.MODULES.values()} == files


def test_help_of_what_is_kept_is_shown_and_calls_are_the_commands_own(
    known: Mapping[str, Outline], cache: Path
) -> None:
    changed = {**known, "cache": replace(known["cache"], settings={**known["cache"].settings, "help": "Kept words."})}
    (cache / main.OUTLINES).unlink()
    kept.load(main.OUTLINES, dict[str, Outline], lambda: changed)
    assert "Kept words." in call("cache", "--help").out
    assert "Kept words." not in call("cache").out
    assert call("cache", "--help", "clear").code == 0
    assert "`epcheck repro` has no option --no-such." in call("repro", "--no-such", "--help").err


PANELS = ("Select", "Judge", "Machine", "Output")


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", ["run", "nightly", "validate"])
def test_the_options_are_in_four_panels(command: str, columns: int) -> None:
    shown = call(command, "--help", columns=columns).out
    panels = [panel for panel in re.findall(r"[╭┌]─ (\w+) ─", shown) if panel != "Arguments"]
    assert panels == list(PANELS)
    assert max(map(len, shown.splitlines())) == columns - (sys.platform == "win32")  # rich leaves a column free there


def test_each_option_is_in_its_panel() -> None:
    shown = call("run", "--help", columns=120).out
    parts = {part.partition(" ")[0]: part for part in re.split("[╭┌]─ ", shown)[1:]}
    flags = {panel: re.findall(r"^│ (--[\w-]+|-k)", re.sub(r"^│ +-k", "│ -k", part, flags=re.M), re.M)
             for panel, part in parts.items()}  # fmt: skip
    assert flags["Select"][:5] == ["--target", "--op", "--dtype", "-k", "--limit"]
    assert flags["Judge"] == [
        "--baseline", "--explain", "--variants", "--context-from", "--uses",
        "--expect", "--claims", "--strict", "--max-flaky", "--strict-accuracy",
        "--reference",
    ]  # fmt: skip
    assert flags["Machine"] == ["--vulkan", "--config", "--jobs", "--pack", "--cache", "--scheduler", "--may-differ"]
    assert flags["Output"][:3] == ["--root", "--store", "--trace"]
    assert flags["Output"][-1] == "--help"


def test_a_command_with_few_options_has_one_panel() -> None:
    assert re.findall(r"[╭┌]─ (\w+) ─", call("bisect", "--help").out) == ["Arguments", "Options"]


@pytest.mark.parametrize("damage", ["{", "[]", '{"stamp": 1}', '{"stamp": STAMP, "value": {"run": 3}}'])
def test_what_is_damaged_or_of_another_installation_is_made_again(
    damage: str, cache: Path, known: Mapping[str, Outline]
) -> None:
    made: list[str] = []

    def make() -> dict[str, Outline]:
        made.append("again")
        return dict(known)

    path = cache / main.OUTLINES
    path.write_text(damage.replace("STAMP", json.dumps(kept.read_stamp())), encoding="utf-8")
    for _ in range(2):
        assert kept.load(main.OUTLINES, dict[str, Outline], make) == known
    assert made == ["again"]
    path.write_text(path.read_text("utf-8").replace(json.dumps(kept.read_stamp()), '"before"'), encoding="utf-8")
    assert kept.load(main.OUTLINES, dict[str, Outline], make) == known
    assert made == ["again", "again"]


def test_an_outline_makes_the_outline_again(known: Mapping[str, Outline]) -> None:
    assert {name: describe_app(build_app(each)) for name, each in known.items()} == known


def test_a_parameter_of_a_type_that_cannot_be_kept_is_an_error() -> None:
    app = typer.Typer()

    @app.command()
    def call(value: Annotated[complex, typer.Option(help="A number.")] = 0j) -> None:
        """Nothing."""

    with pytest.raises(TypeError, match="complex"):
        describe_app(app)


@pytest.mark.parametrize("command", ["run", "validate", "lab"])
def test_help_is_fast_and_imports_neither_onnx_nor_numpy(command: str) -> None:
    assert is_quick([command, "--help"], "Usage: ")
