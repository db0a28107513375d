"""The programs that attack epcheck: they make what they say, and see what is wrong."""

from __future__ import annotations

import argparse
import io
import os
import random
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

if sys.platform == "win32":
    pytest.skip("the attacks are made with POSIX signals and processes", allow_module_level=True)

from benchmarks.attacks import (
    attacked,
    corruptions,
    crafted_models,
    kills,
    models,
    peer,
    scenes,
    shards,
    starts,
    victims,
)
from benchmarks.attacks.attacked import Ended
from benchmarks.attacks.jailed import arena, attempt, forgeries, frames
from epcheck.api.models.examining import messages
from tests.command_line import Done


def test_crafted_models_are_many_and_different(tmp_path: Path) -> None:
    found = list(crafted_models.crafted(750, tmp_path / "in"))
    assert len(found) == 750
    assert len({data for _, data in found}) > 730
    assert {name.split()[0] for name, _ in found} >= {"greedy", "external", "graphs", "model", "bytes"}


def test_mutated_models_are_as_many_as_asked_for() -> None:
    found = models.mutated(30, 1)
    assert len(found) == 30
    assert len({data for _, data in found}) > 20


def test_each_so_many_commands_is_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed: list[str] = []

    def typing(*arguments: str, **_how: Any) -> Done:
        typed.append(arguments[0])
        return Done(2, "", "epcheck: no model")

    monkeypatch.setattr(models, "epcheck", typing)
    running = models.Commands(tmp_path / "work", typed_each=2)
    monkeypatch.setattr(running, "_asked", lambda command, _until: models.Ended(command, "", "exit code 2", 0.1, 1.0))
    kinds = [running.run(command, b"x") for command in ("validate", "reduce", "replay", "doctor")]
    running.close()
    assert typed == ["reduce", "doctor"]
    assert {(each.fault, each.kind) for each in kinds if each} == {("", "exit code 2")}


@pytest.mark.parametrize(
    ("done", "fault"),
    [
        (Done(2, "", "epcheck: it is no model\n"), ""),
        (Done(2, "", "epcheck: it is no model\nat all\n"), "more than a sentence"),
        (Done(1, "Traceback (most recent call last)", ""), "traceback"),
        (Done(-11, "", ""), "exit code -11"),
        (Done(0, "a\x1b[31m", ""), "prints"),
    ],
)
def test_how_a_command_may_end_on_a_hostile_model(done: Done, fault: str) -> None:
    found, _ = models.judged(done)
    assert (bool(found), fault in found) == (bool(fault), True)


@pytest.mark.parametrize(
    ("words", "ended", "fault"),
    [
        ("SIGINT to the command", Ended(130, "", ()), ""),
        ("SIGKILL to the command", Ended(-9, "", ()), ""),
        ("SIGINT to the command", Ended(-2, "", ()), "exit code -2"),
        ("SIGKILL to process 1 of 2", Ended(-9, "", ()), "exit code -9"),
        ("SIGTERM to the command", Ended(130, "Traceback (most", ()), "traceback"),
        ("SIGTERM to the command", Ended(130, "", ("python worker.py",)), "processes are left"),
        ("SIGSTOP to process 1 of 2", Ended(-1000, "", ()), "hangs"),
    ],
)
def test_how_an_attacked_command_may_end(words: str, ended: Ended, fault: str) -> None:
    found = attacked.faults(words, ended)
    assert (len(found), fault in " ".join(found)) == (int(bool(fault)), True)


def test_a_process_is_known_by_its_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(attacked.MARK, "x")
    with subprocess.Popen(["sh", "-c", "echo runs; read end"], cwd=tmp_path, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == b"runs\n"  # its environment is that of the program it runs, now
        assert [found.pid for found in attacked.marked("x")] == [process.pid]
        process.kill()
    assert attacked.marked("x") == []


def test_only_the_signals_that_were_asked_for_are_sent() -> None:
    moment = kills.Moment("1 2", ["SIGSTOP", "SIGSEGV"])
    assert [number.name for number in moment.of_command] == ["SIGSTOP"]
    assert [number.name for number in moment.of_others] == ["SIGSEGV", "SIGSTOP"]


@pytest.mark.parametrize(
    ("name", "command", "parent", "kind"),
    [
        ("wineserver64", "wineserver64 -p1", "", "wine server"),
        ("python", "python worker.py cpu --fork-server 5", "python -m epcheck", "fork server"),
        ("python", "python worker.py cpu --fork-server 5", "python worker.py cpu --fork-server 5", "worker"),
        ("python", "worker.py a.preparer_pool: --fork-server", "worker.py a.preparer_pool: --fork-server", "preparer"),
        ("python", "python -m a.examining.examiner --import b --fork-server 5", "python", "fork server"),
        ("python", "python -m a.examining.examiner", "python", "examination"),
        ("python.exe", "python.exe -P Z:\\worker.py onnxruntime", "python", "worker"),
        ("sleep", "sleep 600", "python", "other"),
    ],
)
def test_the_kind_of_a_process(name: str, command: str, parent: str, kind: str) -> None:
    assert victims.kind_of(name, command, parent) == kind
    assert kind in victims.KINDS


def test_the_processes_of_a_callable_are_attacked_too(tmp_path: Path) -> None:
    scenes.with_config(tmp_path, scenes.CALLABLE)
    attacked_target = tomllib.loads((tmp_path / "epcheck.toml").read_text())["targets"]["attacked"]
    assert attacked_target == {"function": "backend:compute", "deadline_s": 5, "jobs": 2}
    assert "def compute(model, feeds):" in (tmp_path / "backend.py").read_text()


@pytest.mark.parametrize(
    ("ended", "fault"),
    [
        (starts.Ended(130, "epcheck: interrupted", 0.1), ""),
        (starts.Ended(0, "cpu", 0.2), ""),
        (starts.Ended(-15, "", 0.1), "exit code -15"),
        (starts.Ended(130, "Traceback (most", 0.1), "traceback"),
        (starts.Ended(-1000, "", 60.0), "hangs"),
    ],
)
def test_how_a_command_may_end_that_has_just_begun(ended: starts.Ended, fault: str) -> None:
    found = starts.fault(ended)
    assert (bool(found), fault in found) == (bool(fault), True)


def test_a_signal_after_the_first_line_ends_the_command(tmp_path: Path) -> None:
    ended = starts.started(tmp_path, 0.1)
    assert (ended.code, starts.fault(ended)) == (130, "")


@pytest.mark.parametrize("name", ["journal", "run.json", "cache"])
def test_accidents_leave_a_sentence_or_the_right_answer(tmp_path: Path, name: str) -> None:
    counts, faults = corruptions.attack(name, corruptions.KINDS[name](tmp_path), 12, random.randrange(10**6))
    assert (counts["wrong"], faults, counts.total()) == (0, [], 12)


def test_another_number_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "number"
    path.write_text("12345678")

    def answer() -> Any:
        return path.read_bytes()

    counts, faults = corruptions.attack("number", corruptions.Kind(path, answer, corruptions.same), 5, 1)
    assert counts["wrong"] == len(faults) > 0


def test_the_shards_of_an_attack_make_the_whole_of_it() -> None:
    parser = argparse.ArgumentParser()
    shards.add_options(parser)
    parts = [range(10)[shards.part(parser.parse_args(["--shard", f"{number}/3"]))] for number in (1, 2, 3)]
    assert [list(each) for each in parts] == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


def test_counts_of_shards_are_added_and_extremes_are_not() -> None:
    found = shards.total([{"done": 2, "longest_s": 1.5, "by": {"a": 1}}, {"done": 3, "longest_s": 0.5, "by": {"b": 2}}])
    assert found == {"done": 5, "longest_s": 1.5, "by": {"a": 1, "b": 2}}


def test_a_shard_that_ends_without_its_counts_is_a_fault(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys\nif sys.argv[-1] != '2/2': print('{\"faults\": 0}')\n")
    parser = argparse.ArgumentParser()
    shards.add_options(parser)
    assert shards.in_shards(str(program), parser.parse_args(["--jobs", "2"])) == 1


def test_a_peer_tries_many_things_that_are_different() -> None:
    assert len(attempt.ATTEMPTS) >= 150
    assert {each.kind for each in attempt.ATTEMPTS.values()} >= {
        "files",
        "sockets",
        "signals",
        "shared",
        "locks",
        "left",
    }
    assert set(attempt.chosen("sockets,kill.*")) >= {"connect-over-tcp", "kill-by-queue"}
    assert attempt.chosen("") == [*attempt.ATTEMPTS]


@pytest.mark.skipif(sys.platform != "linux", reason="the jail is Linux's")
def test_a_peer_reaches_what_no_jail_keeps_it_from() -> None:
    names = ["write-a-file", "kill", "connect-over-tcp", "set-a-semaphore"]
    user = "user" if os.getuid() else "root"
    free = peer.play_elsewhere("callable", "off", user, names)
    assert (free.not_run, set(free.reached), peer.faults(free)) == ("", set(names), 0)
    bound = peer.play_elsewhere("callable", "default", user, names[:3])
    assert bound.not_run == ""
    if "Landlock 6" in bound.jail or "Landlock 7" in bound.jail:
        assert (bound.reached, bound.otherwise_left) == ({}, [])


def test_what_a_level_states_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    found = peer.Round("worker", "default", "root", "Landlock 7", reached={"a": "x", "b": "y"}, otherwise_left=["z"])
    monkeypatch.setattr(peer, "STATED", {"landlock": frozenset({"a"})})
    assert peer.faults(found) == 2
    assert [" stated: " in text for text in peer.lines_of(found)] == [True, False, False]


def test_what_a_peer_mounts_ends_with_its_round() -> None:
    assert peer.apart(["program"], False) == ["unshare", "--mount", "--propagation", "private", "program"]
    assert peer.apart(["program"], True)[:4] == ["unshare", "--mount", "--propagation", "private"]


def test_no_file_of_the_system_is_touched_by_an_attempt() -> None:
    for path in (Path(attempt.__file__).parent).glob("on_*.py"):
        text = path.read_text(encoding="utf-8")
        assert not any(f'"{folder}' in text for folder in ("/etc", "/usr", "/var", "/home", "/root", "/boot", "/lib"))


def test_a_folder_of_a_peer_is_removed_without_what_its_links_lead_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    (tmp_path / "round" / "sub").mkdir(parents=True)
    (tmp_path / "round" / "sub" / "link").symlink_to(tmp_path / "kept")
    arena.remove_tree(tmp_path / "round")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept" / "file").read_text() == "kept"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_mount_below_a_folder_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "43 27 254:0 /etc /tmp/round/sub rw - ext4 /dev/vda rw\n44 27 0:39 / /tmp/rounds rw - tmpfs none rw\n"
    monkeypatch.setattr(Path, "read_text", lambda _self: line)
    assert arena.mounts_below(Path("/tmp/round")) == ["/tmp/round/sub"]


@pytest.mark.parametrize(
    ("code", "printed", "written", "pages", "fault"),
    [
        (2, b"epcheck: cannot be examined", [], [], ""),
        (1, b"Traceback (most recent call last)", [], [], "traceback"),
        (-9, b"", [], [], "exit code -9"),
        (0, b"\x1b]0;peer\x07", [], [], "control sequences"),
        (0, b"", ["peer-escaped"], [], "written"),
        (0, b"", [], ["<p><script>alert(1)</script>"], "script"),
    ],
)
def test_how_a_command_may_end_on_a_forgery(
    code: int, printed: bytes, written: list[str], pages: list[str], fault: str
) -> None:
    found = forgeries.fault(code, printed, written, pages)
    assert (bool(found), fault in found) == (bool(fault), True)


@pytest.mark.skipif(sys.platform != "linux", reason="the jail is Linux's")
@pytest.mark.parametrize("name", ["signs of life for ever", "a huge shape", "half a surrogate as a name"])
def test_no_forged_frame_passes_or_holds_a_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setattr(frames, "DEADLINE_S", 60.0)  # longer than the test may take: nothing waits for it
    environment = {
        **os.environ,
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    assert frames.forge(name, tmp_path, environment) == ""


def test_a_raw_forgery_is_sent_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(messages, "write", messages.write)  # so that it is put back
    monkeypatch.setattr(os, "_exit", end)
    forgeries.install("garbage")
    pipe = io.BytesIO()
    with pytest.raises(SystemExit):
        messages.write(pipe, object())  # type: ignore[arg-type]
    assert pipe.getvalue() == forgeries.RAW["garbage"]
