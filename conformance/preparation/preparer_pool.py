"""Cases on their way to being prepared: from the cache, by preparer processes, or here while there are none. A preparer
is a worker whose backend is `rows`, so it is started, jailed, supervised and ended like any other.

A case of a folder is a stranger's: it is prepared by preparers alone, and one that takes too long or too much memory
there becomes an UnbuiltCase.
"""

from __future__ import annotations

import pickle
import queue
import sys
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from epcheck.conformance.cache.cache import Cache
from epcheck.conformance.cache.row_groups import UNREADABLE, RowGroups, group_of
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase, PreparedRow, UnbuiltCase
from epcheck.conformance.targets.target import MEBIBYTE, Target
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import Event, FrameReceived, ProcessExited, WorkerProcess, describe_exit
from epcheck.conformance.workers.request import run_request
from epcheck.generators import suite
from epcheck.generators.case import Case

LOOKED_UP = 256
"""Cases that are looked up in the cache together."""

CHUNK = 64
"""Cases that a preparer prepares at once: some 20 ms."""

SLICE, SLICE_S = 8, 0.1
"""Cases that are prepared here before something else gets its turn, and the seconds after which none is begun."""

SLOW_S = 0.05
"""Seconds of a slice that are long for a worker that waits until its answer is read: it looks as if it hung."""

FEW = 8
"""Cases of a stranger that a preparer gets at once."""

WORTH_PREPARERS = 512
"""Cases that have to be prepared before preparers are started, which takes them about as long as 1,000 cases here."""

DEADLINE_S = 120.0
"""Seconds that a preparer may take for a chunk, its start included; it takes a ten-thousandth."""

PREPARER = Target(
    "preparation", (sys.executable,), ("python:epcheck.conformance.preparation.preparer:rows",), forks=True,
    jail=True, memory_bytes=2048 * MEBIBYTE,
)  # fmt: skip

_Chunk = tuple[Case, ...]
_ROWS = msgspec.msgpack.Decoder(list[PreparedRow | dict[str, str]])


class PreparerPool:
    """Takes cases in with `add`, has them ready in `ready`, in no particular order."""

    def __init__(
        self, cache: Cache, events: queue.SimpleQueue[Event], idle_workers: IdleWorkers, preparers: int
    ) -> None:
        """preparers: processes at most."""
        self.is_slow = False
        self._have_answered = False
        self.ready: deque[PreparedCase | UnbuiltCase] = deque()
        self._rows = RowGroups(cache, "prepared", str, PreparedRow)
        self._events = events
        self._idle_workers = idle_workers
        self._most = preparers
        self._new: list[Case] = []
        self._missing: deque[Case] = deque()
        self._here: deque[Case] = deque()
        self._strange: deque[_Chunk] = deque()
        self._preparers: dict[WorkerProcess, _Chunk] = {}
        self._idle: list[WorkerProcess] = []
        self._since: dict[WorkerProcess, float] = {}

    @property
    def has_work(self) -> bool:
        """Whether `prepare_some` has anything to do: what no preparer can take, and what none takes yet or any more."""
        have_preparers = self._have_answered and bool(self._preparers or self._idle)
        return bool(self._here) or (bool(self._missing) and not (have_preparers and len(self._missing) > CHUNK))

    @property
    def is_busy(self) -> bool:
        """Whether more will be ready some time, though nothing is added."""
        return self.has_work or bool(self._preparers or self._strange)

    def add(self, case: Case) -> None:
        """Take a case in."""
        self._new.append(case)
        if len(self._new) >= LOOKED_UP:
            self.look_up()

    def look_up(self) -> None:
        """See which of the cases that were taken in the cache has."""
        new, self._new = self._new, []
        cases = [case for case in new if not case.folder]
        strange = [case for case in new if case.folder]
        self._strange.extend(tuple(strange[at : at + FEW]) for at in range(0, len(strange), FEW))
        groups = [group_of(case) if suite.is_own(case) else "" for case in cases]
        kept = self._rows.of(name for name in groups if name)
        for case, name in zip(cases, groups, strict=True):
            if not name:
                self._here.append(case)
            elif name not in kept or not self._read(case, kept[name].get(case.id)):
                self._missing.append(case)

    def advance(self) -> None:
        """Let preparers take what is missing."""
        have = len(self._preparers) + len(self._idle)
        if (have < self._most and len(self._missing) >= WORTH_PREPARERS) or (self._strange and not have):
            self._idle.append(self._idle_workers.take(PREPARER, self._events))
        while self._idle and (self._strange or len(self._missing) > CHUNK):
            if self._strange:
                self._send(self._strange.popleft())
                continue
            chunk = tuple(self._missing.popleft() for _ in range(CHUNK))
            try:
                self._send(chunk)
            except (pickle.PicklingError, AttributeError, TypeError):  # an operator that is made of lambdas
                self._here.extend(chunk)

    def _send(self, chunk: _Chunk) -> None:
        request = _request(chunk)
        preparer = self._idle.pop()
        self._preparers[preparer] = chunk
        self._since[preparer] = time.monotonic()
        preparer.send(request)
        preparer.flush()

    def prepare_some(self) -> None:
        """Prepare a few of what is missing; `is_slow` is then whether that took long."""
        done: list[PreparedCase | UnbuiltCase] = []
        started = time.monotonic()
        while len(done) < SLICE and self.has_work and (not done or time.monotonic() < started + SLICE_S):
            done.append(prepared_case.prepare((self._here or self._missing).popleft()))
        self.is_slow = time.monotonic() - started > SLOW_S
        self.ready.extend(done)
        for prepared in _to_keep(done):
            self._rows.put(group_of(prepared.case), prepared.case.id, prepared_case.to_row(prepared))

    def owns(self, event: Event) -> bool:
        """Whether the event comes from one of the preparers."""
        return event.source in self._preparers or event.source in self._idle

    def handle(self, event: Event) -> None:
        """Take what a preparer says; what a lost one was given is prepared by others."""
        preparer = event.source
        match event:
            case FrameReceived(header={"op": "hello"}):
                return
            case FrameReceived(header={"stage": "done"}, body=body) if rows := self._decode(preparer, body):
                self._have_answered = True
                self._idle.append(preparer)
                for case, row in zip(self._preparers.pop(preparer), rows, strict=True):
                    self._take(case, row)
            case ProcessExited(returncode=code):
                self._give_up(preparer, preparer.killed_because or describe_exit(code))
            case _:
                self._give_up(preparer, "it sent an unexpected response")

    def _decode(self, preparer: WorkerProcess, body: bytes) -> list[Any]:
        """The rows of an answer; none where it is not one of what the preparer was given."""
        try:
            rows: list[Any] = _ROWS.decode(body)
        except UNREADABLE:
            return []
        return rows if len(rows) == len(self._preparers.get(preparer, ())) else []

    def _take(self, case: Case, row: Any) -> None:
        if isinstance(row, dict):
            self.ready.append(UnbuiltCase(case, row.get("why", ""), row.get("log", "")))
        elif not self._read(case, row):
            self._here.append(case)
        elif not case.folder:
            self._rows.put(group_of(case), case.id, row)

    def watch(self) -> None:
        """Give up preparers that do not answer within DEADLINE_S, or take more memory than they may."""
        overdue = time.monotonic() - DEADLINE_S
        for preparer in [busy for busy in self._preparers if self._since[busy] < overdue]:
            self._give_up(preparer, f"it took more than {DEADLINE_S:g} s")
        for preparer in [busy for busy, chunk in self._preparers.items() if chunk[0].folder]:
            if preparer.resident_bytes() > PREPARER.memory_bytes:
                self._give_up(preparer, f"it took more than {PREPARER.memory_bytes // MEBIBYTE:,} MiB of memory")

    def _give_up(self, preparer: WorkerProcess, why: str) -> None:
        """What it was given is prepared here; a stranger's cases one by one, and what is lost alone is told."""
        preparer.kill("it failed to prepare cases")
        chunk = self._preparers.pop(preparer, ())
        self._idle = [other for other in self._idle if other is not preparer]
        if not any(case.folder for case in chunk):
            self._missing.extend(chunk)
            self._most = 0
        elif len(chunk) > 1:
            self._strange.extend((case,) for case in chunk)
        else:
            self.ready.append(UnbuiltCase(chunk[0], f"the case cannot be built: {why}", preparer.log_tail()))

    def listen(self, wanted: bool) -> None:
        """Whether preparers' answers come in now."""
        for preparer in (*self._preparers, *self._idle):
            preparer.listen(wanted)

    def close(self) -> None:
        """End the preparers, or keep them for the next run."""
        while self._idle:
            self._idle_workers.give(self._idle.pop())
        self.kill()

    def kill(self) -> None:
        """End the preparers at once; what was prepared is kept."""
        self._rows.write()
        for preparer in (*self._preparers, *self._idle):
            preparer.kill("the run is over")

    def _read(self, case: Case, row: Any) -> bool:
        """Whether the row is the case's; then it is ready."""
        try:
            self.ready.append(prepared_case.from_row(case, row))
        except ValueError:
            return False
        return True


def _request(chunk: _Chunk) -> list[bytes]:
    return run_request("", PREPARER, pickle.dumps(list(chunk), pickle.HIGHEST_PROTOCOL), (), ["rows"])


def _to_keep(done: Iterable[PreparedCase | UnbuiltCase]) -> list[PreparedCase]:
    return [p for p in done if isinstance(p, PreparedCase) and suite.is_own(p.case)]
