"""What the system keeps a worker from, tried from within; and that nothing is claimed that the system lacks."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import queue
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from epcheck.conformance.records.terms import PASS
from epcheck.conformance.start_process import run_process
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import WORKER, TargetError
from epcheck.conformance.workers import confinement
from epcheck.conformance.workers.client import WorkerClient
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import find_guarded_worker, resident_bytes
from epcheck.conformance.workers.program import cgroups, jail, namespaces, seccomp
from tests.conformance import jailed_program
from tests.conformance.small_cases import backend, identity, records_of

PROGRAM = Path(jailed_program.__file__)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock and seccomp are Linux's")
needs_landlock = pytest.mark.skipif(not jail.available()["landlock"], reason="this kernel has no Landlock")
needs_seccomp = pytest.mark.skipif(not jail.available()["seccomp"], reason="this kernel has no seccomp")

ALLOWED = ("write its own file", "write a temporary file", "rename its own file", "remove its own file",
           "write to /dev/null", "read a foreign file", "open a pair of sockets", "start a program")  # fmt: skip

SOCKETS = ("open an IPv4 socket", "open an IPv6 socket", "open a Unix socket", "open a netlink socket",
           "open a ring of requests")  # fmt: skip

OF_PRIVILEGES = ("make a device", "mount")
ELSEWHERE = tuple(name for name in jailed_program.ATTEMPTS if name not in (*ALLOWED, *SOCKETS, *OF_PRIVILEGES))

UNNAMED = 65534
"""A user who is nobody."""

IS_ROOT = sys.platform != "win32" and os.geteuid() == 0
USERS = {"own user": {}, "nobody": {"user": UNNAMED, "group": UNNAMED, "extra_groups": []}}
LEVELS = [level for level in jail.LEVELS[:2] if level == jail.LANDLOCK or confinement.has_namespaces()]
WAYS = [(level, user) for level in LEVELS for user in (USERS if IS_ROOT else ("own user",))]


@cache
def interpreter(user: str) -> str:
    """A Python that this user may execute."""
    for python in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run([python, "-I", "-S", str(WORKER), "--within", "{}"], check=True, **USERS[user])
            return python
    pytest.skip("no interpreter that everybody may execute")


ENTER = (
    f"import sys; sys.path.insert(0, {str(WORKER.parents[1])!r}); from program import jail; import json, runpy\n"
    f"jail.enter(json.loads(sys.argv.pop(1))); runpy.run_path({str(PROGRAM)!r}, run_name='__main__')"
)


def bound(bounds: dict[str, Any], user: str) -> list[str]:
    return [interpreter(user), *confinement.launcher(bounds)[1:], interpreter(user)]


@contextlib.contextmanager
def folders(user: str) -> Iterator[tuple[Path, Path]]:
    """A folder of the program's own, and a foreign one, both of that user: permissions keep it from nothing."""
    owner = USERS[user].get("user", -1)
    with tempfile.TemporaryDirectory() as name:
        own, foreign = Path(name, "own"), Path(name, "foreign")
        for folder in (own, foreign):
            folder.mkdir()
        (foreign / "kept").write_text("kept")
        for path in (Path(name), own, foreign, foreign / "kept"):
            os.chown(path, owner, owner)
        yield own, foreign


@cache
def tries(level: str, user: str, further: str = "{}") -> dict[str, Any]:
    """What the program finds, and what is outside before and after it. further: of the policy."""
    with folders(user) as (own, foreign):
        bounds = {"writable": [str(own)], "temp": str(own), "level": level, **json.loads(further)}
        victim = [interpreter(user), str(Path(__file__).with_name("victim_program.py")), str(foreign)]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
        with subprocess.Popen(victim, **pipes, **USERS[user]) as process:
            assert process.stdin
            assert process.stdout
            named, states = process.stdout.readline().strip(), []

            def look() -> None:
                assert process.stdin
                assert process.stdout
                process.stdin.write("\n")
                process.stdin.flush()
                kept = foreign / "kept"
                found, about = sorted(path.name for path in foreign.iterdir()), kept.stat()
                file = [kept.read_text(), about.st_mode, about.st_uid, about.st_mtime, os.listxattr(kept)]
                states.append({**json.loads(process.stdout.readline()), "files": found, "file": file})

            look()
            command = [interpreter(user), "-c", ENTER, json.dumps(bounds), str(own), str(foreign), named]
            done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, **USERS[user])
            assert done.returncode == 0, done.stderr
            look()
    return {**json.loads(done.stdout), "before": states[0], "after": states[1]}


@pytest.fixture(scope="module", params=WAYS, ids=" ".join)
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {**tries(*request.param), "wanted level": request.param[0]}


@on_linux
@pytest.mark.parametrize("attempt", ALLOWED)
def test_what_a_provider_needs_works(found: dict[str, Any], attempt: str) -> None:
    assert found["attempts"][attempt] == ""


@on_linux
def test_the_level_that_is_wanted_is_in_force_and_said(found: dict[str, Any]) -> None:
    assert found["level"].startswith("namespaces, ") == (found["wanted level"] == "namespaces")
    assert (found["process"] == 2) == (found["wanted level"] == "namespaces")
    assert ("without namespaces" in found["level"]) == (found["wanted level"] == "landlock")


@on_linux
@needs_landlock
@pytest.mark.parametrize("attempt", ELSEWHERE)
def test_nothing_is_written_elsewhere(found: dict[str, Any], attempt: str) -> None:
    assert found["attempts"][attempt] != ""


@on_linux
@needs_landlock
@needs_seccomp
@pytest.mark.parametrize("attempt", jailed_program.OF_OTHERS)
def test_nobody_else_is_touched(found: dict[str, Any], attempt: str) -> None:
    assert found["attempts"][attempt] not in ("", "Bad address", "Invalid argument")


@on_linux
@needs_landlock
@needs_seccomp
def test_what_is_outside_is_as_it_was(found: dict[str, Any]) -> None:
    assert found["after"] == found["before"]
    assert (found["after"]["heard"], found["after"]["nice"], found["after"]["memory"]) == ([], 0, 0)


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
    *held, bounding = found["capabilities"]
    assert all(capabilities in (0, 1 << namespaces.CAP_DAC_OVERRIDE) for capabilities in held)
    assert bounding in (0, 1 << namespaces.CAP_DAC_OVERRIDE) or (
        held == [0] * 4 and found["wanted level"] == jail.LANDLOCK
    )


@on_linux
@needs_seccomp
@pytest.mark.parametrize(("level", "user"), WAYS)
def test_what_may_open_unix_sockets_opens_no_others_and_in_namespaces_reaches_nobody(level: str, user: str) -> None:
    found = tries(level, user, '{"local_sockets": true, "locks": true}')
    opened = {name: found["attempts"][name] for name in SOCKETS}
    assert opened.pop("open a Unix socket") == ""
    assert set(opened.values()) == {"Permission denied"}
    reached = [name for name in ("connect to a foreign socket", "send a datagram") if not found["attempts"][name]]
    assert reached == ([] if level == jail.NAMESPACES else ["connect to a foreign socket", "send a datagram"])
    assert (found["after"]["heard"] == []) == (level == jail.NAMESPACES)
    assert found["attempts"]["lock a foreign file"] == ""


@on_linux
@needs_seccomp
@pytest.mark.parametrize(("level", "user"), WAYS)
def test_what_is_strict_starts_nothing_and_opens_nothing(level: str, user: str) -> None:
    found = tries(level, user, '{"strict": true}')
    refused = [name for name, error in found["attempts"].items() if error]
    assert {"start a program", "make a foreign file in a child", "open a pair of sockets", *SOCKETS} <= set(refused)
    assert found["attempts"]["write its own file"] == ""
    assert found["after"] == found["before"]


@on_linux
@pytest.mark.skipif(not confinement.has_namespaces(), reason="this system has no namespaces for us")
def test_what_is_copied_is_changed_only_within() -> None:
    with folders("own user") as (own, foreign):
        bounds = {"writable": [str(own)], "copied": [str(foreign)], "local_sockets": True, "locks": True}
        program = (
            f"from pathlib import Path; kept = Path({str(foreign / 'kept')!r}); kept.write_text('changed')\n"
            f"Path('/tmp/of-a-test').touch(); Path({str(own / 'own')!r}).write_text(kept.read_text()); kept.unlink()"
        )
        subprocess.run([*bound(bounds, "own user"), "-c", program], check=True)
        assert ((own / "own").read_text(), (foreign / "kept").read_text()) == ("changed", "kept")
        assert not Path("/tmp/of-a-test").exists()


ENDS = {"import sys; sys.exit(3)": 3, "import os; os.abort()": -6, "import os; os.kill(os.getpid(), 9)": -9,
        "import ctypes; ctypes.string_at(0)": -11, "": 0}  # fmt: skip


@on_linux
@pytest.mark.parametrize("program", ENDS)
@pytest.mark.parametrize("level", LEVELS)
def test_what_runs_in_the_jail_ends_as_it_would_elsewhere(level: str, program: str) -> None:
    done = subprocess.run([*bound({"writable": [], "level": level}, "own user"), "-c", program], check=False)
    assert done.returncode == ENDS[program]


@on_linux
@pytest.mark.parametrize(("level", "user"), WAYS)
@pytest.mark.parametrize("ends", ["by itself", "by its guard"])
def test_no_process_outlives_its_jail(level: str, user: str, ends: str) -> None:
    """Not in a session of its own, not without a parent, not with both."""
    name = f"left-{os.getpid()}-{level}-{user.replace(' ', '-')}-{ends.replace(' ', '-')}"
    command = [*bound({"writable": [], "level": level}, user), str(PROGRAM), name, "leave"]
    with subprocess.Popen(command, **USERS[user]) as process:
        deadline = time.monotonic() + 10
        while len(processes_of(name)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        if ends == "by its guard":
            process.terminate()
    assert process.returncode in (3, -signal.SIGTERM, 128 + signal.SIGTERM)
    deadline = time.monotonic() + 2
    while processes_of(name) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert processes_of(name) == []


def processes_of(name: str) -> list[int]:
    """Those that were left, and run."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cmdline()[-1:] == [name] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


@on_linux
@pytest.mark.parametrize("level", LEVELS)
def test_memory_is_that_of_all_processes_together_and_not_of_their_guard(level: str) -> None:
    program = (
        "import os, sys, time\nfor _ in range(3):\n if os.fork() == 0 and os.fork() == 0: break\n"
        "kept = bytearray(os.urandom(1)) * (40 << 20); print('x', flush=True); time.sleep(60)"
    )
    command = [*bound({"writable": [], "level": level}, "own user"), "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        for _ in range(4):
            process.stdout.readline()
        worker = find_guarded_worker(process.pid)
        assert worker != process.pid
        assert resident_bytes(worker) > 4 * (40 << 20)
        assert resident_bytes(process.pid) - resident_bytes(worker) < 30 << 20
        process.terminate()


CAN_GROUP = os.access("/sys/fs/cgroup/memory", os.W_OK)


@on_linux
@pytest.mark.skipif(not (CAN_GROUP and confinement.has_namespaces()), reason="we may make no control group here")
def test_a_control_group_bounds_memory_that_no_process_has_mapped_and_goes_with_the_container() -> None:
    program = "import os; file = os.memfd_create('x'); [os.write(file, bytes(1 << 20)) for _ in range(400)]"
    for bounds, code in (({"group_bytes": 100 << 20}, -signal.SIGKILL), ({}, 0)):
        with subprocess.Popen([*bound({"writable": [], **bounds}, "own user"), "-c", program]) as process:
            process.wait()
        assert process.returncode == code
        assert list(Path("/sys/fs/cgroup").glob(f"*/**/{cgroups.OWN}{process.pid}")) == []


@on_linux
@pytest.mark.skipif(not (IS_ROOT and confinement.has_namespaces()), reason="it starts processes as somebody else")
def test_somebody_starts_so_many_processes_in_a_container_and_no_more() -> None:
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_NPROC))"
    command = [*bound({"writable": []}, "nobody"), "-c", program]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True, **USERS["nobody"])
    assert done.stdout.strip() == f"({cgroups.MOST_PROCESSES}, {cgroups.MOST_PROCESSES})"


@on_linux
def test_unknown_calls_and_those_of_other_architectures_are_refused() -> None:
    program = seccomp.make_filter("x86_64", {}, inside=True)
    assert verdict(program, 0xC000003E, 0) == seccomp.RET_ALLOW
    assert verdict(program, 0x40000003, 20) == seccomp.RET_ERRNO | errno.EPERM
    assert verdict(program, 0xC000003E, seccomp.X32) == seccomp.RET_ERRNO | errno.EPERM
    assert verdict(program, 0xC000003E, 467) == seccomp.RET_ERRNO | errno.ENOSYS
    assert verdict(program, 0xC000003E, 435) == seccomp.RET_ERRNO | errno.ENOSYS
    assert verdict(program, 0xC000003E, 165) == seccomp.RET_ERRNO | errno.EPERM
    for_arm = seccomp.make_filter("aarch64", {"strict": True}, inside=False)
    assert verdict(for_arm, 0xC00000B7, 63) == seccomp.RET_ALLOW
    assert verdict(for_arm, 0xC00000B7, 220, 17) == seccomp.RET_ERRNO | errno.EPERM  # a process
    assert verdict(for_arm, 0xC00000B7, 220, 0x3D0F00) == seccomp.RET_ALLOW  # a thread
    assert verdict(for_arm, 0xC00000B7, 221) == seccomp.RET_ERRNO | errno.EPERM


def verdict(program: list[tuple[int, ...]], architecture: int, call: int, first: int = 0) -> int:
    """What the kernel does with a call: it executes such a program."""
    data = struct.pack("=IIQ6Q", call, architecture, 0, first, 0, 0, 0, 0, 0)
    at, loaded = 0, 0
    while True:
        code, if_true, if_false, value = program[at]
        if code == seccomp.RETURN:
            return value
        if code == seccomp.LOAD:
            (loaded,) = struct.unpack_from("=I", data, value)
            if_true = if_false = 0
        holds = {seccomp.EQUALS: loaded == value, seccomp.ABOVE: loaded > value, seccomp.AT_LEAST: loaded >= value,
                 seccomp.ANY_BIT: bool(loaded & value)}.get(code, True)  # fmt: skip
        at += 1 + (if_true if holds else if_false)


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
    assert "the worker may write only to folders of its own" in record.reason
    assert not (tmp_path / "written").exists()
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
    started = run_process(confinement.launcher(on_cuda))
    assert (started.returncode, started.stderr) == (0, "")
    assert started.stdout.startswith("Landlock" if "level" in on_cuda else "namespaces")
    assert not (confinement.policy(resolve("cpu")) or {}).get("local_sockets")


@on_linux
def test_a_folder_for_compiled_models_is_made_and_allowed(tmp_path: Path) -> None:
    options = {"cache_dir": str(tmp_path / "compiled"), "enable_cache": "1", "backend_path": "/usr/lib/libQnn.so"}
    bounds = confinement.policy(replace(resolve("cpu"), options=options))
    assert bounds is not None
    assert [name for name in bounds["writable"] if name.startswith((str(tmp_path), "/usr"))] == [
        str(tmp_path / "compiled")
    ]
    assert (tmp_path / "compiled").is_dir()


@on_linux
def test_who_examines_a_model_starts_nothing_whatever_its_targets_may_do() -> None:
    bounds = confinement.strict_policy()
    assert bounds is not None
    assert (bounds["writable"], bounds["strict"], bounds.get("local_sockets"), bounds.get("locks")) == (
        [], True, None, None
    )  # fmt: skip


@on_linux
def test_an_option_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(confinement.SWITCH, "off")
    assert confinement.policy(resolve("cpu")) is None
    assert confinement.describe_jail() == "off: EPCHECK_JAIL is 'off'"


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


ALWAYS = "not bounded: what they read, that a program cannot be written while they run it"


@on_linux
@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            "namespaces, Landlock 7, seccomp",
            "workers gain no privileges, write only to folders of their own, reach no other process, socket or "
            f"terminal (namespaces, Landlock 7, seccomp); {ALWAYS}",
        ),
        (
            "Landlock 7, seccomp; without namespaces (Operation not permitted)",
            "workers gain no privileges, write only to folders of their own, open no socket (Landlock 7, seccomp; "
            f"without namespaces (Operation not permitted)); {ALWAYS}, what they see of other processes, files in "
            "/dev/shm, sockets that CUDA's and the lab's workers reach",
        ),
        (
            "seccomp; without namespaces (x), Landlock",
            f"workers gain no privileges, open no socket (seccomp; without namespaces (x), Landlock); {ALWAYS}, "
            "where they write, what they see of other processes, files in /dev/shm, sockets that CUDA's and the lab's "
            "workers reach",
        ),
        (
            "without namespaces (x), Landlock, seccomp",
            f"workers gain no privileges (without namespaces (x), Landlock, seccomp); {ALWAYS}, where they write, "
            "sockets and system calls, what they see of other processes, files in /dev/shm",
        ),
    ],
)
def test_status_claims_what_the_kernel_has(monkeypatch: pytest.MonkeyPatch, found: str, words: str) -> None:
    monkeypatch.delenv(confinement.SWITCH, raising=False)
    monkeypatch.setattr(confinement, "find_level", lambda _most: found)
    assert confinement.describe_jail() == words


@on_linux
def test_the_facts_of_a_run_name_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = {"": confinement.find_level(""), "landlock": confinement.find_level("landlock"), "off": "none"}
    for value, level in levels.items():
        monkeypatch.setenv(confinement.SWITCH, value)
        client = WorkerClient(replace(resolve("cpu"), forks=False), queue.SimpleQueue(), IdleWorkers())
        client.start()
        while not client.is_ready:
            client.handle(client.events.get(timeout=60))
        stated = client.facts["jail"]
        client.retire()
        assert stated == level


def test_windows_has_job_objects_and_says_what_they_do_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    words = confinement.describe_jail()
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
        f"import sys; sys.path.insert(0, {str(WORKER.parents[1])!r}); from program import jail, namespaces, seccomp\n"
        "jail.CREATE_RULESET = 100_000; seccomp.ARCHITECTURES = {}; namespaces.CLONE = {}\n"
        f"jail.enter({{'writable': []}}); open({str(tmp_path / 'written')!r}, 'w'); print(jail.describe_level())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    words = f"without namespaces (no numbers for {platform.machine()}), Landlock, seccomp"
    assert done.stdout.strip() == words
    assert (tmp_path / "written").exists()


@on_linux
def test_a_container_that_cannot_be_completed_leaves_the_process_as_it_was() -> None:
    """Not half of it: the worker goes on at the next level, in the namespaces of who started it."""
    program = (
        f"import sys, os; sys.path.insert(0, {str(WORKER.parents[1])!r}); from program import jail, namespaces\n"
        "def refuse(*_): raise OSError('proc cannot be mounted')\n"
        "namespaces._make_devices = refuse; before = os.readlink('/proc/self/ns/net')\n"
        "jail.enter({'writable': []}); print(jail.describe_level(), os.readlink('/proc/self/ns/net') == before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.startswith(f"Landlock {jail.available()['landlock']}, seccomp; without namespaces (")
    assert done.stdout.endswith(") True\n")


@on_linux
def test_a_process_with_threads_goes_without_namespaces_and_does_not_hang() -> None:
    """numpy's BLAS waits for its threads when it is forked."""
    program = (
        f"import sys, threading, time; sys.path.insert(0, {str(WORKER.parents[1])!r}); from program import jail\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "jail.enter({'writable': [], 'strict': True}); started = threading.Thread(target=print, args=('it runs',))\n"
        "started.start(); started.join(); print(jail.describe_level())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True, timeout=30
    )
    assert done.stdout.startswith("it runs\n")
    assert "without namespaces (the process has threads)" in done.stdout


@on_linux
def test_temporary_files_of_workers_go_with_a_command_that_a_signal_ends(tmp_path: Path) -> None:
    """Outside of a run a signal ends the process at once, without what is done at its end otherwise."""
    program = (
        "import os, signal; from epcheck.cli import start; from epcheck.conformance.workers import confinement as c\n"
        "start.end_on_signals(); print(c.temp(), flush=True); os.kill(os.getpid(), signal.SIGTERM)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, encoding="utf-8", check=False
    )
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
        process = subprocess.Popen([sys.executable, "-c", program], env=environment, encoding="utf-8",
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
