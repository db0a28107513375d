"""Where the time of a run went, as a table in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from epcheck.cli.terminal.terminal import Table, Terminal


def show(terminal: Terminal, trace: Path) -> None:
    """The sums of a trace. trace: the file that `epcheck run --trace` has written."""
    sums = json.loads(trace.read_text(encoding="utf-8"))["otherData"]
    table = Table("Worker time, s")
    workers = sums["workers"]
    columns = tuple(dict.fromkeys(column for of in workers.values() for column in of))
    table.add_column("target")
    for column in columns:
        table.add_column(column.removesuffix("_s"), right=True)
    for target, of in workers.items():
        table.add_row(target, *(_number(of[column]) for column in columns))
    terminal.print_table(table)
    runner = ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in sums["runner"].items())
    terminal.print(f"Runner time, s: {runner}")
    terminal.print(f"Trace: {trace} (open it in ui.perfetto.dev)")


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
