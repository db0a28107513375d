"""The process outside, which starts workers for one that is jailed (`broker`): what that sends is a stranger's."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Sequence
from functools import partial

from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.broker import CPU, EXITED, KILL, MEMORY, NEVER_STARTED, START, STARTED
from epcheck.conformance.workers.fork_server import Child, ForkServer, can_fork, start
from epcheck.conformance.workers.process import end_process, measure_process
from epcheck.conformance.workers.program.fork import MESSAGE

MOST = 4
"""Workers of each target at once; a search has one or two."""

MEASURE_EVERY_S = 0.1


class BrokerServer:
    """Starts workers of its targets for the other side, and ends them all when it is closed."""

    def __init__(self, control: socket.socket, started: Sequence[tuple[Target, int]]) -> None:
        """started: the targets, and the bytes of memory that a worker of each may take: beyond it is ended, whatever
        the other side does."""
        self._control = control
        self._targets, self._memory_bytes = [target for target, _ in started], [most for _, most in started]
        self._servers: dict[int, ForkServer] = {}
        self._workers: dict[int, tuple[int, Child]] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        for serve in (self._serve, self._measure):
            threading.Thread(target=serve, name=f"broker {serve.__name__}", daemon=True).start()

    def close(self) -> None:
        """End all workers and what they have started."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        with self._lock:
            left, servers = [*self._workers.values()], [*self._servers.values()]
            self._servers.clear()
        for place, process in left:
            end_process(process, self._targets[place])
        for server in servers:
            server.close()

    def _serve(self) -> None:
        with self._control, contextlib.suppress(OSError):
            while True:
                message, descriptors, _, _ = socket.recv_fds(self._control, MESSAGE.size, 3)
                if len(message) < MESSAGE.size:
                    break
                kind, number, value = MESSAGE.unpack(message)
                try:
                    if kind == START and len(descriptors) == 3:
                        self._start(number, value, descriptors)
                    elif kind == KILL and (known := self._workers.get(number)):
                        end_process(known[1], self._targets[known[0]])
                finally:
                    for descriptor in descriptors:
                        os.close(descriptor)
        self.close()

    def _start(self, number: int, place: int, descriptors: Sequence[int]) -> None:
        with self._lock:
            running = sum(at == place for at, _ in self._workers.values())
            is_known = 0 <= place < len(self._targets) and number not in self._workers
            try:
                if self._closed.is_set() or not is_known or running >= MOST:
                    raise ValueError("the process outside does not start that")
                process = self._start_process(place, descriptors)
            except (OSError, ValueError) as error:
                with contextlib.suppress(OSError):
                    os.set_blocking(descriptors[2], False)  # it may be anything
                    os.write(descriptors[2], f"{error}\n".encode())
                self._send(EXITED, number, NEVER_STARTED)
                return
            self._workers[number] = place, process
        threading.Thread(target=self._wait, args=(number, place, process), name="broker wait", daemon=True).start()

    def _start_process(self, place: int, descriptors: Sequence[int]) -> Child:
        target, (stdin, stdout, stderr) = self._targets[place], descriptors
        if not can_fork(target):
            return start(target, stdin=stdin, stdout=stdout, stderr=stderr)
        server = self._servers.get(place)
        if server is None or server.is_spent:
            server = self._servers[place] = ForkServer(target.name, partial(start, target))
        return server.fork_with((stdin, stdout, stderr))

    def _wait(self, number: int, place: int, process: Child) -> None:
        code = process.wait()
        end_process(process, self._targets[place])  # and what it has started
        with self._lock:
            del self._workers[number]
        self._send(EXITED, number, code)

    def _measure(self) -> None:
        """Say what each worker takes, and end one that takes too much memory."""
        while not self._closed.wait(MEASURE_EVERY_S):
            with self._lock:
                running = [*self._workers.items()]
            for number, (place, process) in running:
                resident, cpu_s = measure_process(process)
                for kind, value in ((STARTED, process.pid), (MEMORY, resident), (CPU, int(cpu_s * 1e6))):
                    self._send(kind, number, value)
                if resident > self._memory_bytes[place]:
                    end_process(process, self._targets[place])

    def _send(self, kind: int, number: int, value: int) -> None:
        with contextlib.suppress(OSError):
            self._control.sendall(MESSAGE.pack(kind, number, value))
