"""Fork servers that outlive a run, so that the tests of a process start one of each kind and not one for each run.

A worker is a fork of a server that has imported what it needs, as ever; which server of that kind makes no difference
to it. What is asserted of the servers themselves is in folders that `conftest.py` names, where each run has its own.
"""

from __future__ import annotations

import subprocess
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pytest

from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers import broker_server, idle_workers
from epcheck.conformance.workers.fork_server import ForkedWorker, ForkServer
from epcheck.conformance.workers.process import make_start_key

MOST = 6
"""Servers that are kept in a process."""

OWN_PROGRAMS = ("onnxruntime", "reference", "python:epcheck.")
"""How the first argument of workers begins that read nothing in the working directory: they get absolute paths."""

OF_THE_RUNNER = ("COLUMNS", "NO_COLOR", "EPCHECK_CACHE", "EPCHECK_STORE", "GITHUB_STEP_SUMMARY")
"""Environment variables that no worker reads."""

Start = Callable[..., subprocess.Popen[bytes]]


def make_key(target: Target) -> str:
    """What the workers of a server for this target depend on."""
    command, worker, arguments, environment, folder, bounds = make_start_key(target)
    assert isinstance(environment, dict)
    variables = {name: value for name, value in environment.items() if name not in OF_THE_RUNNER}
    is_own = target.arguments[0].startswith(OWN_PROGRAMS)
    return repr((command, worker, arguments, variables, "" if is_own else folder, bounds, target.memory_bytes))


class KeptForkServers:
    """Fork servers by what their workers depend on."""

    def __init__(self) -> None:
        self._servers: OrderedDict[str, ForkServer] = OrderedDict()

    def find(self, name: str, start: Start) -> ForkServer:
        """The server that forks what `start` would start."""
        assert isinstance(start, partial)
        key = make_key(*start.args)
        server = self._servers.pop(key, None)
        if server is None or server.is_spent:
            server = ForkServer(name, start)
        self._servers[key] = server
        self._end_oldest()
        return server

    def _end_oldest(self) -> None:
        idle = [key for key, server in self._servers.items() if not server._workers]
        for key in idle[: max(0, len(self._servers) - MOST)]:
            self._servers.pop(key).close()

    def close(self) -> None:
        while self._servers:
            self._servers.popitem()[1].close()


class LentForkServer:
    """A kept fork server, as a run sees its own."""

    def __init__(self, kept: KeptForkServers, name: str, start: Start) -> None:
        self._kept, self._name, self._start = kept, name, start
        self._server: ForkServer | None = None

    @property
    def is_spent(self) -> bool:
        return self._server is not None and self._server.is_spent

    def fork(self, duplex: bool = False) -> ForkedWorker:
        return self._find().fork(duplex)

    def fork_with(self, streams: Sequence[int]) -> ForkedWorker:
        return self._find().fork_with(streams)

    def _find(self) -> ForkServer:
        if self._server is None:
            self._server = self._kept.find(self._name, self._start)
        return self._server

    def close(self) -> None:
        """It is kept."""


@contextmanager
def keep_fork_servers(kept: KeptForkServers) -> Iterator[None]:
    """Within the block, runs and examinations in this process borrow their fork servers."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (idle_workers, broker_server):
            patch.setattr(module, "ForkServer", partial(LentForkServer, kept))
        yield
