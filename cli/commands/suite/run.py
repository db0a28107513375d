"""`epcheck run`: the suite on a provider, judged, stored and reported."""

from __future__ import annotations

import json
from dataclasses import dataclass

import typer

from epcheck.api.runs.result import RunResult
from epcheck.api.suite.run import run
from epcheck.api.suite.run_options import RunOptions
from epcheck.cli.options import command
from epcheck.cli.output import AsJson, Quiet, choose_progress
from epcheck.cli.terminal import exit_codes, failure, summary, time_table
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@dataclass(frozen=True)
class ShownRun(RunOptions):
    """A run, and how its result is shown."""

    json: AsJson = False
    quiet: Quiet = False


@command(app, ShownRun)
def run_suite(options: ShownRun) -> int:
    """Run the suite on a provider and write a report.

    Exit code: 0 no failure, 1 conformance failures, 2 bad input or it could not run, 130 interrupted.
    """
    terminal = Terminal()
    result = run(options, progress=choose_progress(options.quiet, options.json))
    code = summary.choose_exit_code(result)
    if options.json:
        terminal.print_document(make_document(result, code))
    elif options.quiet:
        summary.show_verdict(terminal, result)
    else:
        summary.show(terminal, result)
    if options.trace and not (options.json or options.quiet):
        time_table.show(terminal, options.trace)
    if code == exit_codes.CANNOT:
        failure.say(f"the run {result.run.status}")
    return code


def make_document(result: RunResult, code: int) -> str:
    """`report.json` of the run (`reports.runs.json_document`, which has the number of the schema), with `folder`,
    `conforms` and `exit_code` before its fields."""
    own = {"folder": str(result.folder), "conforms": result.conforms, "exit_code": code}
    report = (result.folder / "report.json").read_text(encoding="ascii")
    return f"{json.dumps(own)[:-1]},\n{report.removeprefix('{')}"
