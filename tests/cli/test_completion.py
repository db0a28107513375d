"""Shell completion: what is offered where, in the words of each shell, and in little time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from epcheck.api.suite import listing
from epcheck.cli import cache, completion, main
from epcheck.cli.completion import OF_ARGUMENT, OF_FLAG, SuiteNames
from tests.command_line import START
from tests.programs import is_quick


@pytest.fixture(scope="module")
def cached(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache in which everything is, which no test takes from the user's."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EPCHECK_CACHE", str(folder))
        main.load_outlines()
        completion.load_names()
        completion.load_case_ids()
    return folder


@pytest.fixture(autouse=True)
def here(cached: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPCHECK_CACHE", str(cached))
    monkeypatch.chdir(tmp_path)


def ask(variables: Mapping[str, str]) -> str:
    """What a shell reads when its person presses Tab."""
    done = subprocess.run(
        START, env={**os.environ, **variables}, capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.rstrip("\n")


def ask_bash(line: str) -> list[str]:
    """What is offered at the end of a command line without `epcheck`."""
    words = f"epcheck {line}".split(" ")
    variables = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    return ask({**variables, "_EPCHECK_COMPLETE": "complete_bash"}).splitlines()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ru", ["run"]),
        ("lab ", ["install", "status", "python", "remove", "pack", "unpack"]),
        ("run --op Top", ["TopK"]),
        ("run --thin --op com.microsoft::Gel", ["com.microsoft::Gelu"]),
        ("list --op TopK --op Slic", ["Slice"]),
        ("run --dtype uint1", ["uint16"]),
        ("run --target d", ["dml", "directml"]),
        ("run --baseline ref", ["reference"]),
        ("run --source ", ["suite", "onnx"]),
        ("run --str", ["--strict", "--strict-accuracy"]),
        ("run --limit ", []),
        ("validate mod", []),
        ("repro Compress-", ["Compress-28/", "Compress-11/", "Compress-9/"]),
        ("repro Compress-11/float32/axis_minus_r", [
            f"Compress-11/float32/axis_minus_rank[{binding}]"
            for binding in ("constant", "initializer", "runtime", "symbolic")
        ]),
    ],
)  # fmt: skip
def test_what_is_offered(line: str, expected: list[str]) -> None:
    assert sorted(ask_bash(line)) == sorted(expected)


def test_targets_of_this_folder_and_run_folders_are_offered(tmp_path: Path) -> None:
    (tmp_path / "epcheck.toml").write_text('[targets.demo]\nfunction = "m:f"\n', encoding="utf-8")
    for name in ("epcheck-runs/20250101-aaaa", "epcheck-runs/20250102-bbbb", "other/20250103-cccc"):
        (tmp_path / name).mkdir(parents=True)
    assert ask_bash("run --target dem") == ["demo"]
    newest = [str(Path("epcheck-runs") / name) for name in ("20250102-bbbb", "20250101-aaaa")]
    assert ask_bash("report ") == newest
    assert ask_bash("diff ") == newest
    assert ask_bash("run --resume ") == ["latest", *newest]
    assert ask_bash("report --root other ") == [str(Path("other") / "20250103-cccc")]


@pytest.mark.parametrize("text", ["[targets", "targets = 3", 'targets = ["cp\\u001b"]'])
def test_a_damaged_epcheck_toml_is_no_obstacle(text: str, tmp_path: Path) -> None:
    (tmp_path / "epcheck.toml").write_text(text, encoding="utf-8")
    assert completion.complete_target("cp") == ["cpu"]


def test_every_completer_completes_an_option_or_argument_of_a_command() -> None:
    parameters = [
        parameter
        for outline in main.load_outlines().values()
        for command in outline.commands
        for parameter in command.parameters
    ]
    flags = {flag for each in parameters for flag in each.flags or (f"--{each.name.replace('_', '-')}",)}
    assert set(OF_FLAG) - flags == set()
    assert set(OF_ARGUMENT) - {each.name for each in parameters if each.argument} == set()


@pytest.mark.parametrize(
    ("line", "variables", "expected"),
    [
        ("epcheck run --source su", {"_EPCHECK_COMPLETE": "complete_zsh"}, "_arguments '*: :((\"suite\"))'"),
        ("epcheck validate m", {"_EPCHECK_COMPLETE": "complete_zsh"}, "_files"),
        ("epcheck run 'an open", {"_EPCHECK_COMPLETE": "complete_zsh"}, "_files"),
        ("epcheck run --vul", {"_EPCHECK_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
         "--vulkan\tVulkan driver of the lab."),
        ("epcheck ru", {"_EPCHECK_COMPLETE": "complete_powershell", "_TYPER_COMPLETE_WORD_TO_COMPLETE": "ru"},
         "run:::Run the suite on a provider and write a..."),
    ],
)  # fmt: skip
def test_each_shell_is_answered_in_its_words(line: str, variables: dict[str, str], expected: str) -> None:
    assert ask({"_TYPER_COMPLETE_ARGS": line, **variables}) == expected


def test_the_names_are_those_of_the_suite() -> None:
    names = cache.load("suite_names.json", SuiteNames, lambda: pytest.fail("they are kept"))
    operators = {each.name: each.since_versions[::-1] for each in listing.operators() if each.name in ("Slice", "TopK")}
    assert {name: names.operators[name] for name in operators} == operators
    assert [case for case in completion.complete_case("Slice-13/") if not case.startswith("Slice-13/")] == []


@pytest.mark.parametrize("words", ["run\n--op\nTop", "repro\nCompress-11/float32/axis_minus_r"])
def test_an_answer_is_fast_and_imports_neither_onnx_nor_numpy(words: str) -> None:
    variables = {"COMP_WORDS": f"epcheck\n{words}", "COMP_CWORD": str(words.count("\n") + 1)}
    assert is_quick([], words.rpartition("\n")[2], _EPCHECK_COMPLETE="complete_bash", **variables)
