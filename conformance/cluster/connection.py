"""The connection to a Dask scheduler: tasks in, reports of nodes out, and one error for all that goes wrong."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from distributed import CancelledError, Client, Future, KilledWorker, get_worker

from epcheck.conformance.cluster import node
from epcheck.conformance.cluster.node import ClusterError, Order, TaskResult, Unfit
from epcheck.generators.case import Case

CONNECT_S = 10.0
"""Seconds until a scheduler must answer."""

RESULT_S = 15.0
"""Seconds that a result may take from its node to here before it is asked whether the node is still there."""

Report = tuple[str, TaskResult | Unfit]
"""What a task returns: the address of the node that ran it, and what came of it."""


def _task(order: Order, cases: tuple[Case, ...]) -> Report:
    return get_worker().address, node.work(order, cases)


async def dismiss(run: str) -> None:
    """Have a node end the workers of a run. A coroutine, for which nobody has to wait."""
    node.dismiss(run)


def submit(client: Client, order: Order, cases: tuple[Case, ...], nodes: Collection[str]) -> Future[Report]:
    """Send cases to one of these nodes. Raises ClusterError when the scheduler is gone."""
    wanted = {"workers": [*nodes], "resources": {order.candidate: 1}}
    with asking():
        future: Future[Report] = client.submit(_task, order, cases, pure=False, **wanted)
    return future


def result_of(future: Future[Report]) -> Report:
    """What a task returned. Raises KilledWorker, TimeoutError, CancelledError; ClusterError for any other fault."""
    try:
        report: Report = future.result(timeout=RESULT_S)
    except (KilledWorker, TimeoutError, CancelledError):
        raise
    except Exception as error:
        raise ClusterError(f"a task failed on the cluster: {type(error).__name__}: {words_of(error)}") from error
    return report


@contextmanager
def asking() -> Iterator[None]:
    """Raises ClusterError for whatever Dask raises when the scheduler is gone."""
    try:
        yield
    except Exception as error:
        raise ClusterError(f"lost the Dask scheduler: {type(error).__name__}: {words_of(error)}") from error


@contextmanager
def connect(scheduler: str) -> Iterator[Client]:
    """A client of the scheduler. Raises ClusterError."""
    if not re.fullmatch(r"(tcp|tls|wss?)://[^/\s]+:\d+", scheduler):
        raise ClusterError(f"'{scheduler}' is not the address of a Dask scheduler; write for example tcp://host:8786")
    try:
        client = Client(scheduler, timeout=CONNECT_S, set_as_default=False, name="epcheck")
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"no response from the Dask scheduler '{scheduler}': {words_of(error)}") from error
    with client:
        yield client


@contextmanager
def quiet() -> Iterator[None]:
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


def words_of(error: BaseException) -> str:
    """What an error says, on one line; its type where it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__
