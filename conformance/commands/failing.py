"""How a command ends when something is wrong: one sentence on stderr and a documented exit code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer
from rich.console import Console
from rich.markup import escape

from epcheck.conformance.expectation import ExpectationError
from epcheck.conformance.lab import LabError
from epcheck.conformance.lane import TargetDown
from epcheck.conformance.model_file import ModelFileError
from epcheck.conformance.record import RecordError
from epcheck.conformance.repro import ReproError
from epcheck.conformance.runtime import RuntimeInstallError
from epcheck.conformance.target import TargetError
from epcheck.generators.suite import SelectionError
from epcheck.reports import StoreError

GOOD, FAILURES, CANNOT, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: as it should be; conformance failures; bad input or it could not run; Ctrl-C or SIGTERM."""

KNOWN = (
    ExpectationError, LabError, ModelFileError, RecordError, ReproError, RuntimeInstallError, SelectionError,
    StoreError, TargetDown, TargetError,
)  # fmt: skip


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn the errors that epcheck knows, and those of the system, into `epcheck: SENTENCE` on stderr and exit code 2,
    Ctrl-C and SIGTERM into exit code 130."""
    try:
        with terminable():
            yield
    except KNOWN as error:
        _say(str(error))
        raise typer.Exit(CANNOT) from None
    except BrokenPipeError:
        raise  # `epcheck list | head` is no fault
    except OSError as error:
        _say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        raise typer.Exit(CANNOT) from None
    except KeyboardInterrupt:
        _say("interrupted")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, as Ctrl-C does; only in the main thread, to which signals belong."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(sentence: str) -> None:
    console = Console(stderr=True, soft_wrap=True, emoji=False, highlight=False)
    console.print(f"[bold red]epcheck:[/] {escape(printable(sentence))}")


def printable(text: str) -> str:
    """The text on one line, control characters as escapes: names come from strangers' models."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
