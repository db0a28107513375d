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
    """Judge a made-up provider that has faults, open its report, and say how to find one of them.

    Exit code: 0 its faults were found, 2 it could not run, 130 interrupted.
    """
    terminal = Terminal()
    terminal.print("A made-up provider is judged. It computes on the CPU, and then does what real providers have done.")
    result = demo(options, progress=TerminalProgress(terminal))
    summary.show(terminal, result)
    code = summary.choose_exit_code(result)
    if code != FAILURES:
        return code
    (target,) = result.summary.targets
    cause = target.causes_of(FAILURE)[0]
    operators = ", ".join(cause.operators)
    steps = (
        f"1. The report begins with the causes. The first has {cause.cases} cases of {operators}; open it.",
        f"2. Its smallest case is {cause.smallest}: the page of the case shows what came, what is right, and where.",
        f"3. Write it as a folder of model, inputs and true outputs: {repro_command(cause.smallest)}",
        f"4. Judge the folder, after every change of the provider: epcheck replay repro --target {TARGET}",
    )
    terminal.print()
    terminal.print("Find a fault in a minute", style="bold")
    for step in steps:
        terminal.print(step)
    return GOOD
