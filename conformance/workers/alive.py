"""A sign of life of a process that waits for its workers, for whoever waits for that process."""

from __future__ import annotations

from collections.abc import Callable

_listeners: list[Callable[[], None]] = []


def on_sign(listener: Callable[[], None]) -> None:
    """Have a function called at each sign, from now on."""
    _listeners.append(listener)


def sign() -> None:
    """Something goes on: workers are waited for, and their own deadlines hold."""
    for listener in _listeners:
        listener()
