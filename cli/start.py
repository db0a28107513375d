"""The console script: signals and streams are seen to before anything else is imported, which takes a while.

What is imported here takes no time: `signal` needs milliseconds for its enumerations, `_signal` is what it is made of.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed has `signal` alone
import atexit
import os
import sys

from epcheck.cli.terminal.exit_codes import CANNOT, INTERRUPTED
from epcheck.conformance.workers import at_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

LITTLE_MEMORY = 4 << 30
"""Bytes of addresses (`ulimit -v`)."""

NO_MEMORY = ("failed to map segment", "cannot allocate", "can't start new thread", "paging file")
"""How the loader of libraries, the system and Python say in an error that memory is short, in lower case."""

NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
SIGNALS = tuple(getattr(_signal, name) for name in NAMES if hasattr(_signal, name))


def main() -> None:
    """What `epcheck` starts."""
    end_on_signals()
    atexit.register(_ignore_signals)  # the last to be called
    open_streams()
    leave_relative_paths()
    spare_threads()
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # some commands ask onnxruntime what it has
    try:
        from epcheck.cli.main import main as run_command  # takes a while

        run_command()
    except (MemoryError, ImportError, OSError, RuntimeError) as error:
        reason = _reason(error)
        if not reason:
            raise
        os.write(2, f"epcheck: {reason}\n".encode())
        sys.exit(CANNOT)


def _reason(error: BaseException) -> str:
    """Why it could not run: too little memory, at an import or later, or a library that cannot be loaded; empty for
    whatever else went wrong."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError) or any(words in str(cause).lower() for words in NO_MEMORY):
            return "there is too little memory; free some, or allow it more (ulimit -v)"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, ImportError):
        return f"a library cannot be loaded: {str(error).strip().partition(chr(10))[0]!a}; install epcheck again"
    return ""


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
    """Ignore signals while the interpreter shuts down: they would end the process as if nobody handled them."""
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


def spare_threads() -> None:
    """Where memory is limited, numpy's library gets one thread: without memory for more it sends the process SIGINT, as
    if the user had (OpenBLAS, driver/others/blas_server.c)."""
    try:
        import resource
    except ImportError:  # Windows
        return
    if 0 <= resource.getrlimit(resource.RLIMIT_AS)[0] < LITTLE_MEMORY:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    try:
        os.write(2, b"epcheck: interrupted\n")
        at_end.finish()
    finally:
        os._exit(INTERRUPTED)
