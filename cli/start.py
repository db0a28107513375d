"""The console script: signals and streams are seen to before anything else is imported, which takes a while.

What is imported here is a part of the interpreter: `signal` takes milliseconds for its enumerations, `_signal` is what
it is made of.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed has `signal` alone
import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 130
"""The exit code of what Ctrl-C, SIGTERM or SIGHUP ended."""

SIGNALS = tuple(getattr(_signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(_signal, name))


def main() -> None:
    """What `epcheck` starts."""
    end_on_signals()
    atexit.register(_ignore_signals)  # the last to be called
    open_streams()
    leave_relative_paths()
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # some commands ask onnxruntime what it has
    import importlib

    if os.environ.get("_EPCHECK_COMPLETE", "").startswith("complete_"):  # a shell asks, and a person waits
        importlib.import_module("epcheck.cli.completion.answer").main(_completion_index)
    importlib.import_module("epcheck.cli.main").main()


def _completion_index() -> object:
    import importlib

    return importlib.import_module("epcheck.cli.main").completion_index()


def leave_relative_paths() -> None:
    """An empty or relative entry of PYTHONPATH means the working directory or a folder in it, where a model of
    somebody else may be: nothing is imported from there, unless epcheck itself is."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    for entry in os.environ["PYTHONPATH"].split(os.pathsep) if os.environ.get("PYTHONPATH") else ():
        folder = os.path.abspath(entry)  # noqa: PTH100
        if not os.path.isabs(entry) and folder in sys.path and folder != home:  # noqa: PTH117
            sys.path.remove(folder)


def end_on_signals() -> None:
    """Until a command hears them itself, and after it, signals end the process at once; ignored ones stay ignored."""
    for number in SIGNALS:
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, _end)


def _ignore_signals() -> None:
    """All is done, and Python gives its memory back: it would have signals end the process as if nobody heard them."""
    for number in SIGNALS:
        _signal.signal(number, _signal.SIG_IGN)


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
        if confinement := sys.modules.get("epcheck.conformance.workers.confinement"):
            confinement.remove_temp()
    finally:
        os._exit(INTERRUPTED)
