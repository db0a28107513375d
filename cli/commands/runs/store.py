"""`epcheck store`: the runs that are kept for `trend` and `nightly`, one Parquet file each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from epcheck.cli.terminal import failure
from epcheck.cli.terminal.plain import printable, safe
from epcheck.reports import StoreError
from epcheck.reports.runs.fingerprint import fingerprint_class
from epcheck.reports.store import maintenance
from epcheck.reports.store.nights import total
from epcheck.reports.store.run_file import FileProblem, StoredRun
from epcheck.reports.store.store import default_store, open_store
from epcheck.reports.text import moment

app = typer.Typer(
    add_completion=False,
    help="The runs that are kept for trends: list, add, check and prune them.",
    no_args_is_help=True,
)

Store = Annotated[Path | None, typer.Option("--store", help="A store.", show_default="EPCHECK_STORE, or epcheck-store")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


@app.command("list")
def list_runs(store: Store = None) -> None:
    """List the runs of a store, and name the files that are not counted."""
    with failure.one_sentence():
        opened = open_store(store or default_store())
        console = Console(emoji=False)
        console.print(_table(opened.runs))
        size = sum(run.path.stat().st_size for run in opened.runs)
        _say(f"{len(opened.runs):,} runs in {opened.folder}, {size / 1e6:,.1f} MB")
        _name(opened.problems)


@app.command()
def add(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Folders of runs, Parquet files, stores.")],
    store: Store = None,
    dry_run: DryRun = False,
) -> None:
    """Add runs to a store. Of a run that is there already, the one with more records stays.

    Exit code 2 when one cannot be added; the others are.
    """
    troubles: list[str] = []
    with failure.one_sentence():
        for path in paths:
            for source in maintenance.sources(path):
                try:
                    done = maintenance.add(store or default_store(), source, dry_run=dry_run)
                except StoreError as error:
                    troubles.append(str(error))
                else:
                    _say(f"{done.run_id}: {'would be ' if dry_run else ''}{done.addition}")
    for sentence in troubles:
        failure.say(sentence)
    raise typer.Exit(failure.CANNOT if troubles else failure.GOOD)


@app.command()
def check(store: Store = None) -> None:
    """Read every file of a store to its end and name those that are truncated, damaged, foreign, of a newer schema or
    duplicated. Exit code 2 when there are such."""
    with failure.one_sentence():
        opened, troubles = maintenance.check(store or default_store())
        _say(f"{len(opened.runs):,} runs and {sum(run.recorded for run in opened.runs):,} rows read in {opened.folder}")
        _name(troubles)
    raise typer.Exit(failure.CANNOT if troubles else failure.GOOD)


@app.command()
def prune(
    store: Store = None,
    older_than: Annotated[
        int | None, typer.Option(min=0, metavar="DAYS", help="Remove what started so many days ago, or before.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Remove all but the newest N of each provider and adapter.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Remove old runs from a store. The last good run of each provider, adapter and selection always stays."""
    with failure.one_sentence():
        if older_than is None and keep is None:
            raise StoreError("say what to remove: --older-than DAYS, --keep N, or both")
        opened = open_store(store or default_store())
        pruned = maintenance.prune(opened, datetime.now(UTC), older_than, keep, dry_run=dry_run)
        for run in pruned.removed:
            _say(f"{run.run_id}: {'would be ' if dry_run else ''}removed")
        for run in pruned.protected:
            _say(f"{run.run_id}: stays, the last good one of its kind")
        would = "would be removed" if dry_run else "removed"
        _say(f"{len(pruned.removed):,} of {len(opened.runs):,} runs {would}, {pruned.size_bytes / 1e6:,.1f} MB")
        _name(opened.problems)


def _table(runs: Iterable[StoredRun]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("run", no_wrap=True)
    for name in ("started", "status", "of", "pass", "failing", "other"):
        table.add_column(name, justify="right" if name in ("pass", "failing", "other") else "left", overflow="fold")
    for run in runs:
        status = run.run.status if run.whole else f"{run.run.status}, {run.recorded:,} of {run.run.planned:,}"
        for target in run.targets:
            counted = run.counted.get(target)
            counts = [f"{n:,}" for n in total(counted.operators.values())] if counted else ["not run"] * 3
            cells = (run.run_id, moment(run.run.started), status, str(fingerprint_class(run.run, target)), *counts)
            table.add_row(*map(safe, cells))
    return table


def _name(problems: Iterable[FileProblem]) -> None:
    for problem in problems:
        failure.say(f"{problem.kind}: {problem.sentence}")


def _say(sentence: str) -> None:
    typer.echo(printable(sentence))
