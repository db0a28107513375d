"""Heartbeat of a process that is waiting for its workers, for the process that waits for it."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def on_sign(listener: Callable[[], None]) -> None:
    """Have a function called at each sign, from now on."""
    _listeners.append(listener)


def sign() -> None:
    """Report that the process is still waiting; the deadlines of its workers apply."""
    for listener in _listeners:
        listener()
