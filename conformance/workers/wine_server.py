"""Wine's server: every program in a prefix waits for it; one that is stopped (SIGSTOP, a debugger) stops them all."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

NAME, PREFIX = "wineserver", "WINEPREFIX"


def folders(environment: Mapping[str, str] | None, writable: Iterable[str]) -> list[str]:
    """A worker's prefix, and the folder in /tmp in which its server has its socket, if it may write there."""
    prefix = (environment or {}).get(PREFIX)
    sockets = [name for name in writable if Path(name).parent == Path("/tmp") and "wine" in Path(name).name]
    return [*([prefix] if prefix else []), *sockets]


def continue_stopped(environment: Mapping[str, str] | None) -> bool:
    """Let the server of a worker's prefix go on where it is stopped; whether it was. environment: the worker's.

    Called when a worker in Wine did not answer in time: the next one would not either.
    """
    if sys.platform == "win32" or not (environment or {}).get(PREFIX):
        return False
    prefix, found = Path(str((environment or {})[PREFIX])), False
    for process in psutil.process_iter(["name", "status"]):
        if not str(process.info["name"]).startswith(NAME) or process.info["status"] != psutil.STATUS_STOPPED:
            continue
        with contextlib.suppress(psutil.Error, OSError):
            if Path(process.environ().get(PREFIX, "")) == prefix:
                process.send_signal(signal.SIGCONT)
                found = True
    return found
