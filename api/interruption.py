"""Ctrl-C, SIGTERM and SIGHUP, heard alike."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What ends a command."""

CLOSING_S = 10.0
"""Seconds in which what was interrupted is closed, and a further Ctrl-C is not heard."""


@contextmanager
def interruptible(closing_s: float = 0.0) -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does; only in the main thread, to which signals belong. One
    that is ignored stays ignored: Ctrl-C for what a shell runs in the background, SIGHUP under nohup.

    closing_s: for so many seconds after the first signal further ones do nothing: what it interrupted can be closed in
    peace, and if that hangs it can still be interrupted.
    """
    deaf_until = 0.0

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal deaf_until
        now = time.monotonic()
        if now >= deaf_until:
            deaf_until = now + closing_s
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, interrupt) for number in heard}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
