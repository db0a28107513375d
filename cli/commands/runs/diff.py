"""`epcheck diff`: two runs compared, or two targets of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from epcheck.cli.terminal import comparison, failure
from epcheck.reports.diff import assessment, difference, drift
from epcheck.reports.diff.assessment import Assessment
from epcheck.reports.diff.compared_runs import open_pair
from epcheck.reports.diff.write import write_html, write_json, write_junit, write_markdown

app = typer.Typer(add_completion=False)

EXIT_CODES = {assessment.GOOD: failure.GOOD, assessment.FIRST: failure.GOOD, assessment.WORSE: failure.FAILURES}
"""What a verdict ends a command with; a run that says nothing is never good."""


@app.command()
def diff(
    older: Annotated[Path, typer.Argument(metavar="RUN_A", help="A run's folder, or its file in a store.")],
    newer: Annotated[
        Path | None,
        typer.Argument(metavar="RUN_B", help="The run that is held against it.", show_default="the same, two targets"),
    ] = None,
    target_a: Annotated[str | None, typer.Option(help="Which target of RUN_A, where it has several.")] = None,
    target_b: Annotated[str | None, typer.Option(help="Which target of RUN_B, where it has several.")] = None,
    factor: Annotated[
        float, typer.Option(min=1.0, help="How many times larger an error in ULP has to be to be told.")
    ] = drift.FACTOR,
    html: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write the page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write Markdown.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write JSON.")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write JUnit XML.")] = None,
) -> None:
    """Compare two runs: what broke, what was fixed, what drifted, and what changed on the machine.

    Exit code: 0 no new failure, 1 new failures, 2 bad input, or RUN_B did not run to its end.
    """
    console = Console(emoji=False)
    with failure.one_sentence():
        found = assessment.assess(difference.compare(*open_pair(older, newer, target_a, target_b), factor=factor))
        title = f"{found.target}: {found.result}"
        for write, path in ((write_html, html), (write_markdown, markdown), (write_json, json), (write_junit, junit)):
            if path:
                write(path, title, (found,))
        comparison.show(console, found)
    raise typer.Exit(exit_code((found,)))


def exit_code(verdicts: tuple[Assessment, ...]) -> int:
    """0 all as good as before, 1 one is worse, 2 one could not be compared."""
    return max((EXIT_CODES.get(one.result, failure.CANNOT) for one in verdicts), default=failure.CANNOT)
