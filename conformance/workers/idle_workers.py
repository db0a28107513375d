"""Workers that have nothing to do: kept for the next run on the same target, or ended."""

from __future__ import annotations

import queue
from collections.abc import Mapping
from functools import partial

from epcheck.conformance.targets.target import CPU, DML, Target
from epcheck.conformance.workers.broker import current_broker
from epcheck.conformance.workers.fork_server import ForkServer, can_fork, start
from epcheck.conformance.workers.process import Event, WorkerProcess, make_start_key
from epcheck.conformance.workers.session_options import session_options


class IdleWorkers:
    """Where a run takes its workers from: idle ones of an earlier run, and new ones, forked by a fork server where that
    is possible. By default no idle worker is kept: `keep` is 0."""

    def __init__(self, keep: int = 0) -> None:
        """keep: idle workers at most, of all targets together."""
        self._keep = keep
        self._idle: list[WorkerProcess] = []
        self._fork_servers: list[tuple[tuple[object, ...], ForkServer]] = []
        self._tried: list[object] = []
        self._facts: list[tuple[object, Mapping[str, str]]] = []

    def take(self, target: Target, events: queue.SimpleQueue[Event]) -> WorkerProcess:
        """A worker of the target, idle or new, that begins the handshake anew. Raises OSError or ValueError."""
        wanted = make_start_key(target)
        canary, facts = self.needs_canary(target), not self.facts(target)
        self._idle = [process for process in self._idle if process.process.poll() is None]
        for process in self._idle:
            if process.started_as == wanted:
                self._idle.remove(process)
                process.target = target
                process.begin_handshake(events, canary, facts)
                return process
        forks = can_fork(target) and current_broker() is None
        server = self._fork_server(target, wanted) if forks else None
        return WorkerProcess(target, events, server, canary, facts)

    def needs_canary(self, target: Target) -> bool:
        """Whether the next worker of the target tries its provider before anything else."""
        return needs_canary(target) and _make_trial_key(target) not in self._tried

    def note_start(self, target: Target, facts: Mapping[str, str]) -> None:
        """A worker of the target has answered: its provider can be used, and need not be tried again in this run, nor
        need another say what it runs on.

        Only CPU's and DirectML's: what a worker of another one finds out about its own records, each has to find out.
        """
        if target.provider in (CPU, DML):
            self._tried.append(_make_trial_key(target))
            if not self.facts(target):
                self._facts.append((_make_facts_key(target), facts))

    def facts(self, target: Target) -> Mapping[str, str]:
        """What a worker that was started like this one, and has the same provider and options, has said of itself;
        empty where none has."""
        wanted = _make_facts_key(target)
        return next((facts for made, facts in self._facts if made == wanted), {})

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
        server = ForkServer(target.name, partial(start, target))
        self._fork_servers.append((wanted, server))
        return server


def needs_canary(target: Target) -> bool:
    """Whether its workers can try a provider: those of ONNX Runtime can."""
    return target.provider is not None and not target.calls_directml


def _make_facts_key(target: Target) -> object:
    """What the facts of a worker depend on: an option chooses the adapter."""
    return make_start_key(target), target.provider, dict(target.options)


def _make_trial_key(target: Target) -> object:
    """What it depends on whether the provider of a target can be used."""
    return make_start_key(target), session_options(target)
