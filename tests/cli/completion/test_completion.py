"""Shell completion: what is offered where, in the words of each shell, and that it imports next to nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from command_line import START, call

from epcheck.cli import kept_file, main
from epcheck.cli.completion import answer, index
from epcheck.cli.completion.candidates import KINDS, candidates
from epcheck.cli.completion.index import Index

FIRST_S = 0.3
"""Seconds of CPU that an answer may take."""


@pytest.fixture(scope="module")
def known() -> Index:
    return main.completion_index()


@pytest.fixture(autouse=True)
def kept(known: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the index is, which no test takes from the user's cache."""
    monkeypatch.setenv("EPCHECK_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    index.write(known)
    return tmp_path / "cache" / "completion.json"


def not_made() -> Index:
    raise AssertionError("the index is there")


def offered(line: str) -> list[str]:
    """What is offered at the end of a command line without `epcheck`."""
    *words, incomplete = line.split(" ")
    found = index.read()
    assert found is not None
    return [each.value for each in candidates(found, words, incomplete)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ru", ["run"]),
        ("lab ", ["install", "status", "remove", "pack", "unpack"]),
        ("run --op Top", ["TopK"]),
        ("run --thin --op com.microsoft::Gel", ["com.microsoft::Gelu"]),
        ("list --op TopK --op Slic", ["Slice"]),
        ("run --dtype uint1", ["uint16"]),
        ("run --target d", ["dml", "directml"]),
        ("run --baseline ref", ["reference"]),
        ("run --source ", ["suite", "onnx"]),
        ("run --str", ["--strict"]),
        ("run --limit ", []),
        ("validate mod", []),
        ("no-such-command ", []),
        ("repro Compress-", ["Compress-28/", "Compress-11/", "Compress-9/"]),
        ("repro Compress-11/float32/axis_minus_r", [
            f"Compress-11/float32/axis_minus_rank[{binding}]"
            for binding in ("constant", "initializer", "runtime", "symbolic")
        ]),
    ],
)  # fmt: skip
def test_what_is_offered(line: str, expected: list[str]) -> None:
    assert sorted(offered(line)) == sorted(expected)


def test_targets_of_this_folder_and_run_folders_are_offered(tmp_path: Path) -> None:
    (tmp_path / "epcheck.toml").write_text('[targets.demo]\nfunction = "m:f"\n', encoding="utf-8")
    for name in (
        "epcheck-runs/20250101-000000-aaaa",
        "epcheck-runs/20250102-000000-bbbb",
        "other/20250103-000000-cccc",
    ):
        (tmp_path / name).mkdir(parents=True)
    assert offered("run --target dem") == ["demo"]
    newest = [str(Path("epcheck-runs") / name) for name in ("20250102-000000-bbbb", "20250101-000000-aaaa")]
    assert offered("report ") == newest
    assert offered("diff ") == newest
    assert offered("coverage --run epcheck-runs/20250102") == newest[:1]
    assert offered("run --resume ")[:1] == offered("expect --from l") == ["latest"]
    assert offered("report --root other ") == [str(Path("other") / "20250103-000000-cccc")]


def test_a_damaged_epcheck_toml_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "epcheck.toml").write_text("[targets", encoding="utf-8")
    assert offered("run --target cp") == ["cpu"]


def test_every_command_is_known_and_every_option_of_a_kind(known: Index) -> None:
    names = {name.partition(" ")[0] for name in known.commands}
    assert names == set(main.MODULES)
    kinds = {flag.kind for command in known.commands.values() for flag in command.flags.values()} - {""}
    kinds |= {command.argument for command in known.commands.values()} - {""}
    assert kinds == set(KINDS)
    without = [name for name in ("report", "diff", "repro", "store add", "merge") if not known.commands[name].argument]
    assert without == []
    root = typer.main.get_command(main.app)
    helps = {name: root.get_command(typer.Context(root), name).help for name in ("run", "lab")}  # type: ignore[attr-defined]
    assert known.commands["run"].help == "Run the suite on a provider, judge it and write the report."
    assert helps["run"].startswith(known.commands["run"].help)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"COMP_WORDS": "epcheck\nrun\n--op\nTop", "COMP_CWORD": "3", answer.ASKED: "complete_bash"}, "TopK"),
        ({"COMP_WORDS": "epcheck\nrun\n--op\ncom.microsoft\n::\nGel", "COMP_CWORD": "5", answer.ASKED: "complete_bash"},
         "Gelu"),
        ({"COMP_WORDS": "epcheck\nrun\n--source\n=\nsu", "COMP_CWORD": "4", answer.ASKED: "complete_bash"}, "suite"),
        ({"COMP_WORDS": "epcheck\nrun\n--op\n", "COMP_CWORD": "9", answer.ASKED: "complete_bash"}, None),
        ({"_TYPER_COMPLETE_ARGS": "epcheck run --source su", answer.ASKED: "complete_zsh"},
         "_arguments '*: :((\"suite\"))'"),
        ({"_TYPER_COMPLETE_ARGS": "epcheck validate m", answer.ASKED: "complete_zsh"}, "_files"),
        ({"_TYPER_COMPLETE_ARGS": "epcheck run --vul", "_TYPER_COMPLETE_FISH_ACTION": "get-args",
          answer.ASKED: "complete_fish"}, "--vulkan\tVulkan driver of the lab."),
        ({"_TYPER_COMPLETE_ARGS": "epcheck run 'an open", answer.ASKED: "complete_zsh"}, "_files"),
        ({"_TYPER_COMPLETE_ARGS": "epcheck ru", "_TYPER_COMPLETE_WORD_TO_COMPLETE": "ru",
          answer.ASKED: "complete_powershell"}, "run:::Run the suite on a provider, judge it and write the report."),
    ],
)  # fmt: skip
def test_each_shell_is_answered_in_its_words(variables: dict[str, str], expected: str | None) -> None:
    text, code = answer.answer(variables, not_made)
    assert code == 0
    if expected is not None:
        assert text == expected


@pytest.mark.parametrize(("line", "code"), [("epcheck run --op To", 0), ("epcheck validate m", 1)])
def test_fish_learns_whether_there_is_anything_but_files(line: str, code: int) -> None:
    variables = {
        "_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "is-args", answer.ASKED: "complete_fish",
    }  # fmt: skip
    assert answer.answer(variables, not_made) == ("", code)


def test_an_index_of_another_state_is_made_again(kept: Path, known: Index) -> None:
    assert index.read() is not None
    for damaged in (kept.read_text("utf-8").replace(kept_file.stamp(), "before"), "{", '{"stamp": 3}'):
        kept.write_text(damaged, encoding="utf-8")
        assert index.read() is None
    assert answer.current(lambda: known) == known
    assert index.read() is not None


def test_without_a_cache_the_index_is_made_each_time(monkeypatch: pytest.MonkeyPatch, known: Index) -> None:
    monkeypatch.setenv("EPCHECK_CACHE", "off")
    index.write(known)
    assert index.read() is None
    assert answer.current(lambda: known) == known


def test_the_help_is_the_same_from_the_index() -> None:
    first = call("--help").out
    assert "Find out since which release" in first or "bisect" in first
    lines = [line.split() for line in first.splitlines()]
    assert [name for name in main.MODULES if not any(name in words[:2] for words in lines)] == []


def test_the_first_answer_is_fast_and_imports_neither_onnx_nor_typer() -> None:
    """Measured in CPU time: the machine may be busy."""
    asked = {**os.environ, "COMP_WORDS": "epcheck\nrun\n--op\nTop", "COMP_CWORD": "3", answer.ASKED: "complete_bash"}
    done = subprocess.run(START, env=asked, capture_output=True, text=True, check=True)
    assert done.stdout == "TopK\n"
    program = (
        "import os, sys, time; from epcheck.cli.completion import answer; answer.answer(os.environ, None);"
        "print(time.process_time(), *sorted({'onnx', 'numpy', 'typer', 'rich', 'duckdb'} & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], env=asked, capture_output=True, text=True, check=True
    ).stdout
    seconds, *heavy = printed.split()
    assert heavy == []
    assert float(seconds) < FIRST_S
