"""One side of a comparison: blocks of timed runs in a warm worker."""

from __future__ import annotations

import math
import queue
import statistics
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epcheck.conformance.records.outcome import TIMED_OUT
from epcheck.conformance.targets.target import DISABLE_FALLBACK, Target
from epcheck.conformance.workers.client import WorkerClient, WorkerLost
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.request import request, wait_until_ready
from epcheck.conformance.workers.session_options import session_options
from epcheck.conformance.workers.session_result import RUN, SessionResult, session_result
from epcheck.generators.array import Array
from epcheck.generators.error import EpcheckError

DEADLINE_S = 60.0
"""Seconds for a session, its first run and a block: a shape that takes longer is given up."""

MOST_RUNS = 10_000
"""Runs of a block that an answer may have."""

BYTES = 16
"""A worker may take so many times the size of the model and its feeds besides what the target allows for a case."""


class NotTimedError(EpcheckError):
    """A target does not run a node, or too slowly; the message says which and why."""


@dataclass(frozen=True)
class TimedModel:
    """A model, its feeds, the shapes to which the elements of some feeds are repeated, and the names of its outputs."""

    name: str
    content: bytes
    feeds: dict[str, Array]
    shapes: dict[str, tuple[int, ...]]
    outputs: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Of the model and its whole feeds."""
        shapes = {name: value.shape for name, value in self.feeds.items()} | self.shapes
        sizes: list[int] = [self.feeds[name].itemsize * math.prod(shape) for name, shape in shapes.items()]
        return len(self.content) + sum(sizes)


@dataclass(frozen=True)
class Block:
    """A block of runs. create_s, first_s: of its session, None in one that was there. run_s: the median of its runs
    without copies to and from the provider's device, None where each run copies. copied_s: of those with copies, None
    where these are no others, or not timed in this block. cpu_s: that processors worked. outputs: where they were
    wanted."""

    create_s: float | None
    first_s: float | None
    run_s: float | None
    copied_s: float | None
    runs: int
    cpu_s: float
    outputs: dict[str, Array] = field(default_factory=dict)

    @property
    def paced_s(self) -> float:
        """The seconds of a run of which the block is made."""
        return self.run_s or self.copied_s or 0.0


class TimedTarget:
    """A target with its worker, which is replaced when it is lost."""

    def __init__(self, target: Target, idle: IdleWorkers, threads: int) -> None:
        """threads: of the runtime within an operator, 0 for as many as it likes."""
        self.target = target
        self._client = WorkerClient(target, queue.SimpleQueue(), idle, DEADLINE_S)
        self._options = {"threads": threads, "level": "all", "arena": True, "profile": False}
        self._known = ""

    @property
    def facts(self) -> dict[str, str]:
        """What the worker says of itself."""
        return dict(self._client.facts)

    def start(self) -> None:
        """Start the worker, unless there is one. Raises TargetDown."""
        if wait_until_ready(self._client):
            self._known = ""

    def end(self) -> None:
        """End the worker; the next block starts another."""
        self._client.retire()
        self._known = ""

    def time_new_session(self, model: TimedModel, runs: int, seconds: float = 0.0, wanted: bool = False) -> Block:
        """A block of a new session. runs: how many, 0 for as many as fit into `seconds`. wanted: with its outputs.
        Raises NotTimedError, TargetDown."""
        return self._ask(model, {"kept": False, "runs": runs, "seconds": seconds, "wanted": wanted})

    def time_again(self, model: TimedModel, runs: int) -> Block:
        """A block of the session of the last one. Raises NotTimedError, TargetDown."""
        return self._ask(model, {"kept": True, "runs": runs, "seconds": 0.0, "wanted": False})

    def _ask(self, model: TimedModel, wanted: dict[str, Any]) -> Block:
        self.start()
        self._client.memory_bytes = self.target.memory_bytes + BYTES * model.bytes
        if wanted["kept"] and self._known != model.name:
            raise NotTimedError(f"'{self.target.name}' lost its worker")
        header = {
            "op": "speed", "id": model.name, **session_options(self.target), **self._options, **wanted,
            "known": self._known == model.name, "outputs": model.outputs, "shapes": model.shapes,
        }  # fmt: skip
        sent = {} if header["known"] else {"": np.frombuffer(model.content, np.uint8), **model.feeds}
        self._known = ""
        answer = request(self._client, model.name, protocol.encode(header, sent))
        if isinstance(answer, WorkerLost):
            slow = "is too slow" if answer.kind == TIMED_OUT else "lost its worker"
            raise NotTimedError(f"'{self.target.name}' {slow}: {answer.why}")
        try:
            result = session_result(answer.header)
            outputs = dict(protocol.decode(answer.header, answer.body))
            block = None if result.failed else read_block(answer.header, result, outputs)
        except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
            self._client.lose(f"its worker sent a malformed response: {error!r}")
            raise NotTimedError(f"'{self.target.name}': its worker sent a malformed response") from None
        if block is None:
            did = "run" if result.stage == RUN else "take"
            raise NotTimedError(f"'{self.target.name}' does not {did} it: {result.message}")
        self._check_placement(result)
        self._known = model.name
        return block

    def _check_placement(self, result: SessionResult) -> None:
        """Raises NotTimedError where the record of the session has a node on another provider. Without a record, the
        session has to fail then (DISABLE_FALLBACK)."""
        provider = self.target.provider
        if provider is None or DISABLE_FALLBACK not in self.target.config:
            return
        for ran_on, operator, _ in result.assignment or ():
            if ran_on != provider:
                raise NotTimedError(f"'{self.target.name}' does not take it: {operator} runs on {ran_on}")


def read_block(header: Any, result: SessionResult, outputs: dict[str, Array]) -> Block:
    """Raises what is wrong with an answer: KeyError, TypeError, ValueError."""
    timing = header["timing"]
    own, copied = timing["runs_ns"], timing["copied_ns"]
    copied_s, runs = _median_s(copied) if copied or not own else (None, 0)
    run_s, runs = _median_s(own) if own else (None, runs)
    copies = {name: value.copy() for name, value in outputs.items()}
    return Block(result.create_s, result.run_s, run_s, copied_s, runs, result.cpu_s, copies)


def _median_s(times: Any) -> tuple[float, int]:
    """The median of nanoseconds as seconds, which is more than 0; and how many there are."""
    if not isinstance(times, list) or not 0 < len(times) <= MOST_RUNS:
        raise ValueError("no times of runs")
    median = statistics.median(map(float, times))
    if not 0 <= median < math.inf:
        raise ValueError(f"{median} is no time of a run")
    return max(median, 1.0) * 1e-9, len(times)
