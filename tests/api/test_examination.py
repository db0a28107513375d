"""A model is examined in a process of its own: what happens there is a result or a sentence, within bounds."""

from __future__ import annotations

import ctypes
import errno
import importlib
import io
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import psutil
import pytest

from epcheck import api
from epcheck.api.models.examining import examination, examiner, examiner_process, messages
from epcheck.api.models.examining.examination import ExaminationError
from epcheck.api.suite import replay as replay_module
from epcheck.cli import main
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import MEBIBYTE
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.conformance.workers import confinement
from epcheck.conformance.workers.fork_server import ForkedWorker
from epcheck.conformance.workers.program import protocol
from epcheck.generators.array import Array
from epcheck.models.inspection.inspect import Finding
from tests.command_line import call

MODEL = Path("a.onnx")
Say = Callable[[str], None]
validate_module = importlib.import_module("epcheck.api.models.validate")  # whose name in api is the function
MODULES = {
    "validate": "models.validate", "reduce": "models.reduce", "doctor": "models.doctor", "harvest": "models.harvest",
    "replay": "suite.replay",
}  # fmt: skip
"""Command -> where it has a model examined."""

ADD = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }'


@pytest.fixture(autouse=True)
def _found_by_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process imports this module from the checkout, which must not be the working directory, also not where
    another module's tests have such a process: with another path there is a new one."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.chdir(tmp_path)


def answers(options: str, say: Say) -> tuple[str, Array]:
    say("reading")
    return options.upper(), np.array([1.5], np.float16)


def refused(options: str, _say: Say) -> None:
    raise ModelFileError(f"{options} is no model")


def raises(_options: str, _say: Say) -> None:
    raise KeyError("x")


def missing(options: str, _say: Say) -> None:
    raise FileNotFoundError(errno.ENOENT, "No such file or directory", options)


def dies(_options: str, _say: Say) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def hangs(_options: str, _say: Say) -> None:
    if sys.platform == "win32":
        ctypes.PyDLL("kernel32").Sleep(60_000)
    else:
        ctypes.PyDLL(None).sleep(60)


def stops(_options: str, _say: Say) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def eats(_options: str, _say: Say) -> None:
    kept = []
    while True:
        kept.append(np.ones(1 << 22))
        time.sleep(0.01)


def prints(options: str, _say: Say) -> str:
    os.write(1, b"x" * 5_000_000)
    os.write(2, b"y" * 5_000_000)
    return options


def lies(_options: str, _say: Say) -> Finding:
    return Finding(severity="note", text=7, suggestion="")  # type: ignore[arg-type]


def orphans(options: str, _say: Say) -> None:
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
    Path(options).write_text(str(pid))
    raise ModelFileError("it is a test")


def temp(_options: str, _say: Say) -> str:
    return confinement.temp()


def has_imported(options: str, _say: Say) -> bool:
    return options in sys.modules


def tells_its_bounds(options: str, _say: Say) -> tuple[str, ...]:
    """What it cannot do."""
    attempts = {
        "no file": lambda: Path(options).write_text("x"),
        "no process": os.fork,
        "no program": lambda: subprocess.run(["true"], check=False),
        "no socket": socket.socket,
    }
    refused = ["gains no privileges"] if "NoNewPrivs:\t1" in Path("/proc/self/status").read_text() else []
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError:
            refused.append(name)
    return tuple(refused)


def examine(function: Callable[[str, Say], Any], options: str = "m", deadline_s: float = 60.0) -> Any:
    return examination.examine(function, options, MODEL, lambda _words: None, deadline_s)


@pytest.mark.skipif(sys.platform != "linux", reason="the jail is Linux's")
@pytest.mark.parametrize("target", ["cpu", "python:anything:here"])
def test_each_examination_has_the_strictest_bounds_whatever_its_targets_may_do(target: str, tmp_path: Path) -> None:
    file = tmp_path / "a"
    targets = (replace(resolve(target), writable=(str(tmp_path),)),)
    found = examination.examine(tells_its_bounds, str(file), MODEL, lambda _words: None, 60.0, targets)
    assert (found, file.exists()) == (
        ("gains no privileges", "no file", "no process", "no program", "no socket"),
        False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="each examination is a process that imports for itself")
def test_from_the_second_examination_on_all_that_it_may_need_is_imported_before() -> None:
    examine(has_imported)
    assert examine(has_imported, "epcheck.generators.operators.signal.signal")


@pytest.mark.skipif(sys.platform == "win32", reason="each examination is a process that is started when it is needed")
def test_a_process_that_was_prepared_is_taken_once_and_only_in_the_environment_that_it_was_prepared_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def prepare() -> ForkedWorker:
        examiner_process.prepare_examiner(has_imported.__module__)
        spare = examiner_process._server._spare
        assert spare is not None
        return spare

    def take() -> ForkedWorker:
        return examiner_process._server.fork(has_imported.__module__)

    taken = []
    spare = prepare()
    assert prepare() is spare
    taken += [take(), take()]
    assert taken[0] is spare
    assert taken[1] is not spare
    spare = prepare()
    monkeypatch.setenv("EPCHECK_JAIL", "off")
    taken.append(take())
    assert taken[2] is not spare
    assert spare.wait(10) != 0  # it went with its server
    for each in taken:
        each.kill()
        examiner_process._close_streams(each)


@pytest.mark.skipif(sys.platform == "win32", reason="each examination is a process that is started when it is needed")
def test_a_prepared_process_that_has_died_is_replaced() -> None:
    examine(answers, "abc")
    examiner_process.prepare_examiner(answers.__module__)
    spare = examiner_process._server._spare
    assert spare is not None
    assert spare._forked.wait(30)
    spare.kill()
    spare.wait(10)
    assert examine(answers, "abc")[0] == "ABC"
    assert examiner_process._server._spare is None


@pytest.mark.parametrize("command", sorted(main.EXAMINING))
def test_the_process_that_the_command_line_prepares_imports_what_examines(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def instead(function: Callable[..., Any], *_rest: Any) -> None:
        asked.append(function.__module__)
        raise ExaminationError("it is not looked at")

    monkeypatch.setattr(importlib.import_module(f"epcheck.api.models.{command}"), "examine", instead)
    path = tmp_path / "add.onnx"
    onnx.save(onnx.parser.parse_model(ADD), path)
    out = {"doctor": "--write", "fix": "--out"}.get(command)
    assert call(command, str(path), "-t", "cpu", *((out, str(tmp_path / "out.onnx")) if out else ())).code == 2
    assert asked == [examiner_process.EXAMINED[command]]
    assert examiner_process.EXAMINED.keys() == main.EXAMINING


def test_what_a_function_gives_and_says_arrives() -> None:
    heard: list[str] = []
    text, array = examination.examine(answers, "abc", MODEL, heard.append, 60.0)
    assert (text, array.tolist(), array.dtype, heard) == ("ABC", [1.5], np.float16, ["reading"])


def test_a_refusal_is_raised_as_itself() -> None:
    with pytest.raises(ModelFileError, match=r"^m is no model$"):
        examine(refused)


def test_an_error_of_the_system_is_raised_as_itself() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        examine(missing, "nowhere")
    assert (caught.value.strerror, caught.value.filename) == ("No such file or directory", "nowhere")


def test_what_nobody_expected_is_a_sentence_that_asks_for_a_report() -> None:
    with pytest.raises(ExaminationError, match=r"^a\.onnx: cannot be examined: KeyError: 'x' \(in epcheck.*report it"):
        examine(raises)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_process_that_dies_is_a_sentence() -> None:
    with pytest.raises(ExaminationError, match=r"the process that read it ended: killed by signal 11"):
        examine(dies)


def test_one_that_holds_the_lock_of_python_costs_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "ORACLE_S", 1.0)
    began = time.monotonic()
    with pytest.raises(ExaminationError, match="it did not respond for 3 s"):
        examine(hangs, deadline_s=2.0)
    assert time.monotonic() - began < 20


def test_one_that_takes_too_much_memory_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "LEAST_MEMORY", 600 * MEBIBYTE)
    monkeypatch.setattr(examination, "TIMES_THE_FILES", 0)
    with pytest.raises(ExaminationError, match="it takes more than 600 MiB of memory"):
        examine(eats)


def test_what_it_prints_disturbs_nobody() -> None:
    assert examine(prints, "well") == "well"


def test_a_result_of_another_type_is_not_taken() -> None:
    with pytest.raises(ExaminationError, match="the process that read it sent no result: 7 is no str"):
        examine(lies)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
def test_what_it_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its jail it starts nothing."""
    monkeypatch.setenv(confinement.SWITCH, "off")
    with pytest.raises(ModelFileError):
        examine(orphans, str(tmp_path / "pid"))
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(pid)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def frame(header: object, body: bytes = b"", tensors: object = ()) -> bytes:
    head = json.dumps({**header, "tensors": tensors} if isinstance(header, dict) else header).encode()
    return protocol.PREFIX.pack(protocol.MAGIC, len(head), len(body)) + head + body


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"\xff" * 16,
        pickle.dumps(("done", 1)),
        protocol.PREFIX.pack(protocol.MAGIC, 2, messages.MOST_BYTES + 1),
        frame([]),
        frame({"kind": "done"}, b"", None),
        frame({"kind": "unheard"}),
        frame({"kind": "words"}),
        frame({"kind": "words", "text": 3}),
        frame({"kind": "words", "text": "x", "more": 1}),
        frame({"kind": "refused", "module": "os", "name": "system"}),
        frame({"kind": "done"}, b"{}", [["document", "object", [2]]]),
        frame({"kind": "done"}, b"{}", [["document", "uint8", [1 << 40]]]),
        frame({"kind": "done"}, b"{}", [["../x", "uint8", [2]]]),
        frame({"kind": "done"}, b"{}", [["1", "uint8", [2]]]),
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(messages.MessageError):
        messages.read(io.BytesIO(data))


@pytest.mark.parametrize("name", ["system", "__builtins__.eval"])
def test_an_error_is_of_a_class_that_is_known_here_or_of_ours(name: str, tmp_path: Path) -> None:
    """No module is imported for the name of a class that a stranger sends."""
    (tmp_path / "stranger.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for module in ("os", "epcheck.stranger", "stranger"):
        error = examination._refusal(messages.Refused(module, name, "a sentence"), ())
        assert (type(error), str(error)) == (ExaminationError, "a sentence")
    assert not (tmp_path / "ran").exists()
    refused = messages.Refused("epcheck.conformance.test_data.model_file", "ModelFileError", "a sentence")
    known = examination._refusal(refused, ())
    assert type(known) is ModelFileError


def test_who_examines_names_no_file_target_or_argument_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "add.onnx"
    onnx.save(onnx.parser.parse_model(ADD), path)
    honest = api.validate(api.ValidateOptions((path,), ("cpu",), seeds=(0,), own_process=False)).validation
    stranger = tmp_path / "stranger"
    forged = replace(
        honest, path=stranger, inspection=replace(honest.inspection, path=stranger), target="python:os:system",
        baseline="ep:/stranger.so", provider="Stranger", level="basic",
        reduce_args=("--target", "cpu", "--baseline", "reference", "--out", str(stranger), "--seed", "1", "--seed",
                     "$(id)", "--feeds", str(stranger), "--dim", "n=2", "--vulkan", str(stranger)),
    )  # fmt: skip
    monkeypatch.setattr(validate_module, "examine", lambda *_arguments: forged)
    options = api.ValidateOptions((path,), ("cpu",), "reference", seeds=(0,), html=tmp_path / "page.html")
    found = api.validate(options).validation
    assert (found.path, found.inspection.path, found.target, found.baseline) == (path, path, "cpu", "reference")
    assert (found.provider, found.level) == ("CPUExecutionProvider", "all")
    assert found.reduce_args == ("--target", "cpu", "--baseline", "reference", "--seed", "1", "--dim", "n=2")
    assert not stranger.exists()


@pytest.mark.parametrize("line", ["../../x", "", "{}", "[" * 100_000, '{"case_id": "x"}'])
def test_a_record_of_a_replay_that_cannot_be_read_is_one_sentence(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = "Relu-14/float32/ordinary[runtime]"
    assert call("repro", case, "--out", str(tmp_path / "repro")).code == 0
    (folder,) = {path.parent for path in (tmp_path / "repro").rglob("model.onnx")}
    monkeypatch.setattr(replay_module, "examine", lambda *_: ((str(folder), line),))
    with pytest.raises(ExaminationError, match="its records cannot be read"):
        list(api.replay(api.ReplayOptions(folder, ("cpu",))))


def test_a_validation_is_the_same_in_a_process_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "add.onnx"
    onnx.save(onnx.parser.parse_model(ADD), path)
    here, there = (
        api.validate(api.ValidateOptions((path,), ("cpu",), seeds=(0,), own_process=own)).validation
        for own in (False, True)
    )
    assert (there.status, there.verdicts, there.inspection) == (here.status, here.verdicts, here.inspection)
    assert there.status == "right"


@pytest.mark.parametrize("command", ["validate", "reduce"])
def test_what_is_no_model_is_one_sentence(tmp_path: Path, command: str) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(b"\xff" * 100)
    done = call(command, str(path), "-t", "cpu")
    assert (done.code, len(done.err.splitlines())) == (2, 1)


@pytest.mark.parametrize("command", ["validate", "reduce", "doctor", "harvest", "replay"])
def test_what_examines_a_strangers_model_is_bound_as_the_targets_workers_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """And it writes none of the files that the command was asked for."""
    bound: list[tuple[str, ...]] = []

    def instead(_function: Any, _options: Any, model: Path, *rest: Any) -> None:
        targets = rest[2] if len(rest) > 2 else ()
        bound.append(tuple(target.name for target in targets))
        raise ExaminationError(f"{model} is not looked at")

    monkeypatch.setattr(importlib.import_module(f"epcheck.api.{MODULES[command]}"), "examine", instead)
    path = tmp_path / "add.onnx"
    onnx.save(onnx.parser.parse_model(ADD), path)
    arguments = {"harvest": ("--out", str(tmp_path / "out")), "doctor": ("--write", str(tmp_path / "out"))}
    done = call(command, str(path), "-t", "cpu", *arguments.get(command, ()))
    assert (done.code, "is not looked at" in done.err) == (2, True)
    assert {name for names in bound for name in names} - {"reference"} == {"cpu"}
    assert list(tmp_path.iterdir()) == [path]


def test_signs_of_life_are_not_sent_too_often() -> None:
    sent: list[bytes] = []

    class Pipe:
        def write(self, data: bytes) -> None:
            sent.append(data)

        def flush(self) -> None:
            pass

    sender = examiner.Sender(Pipe())  # type: ignore[arg-type]
    for _ in range(1000):
        sender.sign()
    assert len(sent) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_process_that_somebody_stopped_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs seconds, not the minutes that a model may take."""
    monkeypatch.setattr(examination, "STOPPED_S", 0.3)
    began = time.monotonic()
    with pytest.raises(ExaminationError, match=r"^a.onnx: cannot be examined: the process that read it was stopped"):
        examine(stops)
    assert time.monotonic() - began < 20


@pytest.mark.skipif(sys.platform != "linux", reason="there is no folder of its own")
def test_temporary_files_of_its_workers_go_with_our_process() -> None:
    """It may be killed, and ends without ado."""
    assert examine(temp) == confinement.temp()


def test_who_examines_replaces_the_cases_of_no_other_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "add.onnx"
    onnx.save(onnx.parser.parse_model(ADD), path)
    harvest = importlib.import_module("epcheck.api.models.harvest")
    options = api.HarvestOptions((path,), tmp_path / "out", target="cpu", own_process=False)
    api.harvest(options)
    honest = harvest._harvest(harvest._Request(path, "add.onnx", options, resolve("cpu")), lambda _words: None)
    nodes = tuple(replace(node, models={"other.onnx": 1}) for node in honest.nodes)
    forged = replace(honest, name="other.onnx", nodes=nodes)
    monkeypatch.setattr(harvest, "examine", lambda *_arguments: forged)
    api.harvest(replace(options, own_process=True))
    assert "other.onnx" not in (tmp_path / "out" / "cases.jsonl").read_text(encoding="utf-8")
