"""The console script: signals and streams are seen to before the rest of epcheck is imported, which takes a while."""

from __future__ import annotations

import atexit
import importlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
"""The exit code of what Ctrl-C, SIGTERM or SIGHUP ended."""

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def main() -> None:
    """What `epcheck` starts."""
    atexit.register(_ignore_signals)  # the last to be called
    end_on_signals()
    open_streams()
    if os.environ.get("_EPCHECK_COMPLETE", "").startswith("complete_"):  # a shell asks, and a person waits
        importlib.import_module("epcheck.cli.completion.answer").main(_completion_index)
    importlib.import_module("epcheck.cli.main").main()


def _completion_index() -> object:
    return importlib.import_module("epcheck.cli.main").completion_index()


def end_on_signals() -> None:
    """Until a command hears them itself, and after it, signals end the process at once; ignored ones stay ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _ignore_signals() -> None:
    """All is done, and Python gives its memory back: it would have signals end the process as if nobody heard them."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def open_streams() -> None:
    """A stream that whoever started us has closed leads nowhere: no file that is opened later takes its place, and what
    is written to it is lost, as was asked for."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False))  # noqa: SIM115


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    try:
        os.write(2, b"epcheck: interrupted\n")
    finally:
        os._exit(INTERRUPTED)
