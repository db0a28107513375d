"""The outside: files, processes, sockets, keys and terminals of the benchmark's own, and whether they were reached."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import pty
import random
import resource
import select
import selectors
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.attacks.jailed.attempt import ATTEMPTS, PLANTED, Outside, Victim
from benchmarks.attacks.jailed.system_calls import LIBC, call, checked

VICTIM = """\
import ctypes, os, sys, time
memory, secret = ctypes.create_string_buffer(b"untouched bytes."), ctypes.create_string_buffer(os.urandom(16))
print(ctypes.addressof(memory), ctypes.addressof(secret), secret.raw[:16].hex(), flush=True)
time.sleep(600)
"""
MARK = "EPCHECK_HOOK_PEER"
"""Environment variable by which the processes of a round are known."""

EXPERIMENTAL = 0x88B5
"""The type of Ethernet frames that belong to no protocol."""

LOOK_S = 0.025
GRACE_S = 3.0
AT_HOME = (".config/autostart", ".ssh", ".local/lib/python3/site-packages", "models/__pycache__", ".nv/ComputeCache",
           ".cache/mesa_shader_cache", "epcheck-cache/prepared", "epcheck-cache/workers")  # fmt: skip
CPU, FILES = resource.RLIMIT_CPU, resource.RLIMIT_NOFILE


class Arena:
    """What stands outside of one jail. report: what the inside said of its attempts. printed: by the runner."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self.token = f"{random.randrange(16**8):08x}"
        self.root = Path(tempfile.mkdtemp(prefix="epcheck-peer-"))
        self.home, self.folder = self.root / "home", self.root / "outside"
        self.report: dict[str, str] = {}
        self.printed = ""
        self.heard: set[str] = set()
        self.seen: set[str] = set()
        self.secrets: dict[str, str] = {}
        self.masters: dict[str, tuple[int, int, Any]] = {}
        self.before: dict[str, Any] = {}
        self.victims: dict[str, subprocess.Popen[str]] = {}
        self.pipes: dict[str, int] = {}
        self.outside = Outside(str(self.folder), str(self.home), str(self.home / "epcheck-cache"), os.getpid())
        self._undo: list[Callable[[], object]] = []
        self._is_over = threading.Event()
        self._selector = selectors.DefaultSelector()
        self._make_files()
        self._make_victims()
        self._make_terminals()
        self._make_shared()
        self._make_sockets()
        self._threads = [threading.Thread(target=serve, daemon=True) for serve in (self._listen, self._look)]
        for thread in self._threads:
            thread.start()

    def _needing(self, what: str) -> list[str]:
        return [name for name in self.names if what in ATTEMPTS[name].needs]

    def _make_files(self) -> None:
        for name in AT_HOME:
            (self.home / name).mkdir(parents=True)
        (self.home / "models" / "model.onnx").write_bytes(b"")
        self.folder.mkdir()
        for name in self._needing("folder"):
            folder = self.folder / name
            (folder / "sub").mkdir(parents=True)
            (folder / PLANTED).write_text("untouched\n")
            if "fifo" in name:
                os.mkfifo(folder / "fifo")
                self.pipes[name] = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
            if "program" in name:
                shutil.copy("/bin/sleep", folder / "program")
        numbers = self.outside.numbers
        self.inherited = os.open(self.root / "inherited", os.O_CREAT | os.O_RDWR, 0o600)
        self._inherited_read, self.inherited_pipe = os.pipe()
        self._runner_read, _ = os.pipe()
        for place in (self.inherited, self.inherited_pipe):
            numbers[f"inode {place}"] = os.fstat(place).st_ino
        self.before |= {name: snapshot(self.folder / name) for name in self._needing("folder")}

    def _make_victims(self) -> None:
        line = [sys.executable, "-I", "-S", "-c", VICTIM]
        ends: dict[str, int] = {}
        for name in self._needing("victim"):
            self.pipes[f"{name} pipe"], ends[name] = os.pipe()
            self.secrets[name] = os.urandom(16).hex()
            self.victims[name] = subprocess.Popen(
                line, cwd=self.folder, stdout=subprocess.PIPE, encoding="utf-8", pass_fds=[ends[name]],
                start_new_session=True, env={"PEER_SECRET": self.secrets[name]},
            )  # fmt: skip
        for name, process in self.victims.items():
            assert process.stdout is not None
            memory, secret, text = process.stdout.readline().split()
            if "environment" not in name:
                self.secrets[name] = text
            self.outside.victims[name] = Victim(process.pid, int(memory), int(secret), ends[name])
            self.before[f"{name} victim"] = state(process.pid)

    def _make_terminals(self) -> None:
        for name in [*self._needing("terminal"), "runner"]:
            master, slave = pty.openpty()
            self.outside.terminals[name] = os.ttyname(slave)
            self.masters[name] = master, slave, None
            self.masters[name] = master, slave, terminal_state(master, slave)

    def _make_shared(self) -> None:
        numbers, names = self.outside.numbers, self.outside.names
        key = numbers["key"] = random.randrange(1 << 20, 1 << 30)
        self.shared = [checked(LIBC.shmget(each, 4096, 0o1600)) for each in (key, key + 1)]
        self.semaphore = checked(LIBC.semget(key, 1, 0o1600))
        self.messages = checked(LIBC.msgget(key, 0o1600))
        self._undo += [lambda each=each: LIBC.shmctl(each, 0, None) for each in self.shared]  # type: ignore[misc]
        self._undo += [lambda: LIBC.semctl(self.semaphore, 0, 0, 0), lambda: LIBC.msgctl(self.messages, 0, None)]
        names |= {"token": self.token, "shm": f"/dev/shm/peer-{self.token}", "queue": f"/peer-{self.token}",
                  "key": f"peer-{self.token}", "cgroup": f"/sys/fs/cgroup/freezer/peer-{self.token}"}  # fmt: skip
        Path(names["shm"]).write_text("untouched")
        self._undo += [Path(names["shm"]).unlink, Path(names["shm"] + "-made").unlink]
        self.queue = LIBC.mq_open(names["queue"].encode(), os.O_CREAT | os.O_RDWR | os.O_NONBLOCK, 0o600, None)
        self._undo.append(lambda: LIBC.mq_unlink(names["queue"].encode()))
        self.secrets["read-a-key"] = os.urandom(16).hex()
        for place, text in (("stored key", "untouched"), ("stored secret", self.secrets["read-a-key"])):
            with contextlib.suppress(OSError):
                numbers[place] = call(248, b"user", f"{names['key']} {place}".encode(), text.encode(), len(text), -4)
                call(250, 5, numbers[place], 0x3F3F0000)
                self._undo.append(lambda place=place: call(250, 9, numbers[place], -4))  # type: ignore[misc]
        with contextlib.suppress(OSError):
            Path(names["cgroup"]).mkdir()
            self._undo.append(self._remove_cgroup)

    def _remove_cgroup(self) -> None:
        folder = Path(self.outside.names["cgroup"])
        (folder / "freezer.state").write_text("THAWED")
        for pid in (folder / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (folder.parent / "cgroup.procs").write_text(pid)
        folder.rmdir()

    def _make_sockets(self) -> None:
        numbers, names = self.outside.numbers, self.outside.names
        runs = next(folder for folder in ("/run", "/var/tmp") if os.access(folder, os.W_OK))
        names["run"], names["tmp"] = f"{runs}/peer-{self.token}.sock", str(self.root / "tmp.sock")
        names["home"], names["datagrams"] = str(self.home / "docker.sock"), str(self.home / "log.sock")
        names["abstract"], names["abstract datagrams"] = f"peer-{self.token}", f"peer-{self.token}-d"
        self._undo.append(Path(names["run"]).unlink)
        stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        unix = socket.AF_UNIX
        for name, kind, how, address in (
            ("tcp", socket.AF_INET, stream, ("127.0.0.1", 0)), ("tcp6", socket.AF_INET6, stream, ("::1", 0)),
            ("udp", socket.AF_INET, datagram, ("127.0.0.1", 0)), ("udp6", socket.AF_INET6, datagram, ("::1", 0)),
            ("run", unix, stream, names["run"]), ("tmp", unix, stream, names["tmp"]),
            ("home", unix, stream, names["home"]), ("datagrams", unix, datagram, names["datagrams"]),
            ("abstract", unix, stream, b"\0" + names["abstract"].encode()),
            ("abstract datagrams", unix, datagram, b"\0" + names["abstract datagrams"].encode()),
            ("vsock", 40, stream, (0xFFFFFFFF, 20000 + os.getpid() % 20000)),
            ("netlink", socket.AF_NETLINK, 0, (0, 0)),
            ("frames", socket.AF_PACKET, 0, ("lo", EXPERIMENTAL)),
        ):  # fmt: skip
            numbers.setdefault(name, 1)
            with contextlib.suppress(OSError):
                made = socket.socket(kind, how or socket.SOCK_RAW, 2 if name == "netlink" else 0)
                if name == "tcp":
                    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)
                made.bind(address)
                if how == stream:
                    made.listen(20)
                made.setblocking(False)
                if kind != unix:
                    numbers[name] = int(made.getsockname()[0 if name == "netlink" else 1])
                self._selector.register(made, selectors.EVENT_READ, how == stream)
        with socket.socket() as made:
            made.bind(("127.0.0.1", 0))
            numbers["free"] = made.getsockname()[1]

    def _listen(self) -> None:
        while not self._is_over.is_set():
            for key, _ in self._selector.select(0.1):
                made: Any = key.fileobj
                with contextlib.suppress(OSError):
                    if key.data:
                        taken, _ = made.accept()
                        taken.setblocking(False)
                        self._selector.register(taken, selectors.EVENT_READ, False)
                        continue
                    text = made.recv(4096)
                    self.heard |= {name for name in self.names if name.encode() in text.split(b"\0")[-1:] or
                                   text.endswith(name.encode())}  # fmt: skip
                    if not text:
                        self._selector.unregister(made)

    def _look(self) -> None:
        """See what can be seen only while an attempt goes on."""
        held = [name for name in self.names if ATTEMPTS[name].kind == "locks"]
        while not self._is_over.wait(LOOK_S):
            for name in held:
                with contextlib.suppress(FileNotFoundError):
                    if is_held(self.folder / name, name):
                        self.seen.add(name)
            with socket.socket() as made:
                if made.connect_ex(("127.0.0.1", self.outside.numbers["free"])) == 0:
                    self.seen.add("port")
            try:
                os.close(call(294, 0))
            except OSError:
                self.seen.add("inotify")

    def become_runner(self) -> None:
        """In the runner, before its program: it gets a terminal of its own."""
        os.setsid()
        fcntl.ioctl(self.masters["runner"][1], termios.TIOCSCTTY, 0)

    def close(self) -> None:
        """End and remove all that was made."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        for undo in self._undo:
            with contextlib.suppress(OSError):
                undo()
        for process in self.victims.values():
            process.kill()
            process.wait()
        for place in reversed(mounts_below(self.root)):
            LIBC.umount2(place.encode(), 2)
        if mounts_below(self.root):
            raise SystemExit(f"{self.root}: something is mounted there still, so it was not removed; unmount it first")
        for path in self.root.rglob("*"):
            with contextlib.suppress(OSError):
                clear_flags(path)
        remove_tree(self.root)


def mounts_below(folder: Path) -> list[str]:
    """Where something is mounted in a folder, in this process's namespace, in the order of mounting."""
    places = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [place for place in places if place.startswith(f"{folder}/")]


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours, and nothing that stands on another device or is mounted there: after an attack that went
    through, something else may be."""
    device = folder.lstat().st_dev
    for path in sorted(folder.rglob("*"), key=lambda each: len(each.parts), reverse=True):
        with contextlib.suppress(OSError):
            about = path.lstat()
            if about.st_dev == device and not os.path.ismount(path):
                path.rmdir() if stat.S_ISDIR(about.st_mode) else path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


def clear_flags(path: Path) -> None:
    if path.is_file():
        place = os.open(path, os.O_RDONLY)
        fcntl.ioctl(place, 0x40086602, struct.pack("l", 0))
        os.close(place)


def snapshot(folder: Path) -> dict[str, object]:
    """All that is known of what stands in a folder."""
    found: dict[str, object] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        about = path.lstat()
        attributes = os.listxattr(path, follow_symlinks=False)
        text = path.read_bytes()[:200] if path.is_file() and not path.is_symlink() else b""
        known = (about.st_mode, about.st_uid, about.st_gid, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        place = (about.st_ino, about.st_dev, about.st_nlink)
        found[str(path.relative_to(folder))] = known, place, attributes, text
    return found


def state(pid: int) -> dict[str, object]:
    """What others can change of a process."""
    found: dict[str, object] = {
        "priority": os.getpriority(os.PRIO_PROCESS, pid),
        "cores": os.sched_getaffinity(pid),
        "scheduler": os.sched_getscheduler(pid),
        "priority of I/O": call(252, 1, pid),
        "limits": (resource.prlimit(pid, CPU), resource.prlimit(pid, FILES)),
    }
    for name in ("oom_score_adj", "coredump_filter", "timerslack_ns"):
        with contextlib.suppress(OSError):
            found[name] = Path(f"/proc/{pid}/{name}").read_text()
    return found


def terminal_state(master: int, slave: int) -> list[object]:
    """What others can change of a terminal."""
    found: list[object] = [bool(select.select([master], [], [], 0)[0])]
    for what in (
        lambda: termios.tcgetattr(slave)[:4],
        lambda: fcntl.ioctl(slave, termios.TIOCGWINSZ, bytes(8)),
        lambda: fcntl.ioctl(slave, termios.FIONREAD, bytes(4)),
        lambda: os.tcgetpgrp(master),
        lambda: select.select([], [slave], [], 0)[1],
    ):
        try:
            found.append(what())
        except (OSError, termios.error) as error:
            found.append(str(error))
    return found


def is_held(folder: Path, name: str) -> bool:
    """Whether somebody else keeps a file from being written or locked."""
    path = folder / ("program" if "program" in name else PLANTED)
    place = -1
    try:
        place = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        if "range" in name:
            fcntl.lockf(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif name == "lock-a-file":
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        if place >= 0:
            os.close(place)
    return False


def folder_changed(arena: Arena, name: str) -> str:
    try:
        now = snapshot(arena.folder / name)
    except OSError as error:
        return f"the folder cannot be read any more: {error}"
    before = arena.before[name]
    if name in arena.pipes and select.select([arena.pipes[name]], [], [], 0)[0] and os.read(arena.pipes[name], 9):
        return "the FIFO was written to"
    changed = [path for path in before.keys() | now.keys() if before.get(path) != now.get(path)]
    return f"changed: {', '.join(sorted(changed))}" if changed else ""


def home_has(arena: Arena, name: str) -> str:
    for path in arena.home.rglob("*"):
        if path.is_file() and path.stat().st_size < 1 << 20 and name.encode() in path.read_bytes():
            return f"written: ~/{path.relative_to(arena.home)}"
    return ""


def heard(arena: Arena, name: str) -> str:
    return "a listener heard it" if name in arena.heard else ""


def port_was_open(arena: Arena, name: str) -> str:
    del name
    return "a connection to it was taken" if "port" in arena.seen else ""


def victim_ended(arena: Arena, name: str) -> str:
    victim = arena.victims[name]
    if victim.poll() is not None:
        return f"the process ended with {victim.returncode}"
    stopped = ") T " in Path(f"/proc/{victim.pid}/stat").read_text()
    return "the process was stopped" if stopped else ""


def victim_changed(arena: Arena, name: str) -> str:
    before, now = arena.before[f"{name} victim"], state(arena.victims[name].pid)
    return ", ".join(f"{what} {before.get(what)} -> {each}" for what, each in now.items() if before.get(what) != each)


def runner_changed(arena: Arena, name: str) -> str:
    del name
    return "its priority" if "RUNNER PRIORITY 3" in arena.printed else ""


def cgroup_changed(arena: Arena, name: str) -> str:
    with contextlib.suppress(OSError):
        if str(arena.victims[name].pid) in (Path(arena.outside.names["cgroup"]) / "cgroup.procs").read_text().split():
            return "the process was moved to a control group"
    return ""


def victim_memory_changed(arena: Arena, name: str) -> str:
    victim = arena.outside.victims[name]
    with Path(f"/proc/{victim.pid}/mem").open("rb") as memory:
        memory.seek(victim.memory)
        return "its memory was written" if memory.read(16) != b"untouched bytes." else ""


def told_the_secret(arena: Arena, name: str) -> str:
    return "the secret was read" if arena.report.get(name, "") == arena.secrets[name] else ""


told_the_key = told_the_secret


def told_zero(arena: Arena, name: str) -> str:
    return "the kernel did it" if arena.report.get(name) == "zero" else ""


def pipe_heard(arena: Arena, name: str) -> str:
    place = arena.pipes[f"{name} pipe"]
    return "the pipe was written to" if select.select([place], [], [], 0)[0] else ""


def printed_by_the_runner(arena: Arena, name: str) -> str:
    return "the runner's stdout was written to" if f"<{name}>" in arena.printed else ""


def inherited_reached(arena: Arena, name: str) -> str:
    written = os.fstat(arena.inherited).st_size or select.select([arena._inherited_read], [], [], 0)[0]
    return f"{name}: a descriptor led outside" if written else ""


def left(arena: Arena, name: str) -> str:
    found = [pid for pid, words in arena.before["left"].items() if words == name]
    return f"{len(found)} processes were left" if found else ""


def processes_left(arena: Arena) -> dict[int, str]:
    """The processes of a round that are there: id -> the attempt, or the command line."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            ours = f"{MARK}={arena.token}".encode() in (path / "environ").read_bytes()
            if not (ours or arena.token in line) or ") Z " in (path / "stat").read_text():
                continue
            comm = (path / "comm").read_text().strip()
            named = [name for name in arena.names if f"peer-{name}-{arena.token}" in line]
            named += [name for name in arena.names if comm and name[:15] == comm]
            found[int(path.name)] = named[0] if named else line
    return found


def wait_for_ends(arena: Arena) -> None:
    """Note who is left some seconds after the end of the runner, and end them."""
    until = time.monotonic() + GRACE_S
    while processes_left(arena) and time.monotonic() < until:
        time.sleep(0.1)
    arena.before["left"] = {}
    for _ in range(10):  # one that forks on and on lives for a moment each time
        arena.before["left"] |= processes_left(arena)
        time.sleep(0.05)
    until = time.monotonic() + 30
    while (found := processes_left(arena)) and time.monotonic() < until:
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def shared_memory_changed(arena: Arena, name: str) -> str:
    del name
    LIBC.shmat.restype = ctypes.c_void_p
    place = LIBC.shmat(arena.shared[0], None, 0)
    return "shared memory was written" if ctypes.string_at(place, 8) != bytes(8) else ""


def shared_memory_removed(arena: Arena, name: str) -> str:
    del name
    gone = LIBC.shmget(arena.outside.numbers["key"] + 1, 0, 0) == -1
    return "shared memory was removed" if gone else ""


def semaphore_changed(arena: Arena, name: str) -> str:
    del name
    return "a semaphore was set" if LIBC.semctl(arena.semaphore, 0, 12, 0) != 0 else ""


def message_queued(arena: Arena, name: str) -> str:
    del name
    found = ctypes.create_string_buffer(64)
    return "a message came" if LIBC.msgrcv(arena.messages, found, 8, 0, 0o4000) > 0 else ""


def shm_file_changed(arena: Arena, name: str) -> str:
    del name
    return "/dev/shm was written to" if Path(arena.outside.names["shm"]).read_text() != "untouched" else ""


def shm_file_made(arena: Arena, name: str) -> str:
    del name
    return "a file was made in /dev/shm" if Path(arena.outside.names["shm"] + "-made").exists() else ""


def posix_message_queued(arena: Arena, name: str) -> str:
    del name
    about = (ctypes.c_long * 8)()
    LIBC.mq_getattr(arena.queue, about)
    return "a message came" if about[3] else ""


def key_added(arena: Arena, name: str) -> str:
    del name
    try:
        found = call(250, 10, -4, b"user", (arena.outside.names["key"] + "-made").encode(), 0)
    except OSError:
        return ""
    call(250, 9, found, -4)
    return "the user's keyring has another key"


def key_changed(arena: Arena, name: str) -> str:
    del name
    found = ctypes.create_string_buffer(64)
    if "stored key" not in arena.outside.numbers:
        return ""
    length = call(250, 11, arena.outside.numbers["stored key"], found, 64, 0)
    return "a key was changed" if found.raw[:length] != b"untouched" else ""


def lock_was_held(arena: Arena, name: str) -> str:
    return "a file outside could not be used meanwhile" if name in arena.seen else ""


def no_inotify_left(arena: Arena, name: str) -> str:
    del name
    return "nobody of the user could watch files meanwhile" if "inotify" in arena.seen else ""


def terminal_reached(arena: Arena, name: str) -> str:
    master, slave, before = arena.masters[name]
    now = terminal_state(master, slave)
    return f"the terminal: {before} -> {now}" if now != before else ""


def runner_terminal_reached(arena: Arena, name: str) -> str:
    del name
    try:
        return "the runner's terminal" if select.select([arena.masters["runner"][0]], [], [], 0)[0] else ""
    except OSError:
        return ""
