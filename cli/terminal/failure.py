"""How a command ends when something is wrong: one sentence on stderr and a documented exit code."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer
from rich.console import Console

from epcheck.cli.terminal.plain import safe
from epcheck.generators.error import EpcheckError

GOOD, FAILURES, CANNOT, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: as it should be; conformance failures; bad input or it could not run; Ctrl-C or SIGTERM."""

DEAF_S = 10.0
"""Seconds after Ctrl-C in which a further one is not heard where `terminable` is told to be deaf."""


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn epcheck's errors, and those of the system, into `epcheck: SENTENCE` on stderr and exit code 2,
    Ctrl-C and SIGTERM into exit code 130."""
    try:
        with terminable():
            yield
    except EpcheckError as error:
        say(str(error))
        raise typer.Exit(CANNOT) from None
    except BrokenPipeError:
        raise  # `epcheck list | head` is no fault
    except OSError as error:
        say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        raise typer.Exit(CANNOT) from None
    except KeyboardInterrupt:
        say("interrupted")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def terminable(deaf_s: float = 0.0) -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, as Ctrl-C does; only in the main thread, to which signals belong.

    deaf_s: for so many seconds after the first one further ones of both do nothing: what it ended can be closed in
    peace, and if that hangs it can still be interrupted.
    """
    deaf_until = 0.0

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal deaf_until
        now = time.monotonic()
        if now >= deaf_until:
            deaf_until = now + deaf_s
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # by the shell, for what it runs in the background
    numbers = (signal.SIGTERM, signal.SIGINT) if deaf_s and not ignored else (signal.SIGTERM,)
    handlers = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def say(sentence: str) -> None:
    """The sentence on stderr."""
    console = Console(stderr=True, soft_wrap=True, emoji=False, highlight=False)
    console.print(f"[bold red]epcheck:[/] {safe(sentence)}")
