"""`epcheck merge`: several runs become one, with its reports."""

from __future__ import annotations

import typer

from epcheck.api.runs.merge import MergeOptions, merge
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes, failure, summary
from epcheck.cli.terminal.terminal import Terminal

app = typer.Typer(add_completion=False)


@command(app, MergeOptions)
def merge_runs(options: MergeOptions) -> int:
    """Merge finished runs, the shards of one selection or its runs on several machines, into a new one.

    Exit code: that of `epcheck run` for the merged run; 2 also when runs do not fit together or shards are missing.
    """
    result = merge(options)
    summary.show(Terminal(), result)
    code = summary.choose_exit_code(result)
    if code == exit_codes.CANNOT:
        failure.say(f"the merged run {result.run.status}")
    return code
