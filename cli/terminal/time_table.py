"""Where the time of a run went, as a table in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from epcheck.cli.terminal.plain import safe


def show(console: Console, profile: Path) -> None:
    """The sums of a profile. profile: the file that `epcheck run --profile` has written."""
    sums = json.loads(profile.read_text(encoding="utf-8"))["otherData"]
    table = Table(title="Seconds of workers", title_justify="left", box=None, pad_edge=False)
    workers = sums["workers"]
    columns = tuple(dict.fromkeys(column for of in workers.values() for column in of))
    table.add_column("target")
    for column in columns:
        table.add_column(column.removesuffix("_s"), justify="right")
    for target, of in workers.items():
        table.add_row(safe(target), *(_number(of[column]) for column in columns))
    console.print(table)
    runner = ", ".join(f"{phase} {seconds:.1f}" for phase, seconds in sums["runner"].items())
    console.print(f"Seconds of the runner: {runner}", soft_wrap=True, highlight=False)
    console.print(f"Profile: {escape(str(profile))} (ui.perfetto.dev shows it)", soft_wrap=True, highlight=False)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
