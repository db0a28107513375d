"""`epcheck demo`: a made-up provider with faults is judged, and the report shows them."""

from __future__ import annotations

import typer

from epcheck.api.machine.demo import TARGET, DemoOptions, demo
from epcheck.api.suite.repro import repro_command
from epcheck.cli.options import command
from epcheck.cli.terminal import summary
from epcheck.cli.terminal.exit_codes import FAILURES, GOOD
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.records.terms import FAILURE

app = typer.Typer(add_completion=False)


@command(app, DemoOptions)
def show(options: DemoOptions) -> int:
    """Check a demo provider with planted faults, open the report, and explain how to find one.

    Exit code: 0 the faults were found, 2 it could not run, 130 interrupted.
    """
    terminal = Terminal()
    terminal.print(
        "This demo checks a provider with planted faults: it computes on the CPU, then repeats faults of real ones."
    )
    result = demo(options, progress=TerminalProgress(terminal))
    summary.show(terminal, result)
    code = summary.choose_exit_code(result)
    if code != FAILURES:
        return code
    (target,) = result.summary.targets
    cause = target.causes_of(FAILURE)[0]
    operators = ", ".join(cause.operators)
    steps = (
        f"1. The report starts with the causes. The first has {cause.cases} cases of {operators}; open it.",
        f"2. Its smallest case is {cause.smallest}: its page shows the wrong elements, expected and actual values.",
        f"3. Write the case as a folder (model, inputs, expected outputs): {repro_command(cause.smallest)}",
        f"4. Check the folder after each change to the provider: epcheck replay repro --target {TARGET}",
    )
    terminal.print()
    terminal.print("Find a fault in a minute", style="bold")
    for step in steps:
        terminal.print(step)
    return GOOD
