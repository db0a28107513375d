"""What a worker has started ends with it, whoever is killed, and one process sees to that for all workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux's descriptors of processes")

SERVER = """
import os, subprocess, sys, time
from epcheck.conformance.workers.program.group_guard import GroupGuard
guard = GroupGuard()
for _ in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        guard.leave()
        program = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
        os.write(1, f"{os.getpid()} {program.pid}\\n".encode())
        time.sleep(60)
        os._exit(0)
    guard.watch(pid)
"""

MARK = "EPCHECK_TEST_MARK"


class Server:
    """A fork server with a guard. workers: worker -> the program that it has started."""

    def __init__(self) -> None:
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.workers: dict[int, int] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            env={**os.environ, MARK: self.mark},
        )  # fmt: skip

    def fork(self) -> tuple[int, int]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"\n")
        worker, program = map(int, self.process.stdout.readline().split())
        self.workers[worker] = program
        return worker, program

    def guard(self) -> psutil.Process:
        known = {self.process.pid, *self.workers, *self.workers.values()}
        (found,) = (process for process in self.marked() if process.pid not in known)
        return found

    def marked(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == self.mark:
                    found.append(process)
            except psutil.Error:
                continue
        return found


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    try:
        yield made
    finally:
        for process in made.marked():
            process.kill()
        made.process.communicate()


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def ended(*pids: int) -> bool:
    until = time.monotonic() + 10
    while any(map(runs, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(runs, pids))


def test_the_program_of_a_worker_that_is_killed_ends_and_no_other(server: Server) -> None:
    (worker, program), (_, other) = server.fork(), server.fork()
    os.kill(worker, signal.SIGKILL)
    assert ended(program)
    assert runs(other)


def test_programs_end_where_workers_and_server_are_killed_at_once(server: Server) -> None:
    pids = [*server.fork(), *server.fork()]
    for pid in (server.process.pid, *server.workers):
        os.kill(pid, signal.SIGKILL)
    assert ended(*pids)


def test_one_process_guards_all_workers_and_ends_after_them(server: Server) -> None:
    server.fork()
    server.fork()
    guard = server.guard()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        guard.send_signal(number)
    for worker in server.workers:
        os.kill(worker, signal.SIGKILL)
    assert ended(*server.workers.values())
    assert runs(guard.pid)
    server.process.kill()
    assert ended(guard.pid)


def test_a_guard_that_is_killed_is_replaced(server: Server) -> None:
    server.fork()
    first = server.guard()
    first.kill()
    assert ended(first.pid)
    worker, program = server.fork()
    assert server.guard().pid != first.pid
    os.kill(worker, signal.SIGKILL)
    assert ended(program)
