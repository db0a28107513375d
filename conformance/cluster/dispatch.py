"""The dispatch of cases to nodes: tasks are sent a few at a time, sent again when they are lost, each taken once."""

from __future__ import annotations

import queue
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from distributed import CancelledError, Client, Future, KilledWorker

from epcheck.conformance.cluster.connection import CONNECT_S, Report, result_of, submit
from epcheck.conformance.cluster.node import ClusterError, Line, Order
from epcheck.conformance.cluster.nodes import Nodes
from epcheck.generators.case import Case

CHUNK, SMALLEST_CHUNK = 512, 32
"""Cases in a task, at most and at least: a few seconds of work, which is what a lost node costs; and not so little
that it takes longer to send than to run."""

TASKS_EACH = 4
"""Tasks for each that can run at once, where there are enough cases: fast nodes relieve slow ones."""

AHEAD = 2
"""Tasks that are sent for each that can run at once: one that runs, one that is taken up at once."""

PATIENCE_S = 30.0
"""Seconds to wait for a node that declares a target: at the start, and when the last one is lost."""

LOOK_S = 1.0
"""Seconds between two looks at the nodes."""

LOSSES, LOSSES_ALONE = 3, 1
"""How often a task whose nodes were all lost is sent again before it is suspected; and when it ran alone."""

PARTS = 8
"""Into how many a task is split that is run alone and loses its nodes again."""

Take = Callable[[Line], None]
"""Takes the line of each record."""


@dataclass(frozen=True)
class Chunk:
    """Cases of one order that make one task.

    on: the nodes it may run on, once it is sent. losses: how often they were lost. suspect: it may be the reason.
    """

    order: Order
    cases: tuple[Case, ...]
    on: frozenset[str] = frozenset()
    losses: int = 0
    suspect: bool = False


class Dispatch:
    """The tasks of one run: sent a few at a time, sent again when they are lost, each taken once.

    Nodes may die of a case. A task that keeps losing them waits until all others are done, runs alone, so that it
    takes no other with it, and is split until the case stands alone that does it.
    """

    def __init__(
        self,
        client: Client,
        nodes: Nodes,
        cases: Sequence[Case],
        done: Collection[tuple[str, str]],
        take: Take,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._cases = cases
        self._done = done
        self._take = take
        self._waiting: dict[str, deque[Chunk]] = {}
        self._suspects: deque[Chunk] = deque()
        self._under_way: dict[str, tuple[Future[Report], Chunk]] = {}
        self._ended: queue.SimpleQueue[Future[Report]] = queue.SimpleQueue()
        self._given_up: list[str] = []
        self._looked = 0.0
        self._alone_since: dict[str, float] = {}

    def run(self, orders: Sequence[Order]) -> None:
        """Until every case is taken or given up. Raises ClusterError."""
        self._waiting = {order.candidate: self._chunks(order) for order in orders}
        try:
            while self._under_way or self._suspects or any(self._waiting.values()):
                if time.monotonic() - self._looked >= LOOK_S:
                    self._look(orders)
                for order in orders:
                    self._send_next(order)
                if self._suspects and not self._under_way and not any(self._waiting.values()):
                    self._send(self._suspects.popleft())
                with suppress(queue.Empty):
                    self._end(self._ended.get(timeout=LOOK_S))
        finally:
            with suppress(Exception):  # see Cluster.__exit__
                self._client.cancel([future for future, _ in self._under_way.values()])
        if self._given_up:
            few = ", ".join(self._given_up[:3]) + (", …" if len(self._given_up) > 3 else "")
            cases = "1 case is" if len(self._given_up) == 1 else f"{len(self._given_up)} cases are"
            raise ClusterError(f"{cases} not recorded, because every machine that ran them was lost: {few}")

    def _chunks(self, order: Order) -> deque[Chunk]:
        cases = [case for case in self._cases if (order.candidate, case.id) not in self._done]
        slots = sum(self._nodes.fit(order).values())
        size = min(CHUNK, max(SMALLEST_CHUNK, -(-len(cases) // max(1, slots * TASKS_EACH))))
        return deque(Chunk(order, tuple(cases[at : at + size])) for at in range(0, len(cases), size))

    def _look(self, orders: Sequence[Order]) -> None:
        """See who is there; send again what nobody who is there may run."""
        self._nodes.look()
        self._looked = time.monotonic()
        for key, (future, chunk) in list(self._under_way.items()):
            if not any(self._nodes.has(address) for address in chunk.on):
                del self._under_way[key]
                self._client.cancel([future])
                self._lost(chunk)
        for order in orders:
            self._check_somebody(order)

    def _check_somebody(self, order: Order) -> None:
        """Raise ClusterError when nobody has been there for what is to be done for too long."""
        name = order.candidate
        suspects = any(chunk.order == order for chunk in self._suspects)
        if self._nodes.fit(order) or not (self._waiting[name] or self._sent(name) or suspects):
            self._alone_since.pop(name, None)
        elif time.monotonic() - self._alone_since.setdefault(name, time.monotonic()) > PATIENCE_S:
            raise ClusterError(self._nodes.why_none(order))

    def _sent(self, name: str) -> int:
        return sum(chunk.order.candidate == name for _, chunk in self._under_way.values())

    def _send_next(self, order: Order) -> None:
        """As many chunks as the nodes may have before them."""
        waiting = self._waiting[order.candidate]
        room = AHEAD * sum(self._nodes.fit(order).values()) - self._sent(order.candidate)
        for _ in range(min(room, len(waiting))):
            self._send(waiting.popleft())

    def _send(self, chunk: Chunk) -> None:
        nodes = self._nodes.fit(chunk.order)
        if not nodes:
            self._again(chunk)
            return
        future = submit(self._client, chunk.order, chunk.cases, nodes)
        self._watch(future, replace(chunk, on=frozenset(nodes)))

    def _watch(self, future: Future[Report], chunk: Chunk) -> None:
        self._under_way[future.key] = future, chunk
        future.add_done_callback(self._ended.put)

    def _end(self, future: Future[Report]) -> None:
        """A task has ended, one way or another."""
        if future.key not in self._under_way:
            return  # it was cancelled
        _, chunk = self._under_way.pop(future.key)
        try:
            address, result = result_of(future)
        except TimeoutError:
            self._watch(future, chunk)
            self._looked = 0.0  # the node that holds the result may be gone
        except KilledWorker:
            self._suspect(chunk)
        except CancelledError:
            self._wait_for_scheduler()
            self._lost(chunk)
        else:
            accepted = self._nodes.hear(chunk.order, address, result)
            for line in accepted.lines if accepted else ():
                self._take(line)
            if not accepted:
                self._again(chunk)

    def _again(self, chunk: Chunk) -> None:
        if chunk.suspect:
            self._suspects.append(chunk)  # behind those that are only suspected because they were near
        else:
            self._waiting[chunk.order.candidate].appendleft(chunk)

    def _lost(self, chunk: Chunk) -> None:
        """The nodes that may run the chunk are gone."""
        if chunk.losses == (LOSSES_ALONE if chunk.suspect else LOSSES):
            self._suspect(chunk)
        else:
            self._again(replace(chunk, losses=chunk.losses + 1))

    def _suspect(self, chunk: Chunk) -> None:
        """The chunk has taken too many nodes down, or was unlucky too often."""
        self._looked = 0.0  # what is sent next must not be sent to a node that is gone
        if not chunk.suspect:
            self._again(replace(chunk, losses=0, suspect=True))
        elif len(chunk.cases) == 1:
            self._given_up.append(chunk.cases[0].id)
        else:
            size = -(-len(chunk.cases) // PARTS)
            for at in range(0, len(chunk.cases), size):
                self._again(replace(chunk, losses=0, cases=chunk.cases[at : at + size]))

    def _wait_for_scheduler(self) -> None:
        """The connection broke: Dask's client makes another, or gives up. Raises ClusterError."""
        until = time.monotonic() + 2 * CONNECT_S
        while self._client.status == "connecting" and time.monotonic() < until:
            time.sleep(LOOK_S / 10)
        if self._client.status != "running":
            raise ClusterError("lost the Dask scheduler")
