"""One table: epcheck, bare loops and other tools side by side, in turn, in one run on this machine.

    python benchmarks/table.py [--repeats 3] [--only cpu,polygraphy] [--no-dml] [--json FILE] [--check]

Read the ratios: rates depend on the machine and on what else it does. Every repeat measures each row once, so that
noise hits all alike, and a ratio is one of two rows of the same repeat; the spread is the least and the greatest of
the repeats. With --check the exit code is 1 when the median of a promised figure misses its bound, or when one of its
rows could not be measured. What each row counts: --list, and README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script is given its own folder alone

from benchmarks.peers.polygraphy_environment import RUNTIME
from benchmarks.rates import figures
from benchmarks.rates.child_process import ChildFailed
from benchmarks.rates.figures import FIGURES, Figure, Spread
from benchmarks.rates.measurement import Measurement
from benchmarks.rates.rows import ROWS, Row
from benchmarks.rates.workload import Workbench
from epcheck.conformance.targets.choice import why_no_dml


@dataclass
class Results:
    """What was measured so far. failures: row -> why it could not be."""

    measured: dict[str, list[Measurement]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """Measure, print, check; the exit code."""
    arguments = parse()
    say = Console(stderr=True, highlight=False, emoji=False)
    out = Console(width=None if sys.stdout.isatty() else 400, highlight=False, emoji=False)
    if arguments.list:
        for row in ROWS:
            out.print(f"{row.group:10} {row.key:22} {row.counts}", markup=False, soft_wrap=True)
        return 0
    rows = selected(arguments.only, dml=not arguments.no_dml)
    obstacle = why_no_dml()
    if obstacle and any(row.dml for row in rows):
        say.print(f"without DirectML: {obstacle}", markup=False)
        rows = [row for row in rows if not row.dml]
    with tempfile.TemporaryDirectory(prefix="epcheck-benchmark-") as folder:
        described = f"{machine()}; {arguments.repeats} repeats"
        results = measure(rows, arguments.repeats, Workbench(Path(folder)), say)
    out.print(f"{described}\n", markup=False)
    out.print(*(table for table in (rates_table(rows, results), figures_table(results)) if table.row_count), sep="\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(document(described, results), indent=1), encoding="utf-8")
    missed = broken_promises(results)
    for sentence in missed:
        say.print(sentence, markup=False, style="red", soft_wrap=True)
    return 1 if arguments.check and missed else 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", metavar="ROWS", help="rows or groups of rows, joined by commas")
    parser.add_argument("--no-dml", action="store_true", help="leave DirectML's rows out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a promised figure is missed")
    parser.add_argument("--list", action="store_true", help="say what each row counts, and measure nothing")
    return parser.parse_args()


def selected(only: str, dml: bool) -> list[Row]:
    """The rows of these keys and groups, in the table's order; all when none is named. Exits on an unknown name."""
    names = set(filter(None, only.split(",")))
    known = {name for row in ROWS for name in (row.key, row.group)}
    if unknown := names - known:
        raise SystemExit(f"unknown row '{min(unknown)}'; there are: {', '.join(sorted(known))}")
    return [row for row in ROWS if (not names or names & {row.key, row.group}) and (dml or not row.dml)]


def measure(rows: Sequence[Row], repeats: int, bench: Workbench, say: Console) -> Results:
    """Every row once, then every row again, and so on; a row that fails is left out from then on."""
    results = Results()
    for repeat in range(repeats):
        for row in rows:
            if row.key in results.failures or repeat >= row.most:
                continue
            try:
                found = row.measure(bench)
            except Exception as error:  # whatever it is, the other rows can be measured
                results.failures[row.key] = str(error) if isinstance(error, ChildFailed) else repr(error)
                say.print(f"{row.key}: {results.failures[row.key]}", markup=False, style="red")
                continue
            results.measured.setdefault(row.key, []).append(found)
            say.print(f"{repeat + 1}/{repeats} {row.key}: {found.rate:,.1f} cases/s", markup=False)
    return results


def rates_table(rows: Sequence[Row], results: Results) -> Table:
    """Row, cases, rate and ratio to the reference row, each with its spread."""
    table = Table("row", box=box.MARKDOWN)
    for heading in ("cases", "cases/s", "least to greatest", "ratio", "least to greatest"):
        table.add_column(heading, justify="right")
    table.add_column("to")
    for row in rows:
        measured = results.measured.get(row.key, [])
        rate = figures.spread([found.rate for found in measured])
        if rate is None:
            table.add_row(row.key, "", "failed")
            continue
        ratio = Figure("", row.key, row.reference).of(results.measured)
        table.add_row(
            row.key,
            f"{measured[0].cases:,}",
            *columns(rate),
            *(columns(ratio) if ratio else ("", "")),
            row.reference,
        )
    return table


def figures_table(results: Results) -> Table:
    """What is promised, and what was measured of it."""
    table = Table("figure", box=box.MARKDOWN)
    for heading in ("measured", "least to greatest", "promised"):
        table.add_column(heading, justify="right")
    table.add_column("kept")
    for figure in FIGURES:
        found = figure.of(results.measured)
        if found is None:
            continue
        middle, extremes = columns(found)
        kept = ("yes" if figure.kept_by(found) else "no") if figure.promised else ""
        table.add_row(figure.what, f"{middle} {figure.unit}", extremes, figure.bound, kept)
    return table


def columns(found: Spread) -> tuple[str, str]:
    """The median, and the extremes where they differ, as words."""
    same = found.least == found.greatest
    return number(found.median), "" if same else f"{number(found.least)} to {number(found.greatest)}"


def number(value: float) -> str:
    """Three significant digits or so: 0.55, 12.3, 1,234."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def broken_promises(results: Results) -> list[str]:
    """One sentence for each promised figure that is missed, or that a failed row leaves unmeasured."""
    sentences = []
    for figure in FIGURES:
        if not figure.promised:
            continue
        found = figure.of(results.measured)
        if found is not None and not figure.kept_by(found):
            sentences.append(f"missed: {figure.what}: {found.median:.3g} {figure.unit}, promised {figure.bound}")
        for key in (figure.first, figure.second):
            if key in results.failures:
                sentences.append(f"not measured: {figure.what}: {key} failed")
    return sentences


def document(described: str, results: Results) -> dict[str, object]:
    """Everything that was measured, for a program."""
    found = {figure.what: figure.of(results.measured) for figure in FIGURES}
    return {
        "machine": described,
        "rows": {key: [asdict(m) for m in measured] for key, measured in results.measured.items()},
        "failures": results.failures,
        "figures": {what: asdict(value) for what, value in found.items() if value is not None},
    }


def machine() -> str:
    """What the figures depend on, in one line; load: processes that wanted a core in the last minute."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    releases = ", ".join(f"{name} {version(name)}" for name in ("epcheck", RUNTIME, "onnx", "numpy"))
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{cores} cores{load}, Python {platform.python_version()}, {releases}"


if __name__ == "__main__":
    sys.exit(main())
