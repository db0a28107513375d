"""Ctrl-C, Ctrl-Break, SIGTERM and SIGHUP, heard alike."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
SIGNALS = tuple(getattr(signal, name) for name in NAMES if hasattr(signal, name))
"""What ends a command. Windows sends SIGBREAK for Ctrl-Break, and when the console is closed or its user logs off."""

CLOSING_S = 10.0
"""Seconds in which what was interrupted is closed, and a further Ctrl-C is not heard."""


LATER_S, MOST_LATER = 0.002, 500
"""Seconds after which a signal that found the main thread in `threading` is sent again, and how often at most: a thread
that is there still waits for something."""


@dataclass(frozen=True)
class Heard:
    """signals: the numbers of those that were heard in a block, and in the blocks within it."""

    signals: list[int] = field(default_factory=list)


_hearing: list[Heard] = []
"""Of the blocks that are not left, the outermost first."""


@contextmanager
def interruptible(closing_s: float = 0.0) -> Iterator[Heard]:
    """SIGTERM, SIGHUP and SIGBREAK raise KeyboardInterrupt, as Ctrl-C does; only in the main thread, to which signals
    belong. One that is ignored stays ignored: Ctrl-C for what a shell runs in the background, SIGHUP under nohup.

    closing_s: for so many seconds after the first signal further ones do nothing: what it interrupted can be closed in
    peace, and if that hangs it can still be interrupted.

    Nothing is raised within a function of `threading` that does not wait: `Condition.__enter__`, which `Event.set`
    calls, would leave its lock held for ever (Python issue 29988), and the next `set` would not return. The signal is
    sent again.
    """
    deaf_until, sent_again, heard = 0.0, 0, Heard()

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal deaf_until, sent_again
        if _holds_lock(frame) and sent_again < MOST_LATER:
            sent_again += 1
            _thread.start_new_thread(_send_again, (number,))
            return
        sent_again = 0
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


def _holds_lock(frame: FrameType | None) -> bool:
    """Whether it may hold a lock of `threading` that an exception would not give back."""
    return frame is not None and frame.f_code.co_filename == threading.__file__ and frame.f_code.co_name != "wait"


def _send_again(number: int) -> None:
    time.sleep(LATER_S)
    if hasattr(signal, "pthread_kill"):  # wakes the main thread where it waits
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(signal.Signals(number))
