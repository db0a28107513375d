"""A node's side of a distributed run: cases in, records out, the workers kept from one task to the next.

Works in the process of a Dask worker, and uses nothing of Dask. Targets are resolved here, so that `dml` is this
node's; the tables of the client's `epcheck.toml` travel, and a table that this node's own has goes before them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from epcheck.conformance import lab
from epcheck.conformance.cache.cache import Cache, default_path
from epcheck.conformance.lab import LabError
from epcheck.conformance.records.record import encode
from epcheck.conformance.scheduling.plan import Facts, Plan
from epcheck.conformance.scheduling.run import run_plan
from epcheck.conformance.targets import claim_file
from epcheck.conformance.targets.config import load_config
from epcheck.conformance.targets.environments import RuntimeInstallError
from epcheck.conformance.targets.expectation import Expectation, ExpectationError
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import Target, TargetError
from epcheck.conformance.workers.client import TargetDown
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.generators.case import Case
from epcheck.generators.claims.table import TableError
from epcheck.generators.error import EpcheckError

IDLE_S = 60.0
"""Seconds after which workers that no task has used are ended: whoever ran them may be gone without a word."""

REASONS = (TargetError, TargetDown, ExpectationError, TableError, LabError, RuntimeInstallError, OSError)
"""Why this node cannot run an order."""

Line = tuple[str, str]
"""A record as one line of JSON, and its reading."""


class ClusterError(EpcheckError, RuntimeError):
    """A cluster cannot be used, or no longer; the message says why and what to do."""


@dataclass(frozen=True)
class Order:
    """What a node has to know of a run to take cases of it.

    run: which run. candidate, baseline: specifications. tables: of the client's `epcheck.toml`. expectations: what the
    client adds to those of the target. claim_tables: (name, text) of the client's files, of which those count that are
    about the candidate's provider. vulkan: the ICD file, on this node. The others as in `Plan`.
    """

    run: str
    candidate: str
    baseline: str | None
    reference: bool = True
    tables: Mapping[str, Any] | None = None
    expectations: tuple[Expectation, ...] = ()
    claim_tables: tuple[tuple[str, str], ...] = ()
    vulkan: str | None = None
    jobs: int | None = None
    pack: bool = True
    cache: bool = True


@dataclass(frozen=True)
class TaskResult:
    """What came of a task. facts: target name -> what its worker reports of itself. expectations: of the candidate,
    those that apply on this node. notes: as `run_plan` returns them."""

    host: str
    facts: Facts
    expectations: tuple[Expectation, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unfit:
    """This node cannot run the order, now or later. why: one sentence."""

    host: str
    why: str


def work(order: Order, cases: Sequence[Case]) -> TaskResult | Unfit:
    """Run the cases; without any, say only what the targets are. Raises nothing that is the node's fault."""
    try:
        with _executor_of(order) as executor:
            return executor.run(cases)
    except REASONS as error:
        return Unfit(socket.gethostname(), str(error))


def dismiss(run: str) -> None:
    """End the workers of a run, in the background; those of a task that still runs, when it is done."""
    with _lock:
        _dismissed.add(run)
        executors = [executor for executor in _idle if executor.order.run == run]
        for executor in executors:
            _idle.remove(executor)
    for executor in executors:
        threading.Thread(target=executor.close, daemon=True).start()


class _Executor:
    """The targets of an order, resolved, and their workers."""

    def __init__(self, order: Order) -> None:
        """Raises one of REASONS."""
        config = {"targets": {**(order.tables or {}), **load_config().get("targets", {})}}
        vulkan = Path(order.vulkan) if order.vulkan else None

        def resolve_target(specification: str) -> Target:
            return resolve(specification, config, vulkan=vulkan)

        found = resolve_target(order.candidate)
        self.order = order
        found = replace(found, expectations=(*found.expectations, *order.expectations))
        self.candidate = claim_file.with_texts(found, order.claim_tables)
        self.plan = Plan(
            (),
            (self.candidate,),
            resolve_target(order.baseline) if order.baseline else None,
            resolve_target("reference") if order.reference else None,
            jobs=order.jobs,
            pack=order.pack,
        )
        self._idle_workers = IdleWorkers(keep=8 * (os.cpu_count() or 1))
        self._resources = contextlib.ExitStack()
        if any(not target.owns_group for target in (self.candidate, self.plan.baseline) if target):
            self._resources.enter_context(lab.in_use())
        self._timer = threading.Timer(IDLE_S, self._expire)

    def run(self, cases: Sequence[Case]) -> TaskResult:
        """Raises TargetDown."""
        lines: list[Line] = []
        facts: dict[str, Mapping[str, str]] = {}
        with closing(Cache(default_path() if self.order.cache else None)) as cache:
            notes = run_plan(
                replace(self.plan, cases=cases),
                lambda record: lines.append((encode(record), record.reading)),
                facts.update,
                cache,
                self._idle_workers,
            )
        applicable = self.candidate.narrow(facts[self.candidate.name]).expectations
        return TaskResult(socket.gethostname(), facts, applicable, tuple(lines), notes)

    def wait(self) -> None:
        """Wait for the next task, but not for ever."""
        self._timer = threading.Timer(IDLE_S, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def wake(self) -> None:
        """A task has come."""
        self._timer.cancel()

    def close(self) -> None:
        """End the workers."""
        self._timer.cancel()
        self._idle_workers.close()
        self._resources.close()

    def _expire(self) -> None:
        with _lock:
            if self not in _idle:
                return
            _idle.remove(self)
        self.close()


_idle: list[_Executor] = []
"""Executors that no task uses, the one used last at the end."""

_dismissed: set[str] = set()
"""Runs that are over."""

_lock = threading.Lock()


@contextlib.contextmanager
def _executor_of(order: Order) -> Iterator[_Executor]:
    """An executor of the order, of which there are as many as tasks at once; after an error its workers are ended."""
    with _lock:
        executor = next((executor for executor in reversed(_idle) if executor.order == order), None)
        if executor:
            _idle.remove(executor)
            executor.wake()
    executor = executor or _Executor(order)
    try:
        yield executor
    except BaseException:
        executor.close()
        raise
    with _lock:
        over = order.run in _dismissed
        if not over:
            _idle.append(executor)
            executor.wait()
    if over:
        executor.close()
