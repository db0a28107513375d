"""How a command ends when something is wrong: one sentence on stderr and a documented exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from epcheck.api import EpcheckError
from epcheck.api.interruption import interruptible
from epcheck.cli.terminal.plain import safe

GOOD, FAILURES, CANNOT, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: as it should be; conformance failures; bad input or it could not run; Ctrl-C or SIGTERM."""


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn epcheck's errors, and those of the system, into `epcheck: SENTENCE` on stderr and exit code 2,
    Ctrl-C and SIGTERM into exit code 130."""
    try:
        with interruptible():
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


def say(sentence: str) -> None:
    """The sentence on stderr."""
    console = Console(stderr=True, soft_wrap=True, emoji=False, highlight=False)
    console.print(f"[bold red]epcheck:[/] {safe(sentence)}")
