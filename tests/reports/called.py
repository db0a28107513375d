"""`epcheck` called in this process."""

from __future__ import annotations

from dataclasses import dataclass

from typer.testing import CliRunner

from epcheck.conformance.cli import app


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def call(*arguments: str) -> Done:
    """A traceback would be raised."""
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200", "NO_COLOR": "1"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def refused(*arguments: str) -> str:
    """The last sentence of a command that ends with exit code 2."""
    done = call(*arguments)
    assert done.code == 2, (done.out, done.err)
    return done.err.splitlines()[-1].removeprefix("epcheck: ")
