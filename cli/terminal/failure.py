"""How a command ends when something is wrong: one sentence on stderr and a documented exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from epcheck.api import EpcheckError
from epcheck.api.interruption import interruptible
from epcheck.cli.terminal.exit_codes import CANNOT, INTERRUPTED
from epcheck.cli.terminal.terminal import Terminal
from epcheck.models.validation.names import shorten_words

LONGEST_PATH = 1000
"""Characters of a word that is shown whole: it may be a path, to be copied."""


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn epcheck's errors, and those of the system, into `epcheck: SENTENCE` on stderr and exit code 2,
    Ctrl-C, Ctrl-Break, SIGTERM and SIGHUP into exit code 130."""
    try:
        with interruptible() as heard, warnings.catch_warnings():
            warnings.showwarning = _say_warning
            yield
    except EpcheckError as error:
        say(str(error))
        raise typer.Exit(CANNOT) from None
    except BrokenPipeError:
        raise  # `epcheck list | head` is no fault
    except OSError as error:
        if is_closed_pipe(error):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from None
        if heard.signals and error.errno == errno.EIO:  # a terminal that goes away sends SIGHUP, and takes no words
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        say(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        raise typer.Exit(CANNOT) from None
    except KeyboardInterrupt:
        say("interrupted")
        raise typer.Exit(INTERRUPTED) from None


def is_closed_pipe(error: OSError) -> bool:
    """Whether nobody reads any more what is written. Windows says ERROR_NO_DATA of such a pipe, for which its C runtime
    has no errno of its own: it is EINVAL, of no file."""
    return isinstance(error, BrokenPipeError) or (
        sys.platform == "win32" and error.errno == errno.EINVAL and error.filename is None
    )


def _say_warning(message: Warning | str, *_where: object, **_how: object) -> None:
    """Instead of Python's two lines with a line of code."""
    say(str(message))


def say(sentence: str) -> None:
    """The sentence on stderr; where nobody can be told, because the terminal is gone or a disk is full, the exit code
    says it."""
    with contextlib.suppress(OSError):
        Terminal(stderr=True).print(("epcheck:", "bold red"), f" {shorten_words(sentence, LONGEST_PATH)}")
