"""Heartbeat of a process that is waiting for its workers, for the process that waits for it."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def on_beat(listener: Callable[[], None]) -> None:
    """Have a function called at each beat, from now on."""
    _listeners.append(listener)


def beat() -> None:
    """Report that the process is still waiting; the deadlines of its workers apply."""
    for listener in _listeners:
        listener()
