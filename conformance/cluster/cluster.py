"""A cluster: chunks of cases are tasks on a `dask.distributed` cluster, and come back as lines of records.

A task goes to a Dask worker that declares the resource named like the candidate, and brings baseline and reference
along. The client keeps a few tasks before each node, and decides for every task anew which nodes are fit: one
that is lost, cannot run the target or is not what the others are costs time, and no case. Dask's protocol is pickle:
whoever reaches the scheduler can run code on every node (docs/distributed.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self

from distributed import CancelledError, KilledWorker

from epcheck.conformance.cluster.connection import connect, dismiss, quiet, result_of, submit, words_of
from epcheck.conformance.cluster.dispatch import LOOK_S, PATIENCE_S, Dispatch, Take
from epcheck.conformance.cluster.node import ClusterError, Order
from epcheck.conformance.cluster.nodes import Nodes
from epcheck.conformance.scheduling.plan import Facts
from epcheck.conformance.targets.expectation import Expectation
from epcheck.generators.case import Case

START_S = 300.0
"""Seconds until nodes must have started their targets; those that are busy with other work may join later."""

TakeFacts = Callable[[Facts], None]
"""Takes the facts of all targets."""


class Cluster:
    """A Dask scheduler and its nodes, as Dask workers are called here. A context manager: entering connects."""

    def __init__(
        self,
        scheduler: str,
        orders: Sequence[Order],
        say: Callable[[str], None] = lambda _: None,
        may_differ: Collection[str] = (),
    ) -> None:
        """scheduler: its address, for example `tcp://host:8786`. orders: one for each candidate. say: takes sentences
        for the user. may_differ: facts of a candidate in which its nodes may differ."""
        self.orders = tuple(orders)
        self._scheduler = scheduler
        self._say = say
        self._may_differ = may_differ
        self._connection = ExitStack()
        self._nodes: Nodes

    def __enter__(self) -> Self:
        """Connect. Raises ClusterError when the scheduler does not answer, when no node declares a target within
        PATIENCE_S, or when one that does has another epcheck."""
        with ExitStack() as stack:
            stack.enter_context(quiet())
            self._client = stack.enter_context(connect(self._scheduler))
            self._nodes = Nodes(self._client, self.orders, self._may_differ)
            self._wait_for_nodes()
            self._connection = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the nodes end their workers, and disconnect."""
        with self._connection, suppress(Exception):  # what Dask raises when the scheduler is gone has no common class
            for order in self.orders:
                nodes = [*self._nodes.fit(order)]
                self._client.run(dismiss, order.run, workers=nodes, wait=False, on_error="ignore")

    @property
    def candidates(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(order.candidate for order in self.orders)

    @property
    def baseline(self) -> str | None:
        """Its name."""
        return self.orders[0].baseline

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader of the report: nodes that were left out, oracles that were not alike on all."""
        return self._nodes.notes

    def expectations(self) -> Iterator[tuple[str, Expectation]]:
        """(candidate, expectation) of all that apply on a node."""
        return self._nodes.expectations()

    def run(self, cases: Sequence[Case], done: Collection[tuple[str, str]], take: Take, take_facts: TakeFacts) -> None:
        """Run the cases on every candidate; `take` gets the line of each record, once, as tasks come back.

        done: (candidate, case id) pairs that are recorded already. take_facts: takes the facts once the nodes have
        started their targets. Raises ClusterError when nodes do not have one and the same candidate, when none is
        left, when the scheduler is lost, and, after all the others have run, for cases that took every node down.
        """
        self._start_targets()
        self._nodes.say = self._say
        take_facts(self._nodes.facts)
        Dispatch(self._client, self._nodes, cases, done, take).run(self.orders)

    def _wait_for_nodes(self) -> None:
        """Until each candidate has a node that declares it. Raises ClusterError."""
        until = time.monotonic() + PATIENCE_S
        self._nodes.look()
        if any(not self._nodes.fit(order) for order in self.orders):
            self._say(f"Waiting up to {PATIENCE_S:g} s for machines that declare the targets")
        while missing := [order for order in self.orders if not self._nodes.fit(order)]:
            if self._nodes.left_out or time.monotonic() > until:
                raise ClusterError(self._nodes.why_none(missing[0]))
            time.sleep(LOOK_S / 2)
            self._nodes.look()
        self._refuse_unfit()

    def _refuse_unfit(self) -> None:
        """At the start there is somebody who can see to a node that is not fit."""
        if self._nodes.left_out:
            raise ClusterError(self._nodes.left_out[0])

    def _start_targets(self) -> None:
        """Start the targets on all nodes, and hear what they are."""
        nodes = self._nodes
        asked = {submit(self._client, o, (), [at]): (o, at) for o in self.orders for at in nodes.fit(o)}
        silent = {order.candidate: f"none has responded within {START_S:g} s" for order in self.orders}
        until = time.monotonic() + START_S
        while asked and time.monotonic() < until:
            time.sleep(LOOK_S / 10)
            nodes.look()
            for future, (order, address) in list(asked.items()):
                if future.done():
                    try:
                        nodes.hear(order, *result_of(future))
                    except (KilledWorker, CancelledError, TimeoutError) as error:  # it may come back as another
                        silent[order.candidate] = f"{address}: {type(error).__name__}: {words_of(error)}"
                elif not nodes.has(address):
                    silent[order.candidate] = f"{address} is gone"
                if future.done() or not nodes.has(address):
                    del asked[future]
        self._client.cancel(list(asked))
        self._refuse_unfit()
        for order in self.orders:
            if not nodes.is_known(order):
                raise ClusterError(f"no machine has started '{order.candidate}': {silent[order.candidate]}")
