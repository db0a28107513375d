"""The notice that a command uses an `epcheck.toml` that nobody named: it lies in the working directory, where there may
be a model of somebody else, and says what its targets are and what is right."""

from __future__ import annotations

from collections.abc import Callable

_takes: list[Callable[[str], None]] = []


def send_notices(take: Callable[[str], None] | None) -> None:
    """Have `take` get each notice, once; None: nobody."""
    sent: set[str] = set()

    def take_once(notice: str) -> None:
        if take and notice not in sent:
            sent.add(notice)
            take(notice)

    _takes[:] = [take_once]


def notify(notice: str) -> None:
    """Send a notice to whoever takes them."""
    for take in _takes:
        take(notice)
