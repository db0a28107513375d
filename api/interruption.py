"""Ctrl-C, SIGTERM and SIGHUP, heard alike."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What ends a command."""

CLOSING_S = 10.0
"""Seconds in which what was interrupted is closed, and a further Ctrl-C is not heard."""


@dataclass(frozen=True)
class Heard:
    """signals: the numbers of those that were heard in a block, and in the blocks within it."""

    signals: list[int] = field(default_factory=list)


_hearing: list[Heard] = []
"""Of the blocks that are not left, the outermost first."""


@contextmanager
def interruptible(closing_s: float = 0.0) -> Iterator[Heard]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does; only in the main thread, to which signals belong. One
    that is ignored stays ignored: Ctrl-C for what a shell runs in the background, SIGHUP under nohup.

    closing_s: for so many seconds after the first signal further ones do nothing: what it interrupted can be closed in
    peace, and if that hangs it can still be interrupted.
    """
    deaf_until, heard = 0.0, Heard()

    def interrupt(number: int, _frame: FrameType | None) -> None:
        nonlocal deaf_until
        for block in _hearing:
            block.signals.append(number)
        now = time.monotonic()
        if now >= deaf_until:
            deaf_until = now + closing_s
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    wanted = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    _hearing.append(heard)
    handlers = {number: signal.signal(number, interrupt) for number in wanted}
    try:
        yield heard
    finally:
        _hearing.pop()
        for number, handler in handlers.items():
            signal.signal(number, handler)
