"""What a worker reports of a session: the header of a `done` frame, checked."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

DONE, PLACED, FEED, CREATE, RUN = "done", "placed", "feed", "create", "run"
"""Stages: the session has run; it was created to see where its nodes go; a feed is none that a worker can take, so that
there was no session; it failed at its creation; or at its run."""

SUCCEEDED = (DONE, PLACED)

STEPS = ("create", "run", "repeat", "timing")
"""Steps of a `model` request, each of which a worker reports as it begins, once at most."""

MAX_MESSAGE = 8192
"""Characters of a worker's message that are read. Ours sends half as many."""

LOSSES = {
    "887A0005": "removed: unplugged, disabled, its driver updated, or reset after it did not respond (TDR)",
    "887A0006": "hung: it did not respond to commands that it was sent, and the system reset it (TDR)",
    "887A0007": "reset by the system, because of commands of another program or of this one",
    "887A0020": "given up by its driver, which had an internal error",
}
"""HRESULT -> why the device is gone, as Microsoft documents DXGI_ERROR ("DXGI_ERROR", Win32 documentation)."""

LOSS_NAMES = {
    "DXGI_ERROR_DEVICE_REMOVED": "887A0005",
    "DXGI_ERROR_DEVICE_HUNG": "887A0006",
    "DXGI_ERROR_DEVICE_RESET": "887A0007",
    "DXGI_ERROR_DRIVER_INTERNAL_ERROR": "887A0020",
}
"""Their names in winerror.h."""

DEVICE_LOST = re.compile(rf"{'|'.join([*LOSSES, *LOSS_NAMES])}|CUDA failure 7(?:00|02|1[04-9])\b", re.IGNORECASE)
"""How a provider reports that the device is gone: every later session of the process fails, too. CUDA's codes are those
of `cudaError_t` after which a process has to be started again (driver_types.h): 700 is an illegal memory access."""

OUT_OF_MEMORY = re.compile(r"8007000E|bad[ _]alloc|Failed to allocate memory", re.IGNORECASE)
"""How a provider reports that there is no memory left; 8007000E is E_OUTOFMEMORY."""


class SessionResult(NamedTuple):
    """stage: as above. message: why it failed, on one line; empty otherwise. assignment: [provider, operator, node] of
    each node, None where the runtime keeps no record. create_s, run_s: seconds, None where it did not get there.
    busy_s, cpu_s: seconds that the worker spent on the request, and that processors did for it. unwritten,
    repeat_differs: names of outputs."""

    stage: str
    message: str
    assignment: Any
    create_s: float | None
    run_s: float | None
    busy_s: float
    cpu_s: float
    unwritten: tuple[str, ...]
    repeat_differs: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether the session ended with an error."""
        return self.stage not in SUCCEEDED

    def cost_s(self, on_cpu: bool) -> float:
        """What the session cost, in seconds. on_cpu: it computed there. Where others want the CPU, too, long sessions
        wait for their turn at it and short ones do not, so what counts is the time of processors; Windows counts that
        in steps of 16 ms."""
        return self.cpu_s if on_cpu and sys.platform != "win32" else self.busy_s

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether it failed because no memory was left."""
        return OUT_OF_MEMORY.search(self.message) is not None


def session_result(header: Mapping[str, Any]) -> SessionResult:
    """The result that a header holds. Raises KeyError, TypeError or ValueError when it holds none."""
    stage = str(header["stage"])[:MAX_MESSAGE]
    return SessionResult(
        stage,
        "" if stage in SUCCEEDED else failure_message(header),
        header.get("assignment"),
        _if_any(header.get("create_s")),
        _if_any(header.get("run_s")),
        seconds(header.get("busy_s") or 0.0),
        seconds(header.get("cpu_s") or 0.0),
        _names(header.get("unwritten")),
        _names(header.get("repeat_differs")),
    )


def failure_message(header: Mapping[str, Any]) -> str:
    """The message of a session that failed, on one line, at most MAX_MESSAGE characters; the exception's type where it
    has none. Raises KeyError."""
    return (" ".join(str(header["message"]).split()) or str(header["error"]))[:MAX_MESSAGE]


def device_loss(header: Mapping[str, Any]) -> str:
    """Why a session failed because the device is gone, in words, and its message; empty for any other. The last code of
    a message tells most: a call answers DXGI_ERROR_DEVICE_REMOVED whatever the reason of the removal is."""
    if header.get("stage") in SUCCEEDED or not DEVICE_LOST.search(str(header.get("message"))):
        return ""
    message = failure_message(header)
    why = describe_loss(message)
    return f"the device was lost ({why}): {message}" if why else f"the device was lost: {message}"


def describe_loss(message: str) -> str:
    """Why the device is gone, by the HRESULT of DXGI that a message names last; empty where it names none."""
    codes = [LOSS_NAMES.get(found[0].upper(), found[0].upper()) for found in DEVICE_LOST.finditer(message)]
    return next((LOSSES[code] for code in reversed(codes) if code in LOSSES), "")


def explain_loss(message: str) -> str:
    """The message, and why the device is gone where it names that."""
    why = describe_loss(message)
    return f"{message}; the device is {why}" if why else message


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | None):
        raise TypeError(f"{str(value)[:80]!r} is no list of names")
    return tuple(str(name) for name in value or ())


def seconds(value: Any) -> float:
    """A time that a worker took. Raises TypeError or ValueError where it is none."""
    found = float(value)
    if not 0 <= found < math.inf:
        raise ValueError(f"{str(value)[:80]!r} is no number of seconds")
    return found


def _if_any(value: Any) -> float | None:
    return None if value is None else seconds(value)
