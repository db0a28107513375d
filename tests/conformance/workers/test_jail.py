"""What the system keeps a worker from, tried from within; and that nothing is claimed that the system lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jailed_program
import pytest
from small_cases import backend, identity, records_of

from epcheck.conformance.records.terms import PASS
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import TargetError
from epcheck.conformance.workers import confinement
from epcheck.conformance.workers.program import jail

PROGRAM = Path(jailed_program.__file__)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")
needs_landlock = pytest.mark.skipif(not jail.available()["landlock"], reason="this kernel has no Landlock")
needs_seccomp = pytest.mark.skipif(not jail.available()["seccomp"], reason="this kernel has no seccomp")

ALLOWED = ("write its own file", "write a temporary file", "rename its own file", "remove its own file",
           "write to /dev/null", "read a foreign file", "open a pair of sockets")  # fmt: skip

SOCKETS = ("open an IPv4 socket", "open an IPv6 socket", "open a Unix socket", "open a netlink socket",
           "open a ring of requests")  # fmt: skip

OF_PRIVILEGES = ("make a device", "mount")
FORBIDDEN = tuple(name for name in jailed_program.ATTEMPTS if name not in (*ALLOWED, *SOCKETS, *OF_PRIVILEGES))


def tries(folder: Path, bounds: dict[str, Any]) -> dict[str, Any]:
    own, foreign = folder / "own", folder / "foreign"
    own.mkdir()
    foreign.mkdir()
    (foreign / "kept").write_text("kept")
    command = [*confinement.launcher({"writable": [str(own)], "temp": str(own), **bounds}), sys.executable]
    done = subprocess.run([*command, str(PROGRAM), str(own), str(foreign)], capture_output=True, text=True, check=True)
    after = {"foreign": sorted(path.name for path in foreign.iterdir()), "kept": (foreign / "kept").read_text()}
    return {**json.loads(done.stdout), **after}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return tries(tmp_path_factory.mktemp("jail"), {})


@on_linux
@pytest.mark.parametrize("attempt", ALLOWED)
def test_what_a_provider_needs_works(found: dict[str, Any], attempt: str) -> None:
    assert found["attempts"][attempt] == ""


@on_linux
@needs_landlock
@pytest.mark.parametrize("attempt", FORBIDDEN)
def test_nothing_is_written_elsewhere_and_nobody_else_is_touched(found: dict[str, Any], attempt: str) -> None:
    assert found["attempts"][attempt] != ""
    assert (found["foreign"], found["kept"]) == (["kept"], "kept")


@on_linux
@needs_seccomp
@pytest.mark.parametrize("attempt", SOCKETS)
def test_no_socket_is_opened(found: dict[str, Any], attempt: str) -> None:
    assert found["attempts"][attempt] == "Permission denied"


@on_linux
@pytest.mark.parametrize("attempt", OF_PRIVILEGES)
def test_what_root_may_do_is_refused(found: dict[str, Any], attempt: str) -> None:
    assert found["attempts"][attempt] in ("Operation not permitted", "Permission denied")


@on_linux
def test_no_privilege_is_gained_or_kept_but_to_open_files(found: dict[str, Any]) -> None:
    assert (found["no new privileges"], found["core"]) == ("1", [0, 0])
    assert all(held in (0, 1 << jail.CAP_DAC_OVERRIDE) for held in found["capabilities"])


@on_linux
@needs_seccomp
def test_the_lab_may_talk_to_the_server_of_wine_and_not_to_the_network(tmp_path: Path) -> None:
    attempts = tries(tmp_path, {"local_sockets": True})["attempts"]
    opened = {name: attempts[name] for name in SOCKETS}
    assert opened.pop("open a Unix socket") == ""
    assert set(opened.values()) == {"Permission denied"}


@on_linux
@needs_seccomp
def test_a_callable_in_the_jail_says_why_its_socket_is_refused() -> None:
    (record,) = records_of([identity("a")], backend("opens_a_socket", jail=True)).values()
    assert "Permission denied" in record.reason
    assert "the worker may write only to folders of its own, and opens no socket" in record.reason
    (record,) = records_of([identity("a")], backend("opens_a_socket")).values()
    assert record.status == PASS


@on_linux
@needs_landlock
def test_a_callable_in_the_jail_writes_where_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FILE_OF_A_TEST", str(tmp_path / "written"))
    (record,) = records_of([identity("a")], backend("writes_a_file", jail=True)).values()
    assert ("Permission denied" in record.reason, (tmp_path / "written").exists()) == (True, False)
    (record,) = records_of([identity("a")], backend("writes_a_file", jail=True, writable=(str(tmp_path),))).values()
    assert (record.status, (tmp_path / "written").exists()) == (PASS, True)


@on_linux
def test_workers_of_onnxruntime_are_bound_and_callables_are_not() -> None:
    policies = {name: confinement.policy(resolve(name)) for name in ("cpu", "reference", "python:a:b")}
    assert policies["python:a:b"] is None
    assert policies["cpu"] == policies["reference"]
    assert policies["cpu"] is not None
    assert not policies["cpu"].get("local_sockets")


@on_linux
def test_cuda_s_driver_may_listen_on_its_socket_and_name_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(confinement.SWITCH, raising=False)
    on_cuda = confinement.policy(replace(resolve("cpu"), provider="CUDAExecutionProvider"))
    assert on_cuda is not None
    assert on_cuda["local_sockets"]
    assert "/proc/self" in on_cuda["writable"]
    assert not (confinement.policy(resolve("cpu")) or {}).get("local_sockets")


def test_a_folder_for_compiled_models_is_made_and_allowed(tmp_path: Path) -> None:
    options = {"cache_dir": str(tmp_path / "compiled"), "enable_cache": "1", "backend_path": "/usr/lib/libQnn.so"}
    bounds = confinement.policy(replace(resolve("cpu"), options=options))
    assert bounds is not None
    assert [name for name in bounds["writable"] if name.startswith((str(tmp_path), "/usr"))] == [
        str(tmp_path / "compiled")
    ]
    assert (tmp_path / "compiled").is_dir()


@on_linux
def test_who_starts_workers_that_are_free_is_free() -> None:
    cpu, free = resolve("cpu"), resolve("python:a:b")
    assert confinement.policy_of_all([cpu, free]) is None
    both = confinement.policy_of_all([cpu, replace(cpu, writable=("/a",))])
    assert both is not None
    assert "/a" in both["writable"]


@on_linux
def test_an_option_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(confinement.SWITCH, "off")
    assert confinement.policy(resolve("cpu")) is None
    assert confinement.in_words() == "off: EPCHECK_JAIL is 'off'"


def test_the_configuration_decides_for_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("epcheck.toml").write_text(
        '[targets.free]\nbase = "cpu"\njail = false\n[targets.bound]\nfunction = "a:b"\njail = true\nwritable = ["x"]\n'
    )
    free, bound = (resolve(name, load_config()) for name in ("free", "bound"))
    assert (free.is_jailed, bound.is_jailed, bound.writable) == (False, True, ("x",))
    assert confinement.policy(free) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("jail = 1", "'jail' has the wrong type, int"),
        ('writable = "x"', "'writable' has the wrong type, str"),
        ("writable = [1]", "'writable' holds 1; write the paths of folders"),
        ('writable = [""]', "'writable' holds ''; write the paths of folders"),
        ("pack = true", "'pack' has the wrong type, bool"),
    ],
)
def test_what_the_configuration_cannot_mean_is_refused(
    tmp_path: Path, line: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("epcheck.toml").write_text(f"[targets.x]\n{line}\n")
    with pytest.raises(TargetError, match=words):
        load_config()


@on_linux
@pytest.mark.parametrize(
    ("landlock", "seccomp", "words"),
    [
        (7, 1, "workers write only to folders of their own, open no socket, gain no privileges (Landlock 7, seccomp)"),
        (0, 1, "workers open no socket, gain no privileges; this kernel has no Landlock"),
        (4, 0, "workers write only to folders of their own, gain no privileges; this kernel has no seccomp"),
        (0, 0, "workers gain no privileges; this kernel has no Landlock and no seccomp"),
    ],
)
def test_status_claims_what_the_kernel_has(
    monkeypatch: pytest.MonkeyPatch, landlock: int, seccomp: int, words: str
) -> None:
    monkeypatch.setattr(jail, "available", lambda: {"landlock": landlock, "seccomp": seccomp})
    assert confinement.in_words() == words


def test_windows_has_job_objects_and_says_what_they_do_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    words = confinement.in_words()
    assert words.startswith("workers end with the runner")
    assert words.endswith("(job objects); nothing bounds files and network")


@on_linux
def test_what_the_kernel_is_said_to_have_is_what_it_does(found: dict[str, Any]) -> None:
    parts = jail.available()
    assert bool(found["attempts"]["make a foreign file"]) == bool(parts["landlock"])
    assert bool(found["attempts"]["open an IPv4 socket"]) == bool(parts["seccomp"])


@on_linux
def test_a_kernel_without_any_of_it_runs_the_worker_all_the_same(tmp_path: Path) -> None:
    """As where a container's own filter refuses the calls: nothing raises."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import jail; jail.CREATE_RULESET = 100_000; jail.CALLS = {};"
        f"jail.enter({{'writable': []}}); open({str(tmp_path / 'written')!r}, 'w'); print(jail.available())"
    )
    folder = str(Path(jail.__file__).parent)
    done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'landlock': 0, 'seccomp': 0}"
    assert (tmp_path / "written").exists()


@on_linux
def test_temporary_files_of_workers_go_with_a_command_that_a_signal_ends(tmp_path: Path) -> None:
    """Outside of a run a signal ends the process at once, without what is done at its end otherwise."""
    program = (
        "import os, signal; from epcheck.cli import start; from epcheck.conformance.workers import confinement as c\n"
        "start.end_on_signals(); print(c.temp(), flush=True); os.kill(os.getpid(), signal.SIGTERM)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "epcheck: interrupted\n")
    folder = Path(done.stdout.strip())
    assert folder.parent == tmp_path / "epcheck" / "workers"
    assert not folder.exists()


@on_linux
def test_temporary_files_of_workers_go_with_the_process_that_started_them(tmp_path: Path) -> None:
    """Also what a killed process left; not what one uses that runs. Signals on a whole machine found a log of the
    runtime's telemetry for each worker (benchmarks/attacks/kills.py)."""
    program = (
        "import sys; from pathlib import Path; from epcheck.conformance.workers import confinement as c\n"
        "folder = Path(c.temp()); (folder / 'mat-debug-1.log').touch(); print(folder, flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    place = tmp_path / "epcheck" / "workers"
    place.mkdir(parents=True)
    (place / "mat-debug-2.log").touch()

    def started() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen([sys.executable, "-c", program], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    first, killed = started()
    with first:
        first.kill()
    assert [path.name for path in killed.iterdir()] == ["mat-debug-1.log"]
    os.utime(killed, (0, 0))
    second, used = started()
    with second:
        os.utime(used, (0, 0))
        third, folder = started()
        with third:
            assert sorted(place.iterdir()) == sorted([used, folder])
    assert list(place.iterdir()) == []
