"""`epcheck store`: the runs that are kept for `trend` and `nightly`, one Parquet file each."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from epcheck.api.runs.store import (
    AddToStoreOptions,
    NotAdded,
    PruneStoreOptions,
    StoreOptions,
    add_to_store,
    check_store,
    prune_store,
    stored_runs,
)
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes, failure
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.reports.runs.fingerprint import fingerprint_class
from epcheck.reports.store.nights import total
from epcheck.reports.store.run_file import FileProblem, StoredRun
from epcheck.reports.text import moment

app = typer.Typer(
    add_completion=False,
    help="The store of runs for trends: list, add, check and prune runs.",
    no_args_is_help=True,
)


@command(app, StoreOptions, "list")
def list_runs(options: StoreOptions) -> None:
    """List the runs of a store, and name the files that are not counted."""
    opened = stored_runs(options)
    terminal = Terminal()
    terminal.print_table(_table(opened.runs))
    size = sum(run.path.stat().st_size for run in opened.runs)
    terminal.print(f"{len(opened.runs):,} runs in {opened.folder}, {size / 1e6:,.1f} MB")
    _name(opened.problems)


@command(app, AddToStoreOptions)
def add(options: AddToStoreOptions) -> int:
    """Add runs to a store. Of a run that is there already, the one with more records stays.

    Exit code 2 when one cannot be added; the others are.
    """
    failed: list[NotAdded] = []
    terminal = Terminal()
    for done in add_to_store(options):
        if isinstance(done, NotAdded):
            failed.append(done)
        else:
            terminal.print(f"{done.run_id}: {'would be ' if options.dry_run else ''}{done.addition}")
    for each in failed:
        failure.say(each.why)
    return exit_codes.CANNOT if failed else exit_codes.GOOD


@command(app, StoreOptions)
def check(options: StoreOptions) -> int:
    """Read every file of a store to its end and name those that are truncated, damaged, foreign, of a newer schema or
    duplicated. Exit code 2 when there are such."""
    checked = check_store(options)
    rows = sum(run.recorded for run in checked.opened.runs)
    Terminal().print(f"{len(checked.opened.runs):,} runs and {rows:,} rows read in {checked.opened.folder}")
    _name(checked.problems)
    return exit_codes.CANNOT if checked.problems else exit_codes.GOOD


@command(app, PruneStoreOptions)
def prune(options: PruneStoreOptions) -> None:
    """Remove old runs from a store. The last good run of each provider, adapter and selection always stays."""
    done = prune_store(options)
    pruned, would = done.pruned, "would be " if options.dry_run else ""
    terminal = Terminal()
    for run in pruned.removed:
        terminal.print(f"{run.run_id}: {would}removed")
    for run in pruned.protected:
        terminal.print(f"{run.run_id}: kept: the last good run of its kind")
    freed = f"{pruned.size_bytes / 1e6:,.1f} MB"
    terminal.print(f"{len(pruned.removed):,} of {len(done.opened.runs):,} runs {would}removed, {freed}")
    _name(done.opened.problems)


def _table(runs: Iterable[StoredRun]) -> Table:
    table = Table()
    table.add_column("run", whole=True)
    for name in ("started", "status", "of", "pass", "failing", "other"):
        table.add_column(name, right=name in ("pass", "failing", "other"), fold=True)
    for run in runs:
        status = run.run.status if run.whole else f"{run.run.status}, {run.recorded:,} of {run.run.planned:,}"
        for target in run.targets:
            counted = run.counted.get(target)
            counts = [f"{n:,}" for n in total(counted.operators.values())] if counted else ["not run"] * 3
            cells = (run.run_id, moment(run.run.started), status, str(fingerprint_class(run.run, target)), *counts)
            table.add_row(*cells)
    return table


def _name(problems: Iterable[FileProblem]) -> None:
    for problem in problems:
        failure.say(f"{problem.kind}: {problem.sentence}")
