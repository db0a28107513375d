"""A run on a `dask.distributed` cluster: chunks of cases are tasks, and come back as lines of records.

A task goes to a Dask worker that declares the resource named like the candidate, and brings baseline and reference
along. The client keeps a few tasks before each machine, and decides for every task anew which machines are fit: one
that is lost, cannot run the target or is not what the others are costs time, and no case. Dask's protocol is pickle:
whoever reaches the scheduler can run code on every machine (docs/distributed.md).
"""

from __future__ import annotations

import logging
import queue
import re
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self

from distributed import CancelledError, Client, Future, KilledWorker, get_worker

from epcheck.conformance.cluster import node
from epcheck.conformance.cluster.node import Answer, ClusterError, Line, Order, Unfit
from epcheck.conformance.records.target_facts import allowing, differing_facts, joined_facts, tell_apart, varying_facts
from epcheck.conformance.scheduling.plan import Facts
from epcheck.conformance.targets.expectation import Expectation
from epcheck.generators.case import Case

SAME = ("epcheck", "onnx")
"""Packages that decide what a case is and what must come out: machines need the client's versions."""

CHUNK, SMALLEST_CHUNK = 512, 32
"""Cases in a task, at most and at least: a few seconds of work, which is what a lost machine costs; and not so little
that it takes longer to send than to run."""

TASKS_EACH = 4
"""Tasks for each that can run at once, where there are enough cases: fast machines relieve slow ones."""

AHEAD = 2
"""Tasks that are sent for each that can run at once: one that runs, one that is taken up at once."""

CONNECT_S = 10.0
"""Seconds until a scheduler must answer."""

PATIENCE_S = 30.0
"""Seconds to wait for a machine that declares a target: at the start, and when the last one is lost."""

GREETING_S = 300.0
"""Seconds until machines must have started their targets; those that are busy with other work may join later."""

RESULT_S = 15.0
"""Seconds that a result may take from its machine to here before it is asked whether the machine is still there."""

LOOK_S = 1.0
"""Seconds between two looks at the machines."""

LOSSES, LOSSES_ALONE = 3, 1
"""How often a task whose machines were all lost is sent again before it is suspected; and when it ran alone."""

PARTS = 8
"""Into how many a task is split that is run alone and loses its machines again."""

Take = Callable[[Line], None]
Greeted = Callable[[Facts], None]
_Told = tuple[str, Answer | Unfit]
"""What a task returns: the address of the machine that ran it, and what it says."""


class Cluster:
    """A Dask scheduler and its machines, as Dask workers are called here. A context manager: entering connects."""

    def __init__(
        self,
        scheduler: str,
        orders: Sequence[Order],
        say: Callable[[str], None] = lambda _: None,
        may_differ: Collection[str] = (),
    ) -> None:
        """scheduler: its address, for example `tcp://host:8786`. orders: one for each candidate. say: takes sentences
        for the user. may_differ: facts of a candidate in which its machines may differ."""
        self.orders = tuple(orders)
        self._scheduler = scheduler
        self._say = say
        self._may_differ = may_differ
        self._connection = ExitStack()
        self._machines: _Machines

    def __enter__(self) -> Self:
        """Connect. Raises ClusterError when the scheduler does not answer, when no machine declares a target within
        PATIENCE_S, or when one that does has another epcheck."""
        with ExitStack() as stack:
            stack.enter_context(_quiet())
            self._client = stack.enter_context(_connected(self._scheduler))
            self._machines = _Machines(self._client, self.orders, self._may_differ)
            self._wait_for_machines()
            self._connection = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the machines end their workers, and disconnect."""
        with self._connection, suppress(Exception):  # what Dask raises when the scheduler is gone has no common class
            for order in self.orders:
                machines = [*self._machines.fit(order)]
                self._client.run(_dismiss, order.run, workers=machines, wait=False, on_error="ignore")

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
        """Sentences for the reader of the report: machines that were left out, oracles that were not alike on all."""
        return self._machines.notes

    def expectations(self) -> Iterator[tuple[str, Expectation]]:
        """(candidate, expectation) of all that the machines know."""
        return self._machines.expectations()

    def run(self, cases: Sequence[Case], done: Collection[tuple[str, str]], take: Take, greeted: Greeted) -> None:
        """Run the cases on every candidate; `take` gets the line of each record, once, as tasks come back.

        done: (candidate, case id) pairs that are recorded already. greeted: takes the facts once the machines have
        started their targets. Raises ClusterError when machines do not have one and the same candidate, when none is
        left, when the scheduler is lost, and, after all the others have run, for cases that took every machine down.
        """
        self._greet()
        self._machines.say = self._say
        greeted(self._machines.facts)
        _Dispatch(self._client, self._machines, cases, done, take).run(self.orders)

    def _wait_for_machines(self) -> None:
        until = time.monotonic() + PATIENCE_S
        self._machines.look()
        if any(not self._machines.fit(order) for order in self.orders):
            self._say(f"Waiting up to {PATIENCE_S:g} s for machines that declare the targets")
        while missing := [order for order in self.orders if not self._machines.fit(order)]:
            if self._machines.left_out or time.monotonic() > until:
                raise ClusterError(self._machines.why_none(missing[0]))
            time.sleep(LOOK_S / 2)
            self._machines.look()
        self._refuse_unfit()

    def _refuse_unfit(self) -> None:
        """At the start there is somebody who can see to a machine that is not fit."""
        if self._machines.left_out:
            raise ClusterError(self._machines.left_out[0])

    def _greet(self) -> None:
        """Start the targets on all machines, and hear what they are."""
        machines = self._machines
        asked = {_submit(self._client, o, (), [at]): (o, at) for o in self.orders for at in machines.fit(o)}
        silent = {order.candidate: f"none has answered within {GREETING_S:g} s" for order in self.orders}
        until = time.monotonic() + GREETING_S
        while asked and time.monotonic() < until:
            time.sleep(LOOK_S / 10)
            machines.look()
            for future, (order, address) in list(asked.items()):
                if future.done():
                    try:
                        machines.hear(order, *_result(future))
                    except (KilledWorker, CancelledError, TimeoutError) as error:  # it may come back as another
                        silent[order.candidate] = f"{address}: {type(error).__name__}: {_words(error)}"
                elif not machines.has(address):
                    silent[order.candidate] = f"{address} is gone"
                if future.done() or not machines.has(address):
                    del asked[future]
        self._client.cancel(list(asked))
        self._refuse_unfit()
        for order in self.orders:
            if not machines.is_known(order):
                raise ClusterError(f"no machine has started '{order.candidate}': {silent[order.candidate]}")


class _Machines:
    """Who is there, who is fit for which order, and what they have told of themselves.

    say: takes the sentence when a machine is left out.
    """

    def __init__(self, client: Client, orders: Sequence[Order], may_differ: Collection[str]) -> None:
        self.say: Callable[[str], None] = lambda _: None
        self._client = client
        self._orders = orders
        self._may_differ = may_differ
        self._there: Mapping[str, Mapping[str, Any]] = {}
        self._checked: set[str] = set()
        self._left_out: dict[tuple[str, str], str] = {}
        self._incidents: dict[str, None] = {}
        self._candidates: dict[str, list[Mapping[str, str]]] = {order.candidate: [] for order in orders}
        self._oracles: dict[str, list[Mapping[str, str]]] = {}
        self._expectations: dict[str, dict[Expectation, None]] = {order.candidate: {} for order in orders}

    @property
    def facts(self) -> dict[str, dict[str, str]]:
        """Target name -> what was told of it."""
        names = dict.fromkeys([*self._candidates, *self._oracles])
        return {name: joined_facts([*self._candidates.get(name, ()), *self._oracles.get(name, ())]) for name in names}

    @property
    def left_out(self) -> tuple[str, ...]:
        """Which machines are not fit, and why."""
        return tuple(dict.fromkeys(self._left_out.values()))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader of the report."""
        return (
            *(f"Left out: {why}" for why in self.left_out),
            *self._incidents,
            *(
                f"The target {name} is not the same on all machines; it differs in {', '.join(facts)}"
                for name, told in self._oracles.items()
                if (facts := varying_facts(told))
            ),
        )

    def expectations(self) -> Iterator[tuple[str, Expectation]]:
        return ((name, one) for name, known in self._expectations.items() for one in known)

    def look(self) -> None:
        """See who is there now. Raises ClusterError when the scheduler is gone."""
        with _asking():  # Client.scheduler_info answers from a cache that Dask empties of machines every few seconds
            self._there = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        self._check_versions()

    def has(self, address: str) -> bool:
        """Whether a machine was there at the last look."""
        return address in self._there

    def is_known(self, order: Order) -> bool:
        """Whether any machine has told what the candidate is."""
        return bool(self._candidates[order.candidate])

    def fit(self, order: Order) -> dict[str, int]:
        """The machines that an order may be given to: address -> how many tasks it runs at once."""
        name = order.candidate
        slots = {
            address: min(int(machine["resources"].get(name, 0)), machine["nthreads"])
            for address, machine in self._there.items()
            if (name, address) not in self._left_out
        }
        return {address: count for address, count in slots.items() if count}

    def why_none(self, order: Order) -> str:
        """Why no machine is fit for an order, and what to do."""
        left_out = [why for (name, _), why in self._left_out.items() if name == order.candidate]
        if left_out:
            return f"no machine is left for '{order.candidate}': {'; '.join(left_out)}"
        return (
            f"no Dask worker declares the resource '{order.candidate}'; start one where the target is: "
            f'dask worker {self._client.scheduler.address} --nthreads 1 --resources "{order.candidate}=1"'
        )

    def hear(self, order: Order, address: str, said: Answer | Unfit) -> Answer | None:
        """The answer of a machine; None, and it is left out from now on, when it is not fit."""
        if isinstance(said, Unfit):
            why = said.why
        elif not (why := self._recognise(order, said)):
            return said
        self._leave_out(order.candidate, address, f"{said.host} ({address}): {why}")
        return None

    def _recognise(self, order: Order, answer: Answer) -> str:
        """Take down what a machine told; why its candidate is not that of the others, if it is not."""
        name = order.candidate
        told = self._candidates[name]
        different = differing_facts(told[0], answer.facts[name], self._may_differ) if told else ()
        if different:
            return (
                f"its '{name}' is not what other machines have: {tell_apart(different)}; give its target and resource "
                f"another name, or say {allowing(different)}"
            )
        for target, facts in answer.facts.items():
            known = told if target == name else self._oracles.setdefault(target, [])
            if facts not in known:
                known.append(facts)
        self._expectations[name].update(dict.fromkeys(answer.expectations))
        self._incidents.update(dict.fromkeys(answer.notes))
        return ""

    def _leave_out(self, name: str, address: str, why: str) -> None:
        if (name, address) not in self._left_out:
            self._left_out[name, address] = why
            self.say(f"Left out: {why}")

    def _check_versions(self) -> None:
        """Leave machines out, when they are first seen, whose suite is not ours."""
        new = [(o.candidate, at) for o in self._orders for at in self.fit(o) if at not in self._checked]
        if not new:
            return
        ours = {package: version(package) for package in SAME}
        with _asking():
            told = self._client.get_versions(packages=list(SAME))["workers"]
        for name, address in new:
            if not isinstance(said := told.get(address), dict):
                continue  # it did not answer: next time
            self._checked.add(address)
            for package, wanted in ours.items():
                if (has := said["packages"].get(package)) != wanted:
                    why = f"it has {package} {has}" if has else f"it has no {package}"
                    self._leave_out(name, address, f"{address}: {why}, and this machine {wanted}")


@dataclass(frozen=True)
class _Chunk:
    """Cases of one order that make one task.

    on: the machines it may run on, once it is sent. losses: how often they were lost. suspect: it may be the reason.
    """

    order: Order
    cases: tuple[Case, ...]
    on: frozenset[str] = frozenset()
    losses: int = 0
    suspect: bool = False


class _Dispatch:
    """The tasks of one run: sent a few at a time, sent again when they are lost, each taken once.

    Machines may die of a case. A task that keeps losing them waits until all others are done, runs alone, so that it
    takes no other with it, and is split until the case stands alone that does it.
    """

    def __init__(
        self,
        client: Client,
        machines: _Machines,
        cases: Sequence[Case],
        done: Collection[tuple[str, str]],
        take: Take,
    ) -> None:
        self._client = client
        self._machines = machines
        self._cases = cases
        self._done = done
        self._take = take
        self._waiting: dict[str, deque[_Chunk]] = {}
        self._suspects: deque[_Chunk] = deque()
        self._under_way: dict[str, tuple[Future[_Told], _Chunk]] = {}
        self._ended: queue.SimpleQueue[Future[_Told]] = queue.SimpleQueue()
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
            raise ClusterError(f"{cases} not recorded, because every machine that took it alone was lost: {few}")

    def _chunks(self, order: Order) -> deque[_Chunk]:
        cases = [case for case in self._cases if (order.candidate, case.id) not in self._done]
        slots = sum(self._machines.fit(order).values())
        size = min(CHUNK, max(SMALLEST_CHUNK, -(-len(cases) // max(1, slots * TASKS_EACH))))
        return deque(_Chunk(order, tuple(cases[at : at + size])) for at in range(0, len(cases), size))

    def _look(self, orders: Sequence[Order]) -> None:
        """See who is there; send again what nobody who is there may run."""
        self._machines.look()
        self._looked = time.monotonic()
        for key, (future, chunk) in list(self._under_way.items()):
            if not any(self._machines.has(address) for address in chunk.on):
                del self._under_way[key]
                self._client.cancel([future])
                self._lost(chunk)
        for order in orders:
            self._check_somebody(order)

    def _check_somebody(self, order: Order) -> None:
        """Raise ClusterError when nobody has been there for what is to be done for too long."""
        name = order.candidate
        suspects = any(chunk.order == order for chunk in self._suspects)
        if self._machines.fit(order) or not (self._waiting[name] or self._sent(name) or suspects):
            self._alone_since.pop(name, None)
        elif time.monotonic() - self._alone_since.setdefault(name, time.monotonic()) > PATIENCE_S:
            raise ClusterError(self._machines.why_none(order))

    def _sent(self, name: str) -> int:
        return sum(chunk.order.candidate == name for _, chunk in self._under_way.values())

    def _send_next(self, order: Order) -> None:
        """As many chunks as the machines may have before them."""
        waiting = self._waiting[order.candidate]
        room = AHEAD * sum(self._machines.fit(order).values()) - self._sent(order.candidate)
        for _ in range(min(room, len(waiting))):
            self._send(waiting.popleft())

    def _send(self, chunk: _Chunk) -> None:
        machines = self._machines.fit(chunk.order)
        if not machines:
            self._again(chunk)
            return
        future = _submit(self._client, chunk.order, chunk.cases, machines)
        self._watch(future, replace(chunk, on=frozenset(machines)))

    def _watch(self, future: Future[_Told], chunk: _Chunk) -> None:
        self._under_way[future.key] = future, chunk
        future.add_done_callback(self._ended.put)

    def _end(self, future: Future[_Told]) -> None:
        """A task has ended, one way or another."""
        if future.key not in self._under_way:
            return  # it was cancelled
        _, chunk = self._under_way.pop(future.key)
        try:
            address, said = _result(future)
        except TimeoutError:
            self._watch(future, chunk)
            self._looked = 0.0  # the machine that holds the result may be gone
        except KilledWorker:
            self._suspect(chunk)
        except CancelledError:
            self._wait_for_scheduler()
            self._lost(chunk)
        else:
            answer = self._machines.hear(chunk.order, address, said)
            for line in answer.lines if answer else ():
                self._take(line)
            if not answer:
                self._again(chunk)

    def _again(self, chunk: _Chunk) -> None:
        if chunk.suspect:
            self._suspects.append(chunk)  # behind those that are only suspected because they were near
        else:
            self._waiting[chunk.order.candidate].appendleft(chunk)

    def _lost(self, chunk: _Chunk) -> None:
        """The machines that may run the chunk are gone."""
        if chunk.losses == (LOSSES_ALONE if chunk.suspect else LOSSES):
            self._suspect(chunk)
        else:
            self._again(replace(chunk, losses=chunk.losses + 1))

    def _suspect(self, chunk: _Chunk) -> None:
        """The chunk has taken too many machines down, or was unlucky too often."""
        self._looked = 0.0  # what is sent next must not be sent to a machine that is gone
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
            raise ClusterError("the Dask scheduler is lost")


def _task(order: Order, cases: tuple[Case, ...]) -> _Told:
    return get_worker().address, node.work(order, cases)


async def _dismiss(run: str) -> None:  # a coroutine, for which nobody has to wait
    node.dismiss(run)


def _submit(client: Client, order: Order, cases: tuple[Case, ...], machines: Collection[str]) -> Future[_Told]:
    wanted = {"workers": [*machines], "resources": {order.candidate: 1}}
    with _asking():
        future: Future[_Told] = client.submit(_task, order, cases, pure=False, **wanted)
    return future


def _result(future: Future[_Told]) -> _Told:
    """What a task returned. Raises KilledWorker, TimeoutError, CancelledError; ClusterError for any other fault."""
    try:
        told: _Told = future.result(timeout=RESULT_S)
    except (KilledWorker, TimeoutError, CancelledError):
        raise
    except Exception as error:
        raise ClusterError(f"a task failed on the cluster: {type(error).__name__}: {_words(error)}") from error
    return told


@contextmanager
def _asking() -> Iterator[None]:
    """Raises ClusterError for whatever Dask raises when the scheduler is gone."""
    try:
        yield
    except Exception as error:
        raise ClusterError(f"the Dask scheduler is lost: {type(error).__name__}: {_words(error)}") from error


@contextmanager
def _connected(scheduler: str) -> Iterator[Client]:
    """A client of the scheduler. Raises ClusterError."""
    if not re.fullmatch(r"(tcp|tls|wss?)://[^/\s]+:\d+", scheduler):
        raise ClusterError(f"'{scheduler}' is no address of a Dask scheduler; write for example tcp://host:8786")
    try:
        client = Client(scheduler, timeout=CONNECT_S, set_as_default=False, name="epcheck")
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"the Dask scheduler '{scheduler}' does not answer: {_words(error)}") from error
    with client:
        yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask logs what epcheck handles, to the terminal; its loggers have levels of their own, and asyncio's is for the
    exceptions of tasks that Dask has forgotten."""
    known = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    names = ("asyncio", "distributed", *known)
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
