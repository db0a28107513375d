"""Requests: how one is encoded, and how its answer is waited for where nothing else happens meanwhile."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from typing import Any

from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers import heartbeat
from epcheck.conformance.workers.client import WorkerClient, WorkerLost
from epcheck.conformance.workers.process import FrameReceived
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.session_options import session_options

POLL_S = 0.2
"""How often deadline and memory are looked at while an answer is awaited, in seconds."""

Feed = tuple[str, str, tuple[int, ...], bytes]
"""A tensor as it travels: name, numpy dtype name, shape, little-endian bytes."""


def run_request(
    name: str,
    target: Target,
    model: bytes,
    feeds: Sequence[Feed],
    outputs: Sequence[str] = (),
    place: bool = False,
    bodies: bool = False,
) -> list[bytes]:
    """The frame that has a worker of the target run a model, or what stands in its place.

    name: the request's `id`. outputs: the names of the model's. place: only ask on which provider each node goes.
    bodies: have the kernels of other providers named, too, that run in graphs which are attributes.
    """
    header: dict[str, Any] = {
        "op": "run",
        "id": name,
        **session_options(target),
        "place": place,
        "bodies": bodies,
        "outputs": outputs,
    }
    described = [("", "uint8", (len(model),)), *(feed[:3] for feed in feeds)]
    return protocol.frame(header, described, [model, *(data for _, _, _, data in feeds)])


def wait_until_ready(client: WorkerClient) -> bool:
    """Start a worker unless there is one, and wait for its handshake; whether it was started. Raises TargetDown."""
    started = client.start()
    while not client.is_ready:
        _next(client)
    return started


def request(client: WorkerClient, name: str, frame: list[bytes]) -> FrameReceived | WorkerLost:
    """Send a request to a worker that is ready and has no other, and wait for its answer."""
    client.send(name, frame)
    client.flush()
    while True:
        if (answer := _next(client)) is not None:
            return answer


def _next(client: WorkerClient) -> FrameReceived | WorkerLost | None:
    """What the next event is to the client; it is watched while there is none."""
    heartbeat.beat()
    try:
        event = client.events.get(timeout=POLL_S)
    except queue.Empty:
        return client.watch(time.monotonic())
    return client.handle(event) if client.owns(event) else None
