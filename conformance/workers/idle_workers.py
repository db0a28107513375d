"""Workers that have nothing to do: kept for the next run on the same target, or ended."""

from __future__ import annotations

import queue

from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.fork_server import ForkServer, can_fork
from epcheck.conformance.workers.process import Event, WorkerProcess, started_as


class IdleWorkers:
    """Where a run takes its workers from: idle ones of an earlier run, and new ones, forked by a fork server where that
    is possible. By default no idle worker is kept: `keep` is 0."""

    def __init__(self, keep: int = 0) -> None:
        """keep: idle workers at most, of all targets together."""
        self._keep = keep
        self._idle: list[WorkerProcess] = []
        self._fork_servers: list[tuple[tuple[object, ...], ForkServer]] = []

    def take(self, target: Target, events: queue.SimpleQueue[Event]) -> WorkerProcess:
        """A worker of the target, idle or new, that begins the handshake anew. Raises OSError or ValueError."""
        wanted = started_as(target)
        self._idle = [process for process in self._idle if process.process.poll() is None]
        for process in self._idle:
            if process.started_as == wanted:
                self._idle.remove(process)
                process.begin_handshake(events)
                return process
        return WorkerProcess(target, events, self._fork_server(target, wanted) if can_fork(target) else None)

    def give(self, process: WorkerProcess) -> None:
        """Keep an idle worker, or end it."""
        if len(self._idle) < self._keep:
            self._idle.append(process)
        else:
            process.close()

    def end_run(self) -> None:
        """A run is over: where no workers are kept, end the fork servers."""
        while self._fork_servers and not self._keep:
            self._fork_servers.pop()[1].close()

    def close(self) -> None:
        """End all that are kept."""
        self._keep = 0
        while self._idle:
            self._idle.pop().close()
        self.end_run()

    def _fork_server(self, target: Target, wanted: tuple[object, ...]) -> ForkServer:
        self._fork_servers = [(made, server) for made, server in self._fork_servers if not server.is_spent]
        for made, server in self._fork_servers:
            if made == wanted:
                return server
        server = ForkServer(target)
        self._fork_servers.append((wanted, server))
        return server
