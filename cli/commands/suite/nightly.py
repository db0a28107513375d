"""`epcheck nightly`: one command for a scheduler. It runs, keeps the run in the store, and says if it got worse."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from epcheck.api.runs.result import INTERRUPTED
from epcheck.api.suite.nightly import Night, NightlyOptions, nightly
from epcheck.cli.options import command
from epcheck.cli.output import Quiet, choose_progress
from epcheck.cli.terminal import comparison, exit_codes, failure
from epcheck.cli.terminal.terminal import Terminal
from epcheck.reports.diff import assessment

app = typer.Typer(add_completion=False)

REASON = 200
"""Characters of a fault's reason that are shown."""


@dataclass(frozen=True)
class ShownNight(NightlyOptions):
    """A night, and how it is shown."""

    quiet: Quiet = False


@command(app, ShownNight)
def run_night(options: ShownNight) -> int:
    """Run the suite, add the run to the store, and compare it with the last good run.

    Exit code: 0 as good as before (or the first night), 1 new failures, 2 it could not run, 130 interrupted.
    """
    terminal = Terminal()
    night = nightly(options, progress=choose_progress(options.quiet))
    show(terminal, night, options.quiet)
    interrupted = INTERRUPTED in (night.run.status, *(search.ended for search in night.searches))
    code = exit_codes.INTERRUPTED if interrupted else comparison.choose_exit_code(night.assessments)
    if code == exit_codes.CANNOT:
        not_run = [found for found in night.assessments if found.result == assessment.NOT_RUN]
        failure.say(" ".join(f"{found.target}: {found.sentences}" for found in not_run))
    return code


def show(terminal: Terminal, night: Night, quiet: bool) -> None:
    """The assessment of each candidate, what the searches found, and where the page is. quiet: the verdicts alone."""
    for found in night.assessments:
        (comparison.show_verdict if quiet else comparison.show)(terminal, found)
    for search in night.searches:
        terminal.print(search.title, style="bold")
        terminal.print(search.sentences)
        for fault in () if quiet else search.new:
            words = f"  new: {fault.operator} {fault.status}: {fault.reason[:REASON]} ({fault.folder})"
            terminal.print(words)
    for problem in night.problems:
        terminal.print(("store", "yellow"), f" {problem}")
    terminal.print(f"Report: {night.files[0]}")
