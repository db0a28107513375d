"""`epcheck fix`: a model changed so that a target takes it and computes it right."""

from __future__ import annotations

import typer

from epcheck.api.models.fix import FIXED, NOTHING, REMAINS, UNJUDGED, Fixed, FixOptions, fix
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.progress import TerminalProgress
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.cli.terminal.text import brief

app = typer.Typer(add_completion=False)

EXIT_CODES = {
    NOTHING: exit_codes.GOOD,
    FIXED: exit_codes.GOOD,
    REMAINS: exit_codes.FAILURES,
    UNJUDGED: exit_codes.CANNOT,
}
COLOURS = {NOTHING: "green", FIXED: "green", REMAINS: "red", UNJUDGED: "yellow"}

SHOWN = 40
"""Differences that the terminal shows; the JSON document has all."""

NAMED = 3
"""Nodes of a change that it names."""

WIDTH = 120
"""Characters of a line that goes to no terminal; rich takes 80."""


@command(app, FixOptions)
def fix_model(options: FixOptions) -> int:
    """Apply every change that was tried on a target and places or mends nodes: rewritten nodes, another opset, casts,
    fixed sizes, float32 where float16 overflows, corrected scales. The changed model is validated on the truth of the
    original; changes that do not help are left out.

    Exit code: 0 the model is fixed, or there is nothing to fix, 1 something remains, 2 it cannot be told, bad input, or
    it could not run.
    """
    terminal = Terminal(width=WIDTH)
    fixed = fix(options, progress=TerminalProgress(terminal))
    show(terminal, fixed)
    if fixed.written is not None:
        terminal.print(f"Model: {fixed.written}")
    elif fixed.kept:
        terminal.print("No model was written")
    return EXIT_CODES[fixed.status]


def show(terminal: Terminal, fixed: Fixed) -> None:
    """What was done to a model, in the terminal."""
    for step in fixed.steps:
        more = f" and {len(step.nodes) - NAMED} more" if len(step.nodes) > NAMED else ""
        nodes = f" ({', '.join(step.nodes[:NAMED])}{more})" if step.nodes else ""
        terminal.print(brief(f"{'applied' if step.kept else 'left out'}: {step.words}{nodes}: {step.result}"))
    if fixed.error_before is not None and fixed.error_after is not None:
        terminal.print(f"error of quantisation: {fixed.error_before:.2g} before, {fixed.error_after:.2g} after")
    if fixed.differences:
        table = Table(indented=True)
        for name in ("part", "before", "after"):
            table.add_column(name, fold=True)
        for each in fixed.differences[:SHOWN]:
            before, after = (
                f"{text}{f' [{where}]' if where else ''}" if text else ""
                for text, where in ((each.before, each.placed_before), (each.after, each.placed_after))
            )
            table.add_row(brief(each.part), brief(before) or "(added)", brief(after) or "(removed)")
        terminal.print_table(table)
    if len(fixed.differences) > SHOWN:
        terminal.print(f"   and {len(fixed.differences) - SHOWN} more differences: see --json")
    for sentence in fixed.remaining:
        terminal.print(brief(f"remains: {sentence}"))
    terminal.print(brief(fixed.headline), style=f"bold {COLOURS[fixed.status]}")
