"""What strangers wrote is shown and never obeyed, whatever command shows it; and only the terminal prints."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.cli import pytest_plugin
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.cli.terminal.text import cut, printable, text
from epcheck.conformance.records import strict_json
from epcheck.conformance.records.record import Record, decode, encode
from epcheck.conformance.records.run import Run
from epcheck.reports import read_records, read_run, write_outcomes, write_run
from epcheck.reports.checksum import line_with_checksum
from tests.command_line import ENVIRONMENT, Done, call, epcheck
from tests.reports.stored_records import a_run, a_slice, a_wrong_slice, an_opinion, stored

CLI = Path(__file__).parents[3] / "cli"

SHOWN = "\x1b[31m\x1b]0;owned\x07\x9b2J\x7f\b\u202e\u2066\u200b\u2028\u00ad\ufeff\U000e0041\u3164\ufe0f[red]x[/]"
"""CSI, OSC, C1, what goes back, what turns the direction of writing, what shows nothing, markup of rich's."""
HOSTILE = f"{SHOWN}\ud800\n\r"
"""With half of a surrogate pair and ends of lines, which a file name, protobuf and TOML do not hold."""

WORDS = {
    "a  b": "a  b",
    "two\nlines\t\x1b[31m": r"two\nlines\t\x1b[31m",
    "\ud800\u202e": r"\ud800\u202e",
    "\x9b\x7f": r"\x9b\x7f",
    "\u200b\u2066\u00ad\ufeff\u2028": r"\u200b\u2066\xad\ufeff\u2028",
    "\u3164\u115f\ufe0f\u034f\u2800": r"\u3164\u115f\ufe0f\u034f\u2800",
    "\U000e0041\U000e0100": r"\U000e0041\U000e0100",
    "[red]x[/]": "[red]x[/]",
    "Größe 模型 ε": "Größe 模型 ε",
}


@pytest.mark.parametrize("words", WORDS)
def test_a_name_from_a_stranger_stays_on_its_line(words: str) -> None:
    assert printable(words) == WORDS[words]
    assert text(words).plain == text((words, "bold red")).plain == WORDS[words]
    file = io.StringIO()
    terminal = Terminal(file, width=200)
    terminal.print(words, (words, "red"))
    terminal.print_lines([words])
    terminal.print_document(f"{words}\n")
    shown = WORDS[words]
    assert file.getvalue() == "\n".join([f"{shown}{shown}", shown, *map(printable, words.split("\n")), ""])


def test_cells_titles_and_headers_are_no_markup() -> None:
    file = io.StringIO()
    table = Table(SHOWN, ruled=True)
    table.add_column(SHOWN, whole=True)
    table.add_row(SHOWN)
    Terminal(file, width=300).print_table(table)
    assert file.getvalue().count(printable(SHOWN)) == 3
    assert obeyed(file.getvalue()) == ""


def test_a_text_that_is_cut_is_cut_as_it_is_shown() -> None:
    assert cut("\x1b" * 9, 8) == r"\x1b\x1b…"
    assert cut("short", 8) == "short"


def test_a_failure_of_a_test_is_shown_and_not_obeyed() -> None:
    shown = pytest_plugin.words(a_wrong_slice(reason=HOSTILE, case_id=HOSTILE, repro=HOSTILE))
    assert obeyed(shown) == ""
    assert shown.splitlines()[0].endswith(printable(HOSTILE))


# One module prints.

PRINTS = {"terminal/terminal.py", "terminal/text.py", "terminal/progress.py", "completion/answer.py"}
"""The terminal, its text, the bars whose columns are the terminal's; what the shell reads, which is no terminal."""


def prints(path: Path) -> Iterator[str]:
    """What in a module may print beside the terminal."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom | ast.Import):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            yield from (f"{module}" for module in modules if module.partition(".")[0] in ("rich", "click", "logging"))
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            name = called.rpartition(".")[2]
            writes = called.startswith(("sys.stdout.", "sys.stderr.")) and name not in (
                "reconfigure",
                "flush",
                "fileno",
            )
            if called == "print" or writes or name in ("echo", "secho", "echo_via_pager", "confirm", "prompt"):
                yield called


def test_only_the_terminal_prints() -> None:
    found = {
        path.relative_to(CLI).as_posix(): sorted(prints(path))
        for path in CLI.rglob("*.py")
        if path.relative_to(CLI).as_posix() not in PRINTS
    }
    assert {name: calls for name, calls in found.items() if calls} == {}


def test_bars_have_no_columns_of_their_own_words() -> None:
    imported = {
        name.name
        for node in ast.walk(ast.parse((CLI / "terminal" / "progress.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rich")
        for name in node.names
    }
    assert imported == {"BarColumn", "Column", "MofNCompleteColumn", "Progress", "TaskID", "TimeElapsedColumn",
                        "TimeRemainingColumn"}  # fmt: skip


# What the commands print.


def obeyed(printed: str) -> str:
    """What a terminal would obey, or would not show."""
    return "".join(c for c in printed if printable(c) != c and c != "\n")


def checked(done: Done) -> str:
    """A command that was called with what a stranger wrote: its whole output."""
    assert done.code in (0, 1, 2), done
    assert obeyed(done.out + done.err) == ""
    assert not [line for line in done.err.splitlines() if "Traceback" in line]
    return done.out + done.err


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every text in a JSON document."""
    if isinstance(value, str):
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*path, key))


def changed(value: Any, path: tuple[Any, ...], words: str) -> Any:
    if not path:
        return f"{value}{words}"
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], words)
    return copy


def spoiled(document: Any, is_read: Callable[[Any], bool], words: str) -> Any:
    """The document with the words in every text in which it is still read."""
    for path in tuple(places(document)):
        other = changed(document, path, words)
        if is_read(other):
            document = other
    return document


def reads(action: Callable[[Any], object]) -> Callable[[Any], bool]:
    def is_read(document: Any) -> bool:
        with contextlib.suppress(Exception):
            action(document)
            return True
        return False

    return is_read


def stored_lines(folder: Path, documents: Sequence[Any], run: Run) -> Path:
    """A run whose journal has these documents as its records."""
    stored(folder, (), dataclasses.replace(run, planned=len(documents)))
    lines = (strict_json.dumps(document).encode() + b"\n" for document in documents)
    (folder / "journal.jsonl").write_bytes(b"".join(map(line_with_checksum, lines)))
    return folder


def hostile_record(tmp_path: Path, record: Record, words: str = HOSTILE) -> Any:
    """The record with the words in every text in which a run folder is still read."""

    def read(document: Any) -> None:
        for path in tmp_path.iterdir():
            path.unlink()
        tmp_path.rmdir()
        stored_lines(tmp_path, [document], a_run())
        list(read_records(tmp_path))

    tmp_path.mkdir()
    return spoiled(json.loads(encode(record)), reads(read), words)


def hostile_run(folder: Path, words: str = HOSTILE) -> Run:
    """A run with the words in every text in which it is still read. folder: of a run."""

    def read(document: Any) -> None:
        write_run(folder, Run(**document))
        assert strict_json.plain(dataclasses.asdict(read_run(folder)))

    document = json.loads(strict_json.dumps(dataclasses.asdict(a_run())))
    read(spoiled(document, reads(read), words))
    return read_run(folder)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two runs of a stranger: in the second a case fails that passed in the first."""
    bad = hostile_record(tmp_path / "draft", a_wrong_slice())
    good = {**bad, "status": "pass", "reading": "ok", "blame": ""}
    good["candidate"] = {**bad["candidate"], "status": "pass"}
    assert HOSTILE in bad["reason"]
    assert HOSTILE in bad["case_id"]
    run = hostile_run(stored(tmp_path / "described", ()))
    assert HOSTILE in run.targets["dml"]["driver"]
    older = stored_lines(tmp_path / "older", [good], run)
    newer = stored_lines(tmp_path / "newer", [bad], run)
    monkeypatch.chdir(tmp_path)
    return older, newer


def test_a_strangers_runs_are_compared_and_obey_nothing(runs: tuple[Path, Path]) -> None:
    shown = checked(call("diff", *map(str, runs)))
    assert "reproduce: " in shown
    assert r"\x1b[31m\x1b]0;owned\x07\x9b2J" in shown
    assert "[red]x[/]" in shown


def test_a_record_with_a_strangers_status_of_each_field_obeys_nothing(tmp_path: Path) -> None:
    """Each text alone, so that none that is refused hides another."""
    stored(tmp_path / "older", [a_slice("float16", "negative_step_past_both_ends")])
    document = json.loads(encode(a_wrong_slice()))
    for number, path in enumerate(places(document)):
        newer = stored_lines(tmp_path / f"newer-{number}", [changed(document, path, HOSTILE)], a_run())
        checked(call("diff", str(tmp_path / "older"), str(newer)))
        if path[0] in ("case_id", "operator", "sample", "status", "reason"):
            checked(call("expect", "--reason", "x", "--from", str(newer), "--file", str(tmp_path / "none.toml")))


@pytest.mark.parametrize(
    "command",
    [
        ("report",),
        ("report", "--markdown", "a.md", "--annotations", "a.txt", "--badge", "a.svg"),
        ("merge", "--out", "merged"),
        ("coverage", "--run"),
        ("expect", "--reason", HOSTILE.replace("\ud800", ""), "--from"),
        ("bisect", "--target", "cpu", "--run"),
        ("store", "add", "--store", "store"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_strangers_run_is_read_and_obeys_nothing(runs: tuple[Path, Path], command: tuple[str, ...]) -> None:
    checked(call(*command, str(runs[1])))


def test_the_expectations_of_a_strangers_run_obey_nothing(tmp_path: Path) -> None:
    """The case is one of the suite; its status and the reason that is given are not the suite's."""
    record = a_wrong_slice()
    folder = stored(tmp_path / "run", [record])
    options = ("--reason", f"because\x1b[31m\u202e{SHOWN}", "--file", str(tmp_path / "e.toml"))
    shown = checked(call("expect", "--from", str(folder), *options))
    assert "+reason = " in shown
    assert r"\u202e" in shown


def test_a_strangers_store_obeys_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of text has no half of a surrogate pair."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "store").mkdir()
    record = decode(strict_json.dumps(hostile_record(tmp_path / "draft", a_wrong_slice(), SHOWN)))
    run = hostile_run(stored(tmp_path / "described", ()), SHOWN)
    for day in (1, 2):
        night = dataclasses.replace(run, run_id=f"2025010{day}-030405-beef", started=f"2025-01-0{day}T03:04:05Z")
        folder = stored(tmp_path / night.run_id, [record], night)
        write_outcomes(folder, tmp_path / "store" / f"{night.run_id}.parquet")
    name = re.sub(r'[\0-\x1f<>:"/\\|?*]' if sys.platform == "win32" else "/", "", SHOWN)
    (tmp_path / "store" / f"{name}.parquet").write_bytes(b"nothing")
    for command in (
        ("store", "list", "--store", "store"), ("store", "check", "--store", "store"), ("trend", "--store", "store"),
        ("store", "prune", "--store", "store", "--keep", "1", "--dry-run"), ("site", "store", "--out", "site"),
    ):  # fmt: skip
        shown = checked(call(*command))
        if command[:2] in (("store", "list"), ("trend", "--store")):
            assert r"\x1b[31m" in shown.replace("\n", "").replace(" ", "")


def test_a_strangers_model_obeys_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x, y = (helper.make_tensor_value_info(f"{name}{SHOWN}", TensorProto.FLOAT, [2]) for name in "xy")
    node = helper.make_node("Relu", [x.name], [y.name], name=f"node{SHOWN}")
    graph = helper.make_graph([node], f"graph{SHOWN}", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name=SHOWN)
    onnx.save(model, "model.onnx")
    checked(call("validate", "model.onnx", "--target", "cpu"))
    node.op_type, node.domain = f"Other{SHOWN}", f"domain{SHOWN}"
    model.opset_import.append(helper.make_opsetid(node.domain, 1))
    onnx.save(helper.make_model(helper.make_graph([node], f"graph{SHOWN}", [x], [y]), opset_imports=model.opset_import),
              "other.onnx")  # fmt: skip
    checked(call("validate", "other.onnx", "--target", "cpu"))
    checked(call("harvest", "model.onnx", "other.onnx", "--out", "h"))


CONFIG = """
[targets."mine{0}"]
provider = "CPUExecutionProvider{0}"
python = "/nowhere{0}"
[targets.named]
base = "cpu{0}"
"""


def test_a_strangers_configuration_obeys_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    escaped = "".join(f"\\U{ord(c):08x}" for c in SHOWN + "\n")
    Path("epcheck.toml").write_text(CONFIG.format(escaped), encoding="utf-8")
    Path("e.toml").write_text(f'[[expect]]\ncase = "Slice-*{escaped}"\nstatus = "mismatch"\nreason = "r{escaped}"\n')
    name = f"mine{SHOWN}\n"
    for command in (
        ("status",), ("list", "targets"), ("list", "expectations", "--target", name),
        ("run", "--target", name, "--op", "Relu", "--limit", "1"), ("run", "--target", "named", "--op", "Relu"),
        ("run", "--target", "cpu", "--op", "Relu", "--limit", "2", "--expect", "e.toml", "--strict"),
        ("run", "--target", "cpu", "--op", f"Relu{HOSTILE}"), ("nightly", "--target", name, "--op", "Relu"),
        ("report", f"no{SHOWN}such"), ("diff", f"no{SHOWN}such", f"nor{SHOWN}this"), ("replay", f"no{SHOWN}such"),
        ("repro", f"Slice-13/{SHOWN}"), ("bisect", f"Slice-13/{SHOWN}"), ("env", "create", f"no{SHOWN}"),
        ("claims", "refresh", "--out", f"no{SHOWN}/such"), ("profile", "read", f"no{SHOWN}such"),
    ):  # fmt: skip
        checked(call(*command))


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_what_an_encoding_does_not_have_is_written_out(tmp_path: Path, encoding: str) -> None:
    refused = an_opinion("dml", status="refused", message="λ \ud800 \x1b[31m 模型")
    record = a_wrong_slice(candidate=refused, status="refused")
    for name, each in (("older", a_slice("float16", record.case.sample)), ("newer", record)):
        stored(tmp_path / name, [each])
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": encoding}
    done = epcheck("diff", "older", "newer", cwd=tmp_path, encoding=None, env=environment)
    out: Any = done.out
    shown = out.decode(encoding)
    assert done.code == 1, done.err
    assert obeyed(shown.replace("\r", "")) == ""
    assert (r"\u6a21" in shown) is (encoding != "utf-8")
