"""`epcheck expect`: what a run found, written down as expected for now."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epcheck.cli.terminal import failure
from epcheck.conformance.records.record import FAILURE
from epcheck.conformance.targets import expectation_file
from epcheck.conformance.targets.expectation import ExpectationError
from epcheck.conformance.targets.expectation_file import Baseline, Found
from epcheck.generators.suite import matches
from epcheck.reports.diff.compared_runs import open_single
from epcheck.reports.runs.run_folder import replacing

app = typer.Typer(add_completion=False)

DEFAULT_FILE = Path("expectations.toml")


def expected_from(
    run: Path, file: Path, reason: str, link: str = "", target: str | None = None, patterns: tuple[str, ...] = ()
) -> tuple[str, Baseline]:
    """The file as it is (empty where there is none), and as it would be with the run's failures in it.

    run: a run's folder, or its file in a store. patterns: globs or substrings of case ids; only failures that one of
    them matches are taken. Raises StoreError when the run cannot be read, and ExpectationError.
    """
    rows = open_single(run, target).rows
    failures = [
        Found(row.case_id, row.status)
        for row in rows
        if row.reading == FAILURE and (not patterns or any(matches(row.case_id, pattern) for pattern in patterns))
    ]
    taken = {found.case_id for found in failures}
    others = [row.case_id for row in rows if row.case_id not in taken]
    existing = _read(file)
    return existing, expectation_file.baseline(existing, str(file), failures, others, reason, link)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ExpectationError(f"expectations '{file}' cannot be read: {error}") from None


@app.command()
def expect(
    run: Annotated[Path, typer.Option("--from", metavar="RUN", help="A run's folder, or its file in a store.")],
    reason: Annotated[str, typer.Option(help="Why these failures are tolerated for now.")],
    file: Annotated[Path, typer.Option(help="The TOML file of expectations.", dir_okay=False)] = DEFAULT_FILE,
    link: Annotated[str, typer.Option(help="Where they are discussed.")] = "",
    target: Annotated[str | None, typer.Option(help="Which target of the run, where it has several.")] = None,
    pattern: Annotated[
        list[str] | None, typer.Option("-k", help="Only failures of these cases: a glob or substring; repeat for more.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Change the file. Without it, the diff is only shown.")
    ] = False,
) -> None:
    """Expect the failures of a run from now on, with a reason, and show the diff. `--write` keeps it.

    A glob is written only where every case that it matches fails; `epcheck run --expect FILE` uses the file.
    """
    with failure.one_sentence():
        existing, found = expected_from(run, file, reason, link, target, tuple(pattern or ()))
        if not found.added:
            typer.echo(f"{file}: nothing to add; {found.covered:,} failures are expected already", err=True)
            return
        typer.echo(expectation_file.diff(existing, found.text, str(file)), nl=False)
        if write:
            with replacing(file) as opened:
                opened.write(found.text.encode("utf-8"))
        done = "written" if write else "not written; --write does"
        typer.echo(f"{file}: {found.added:,} failures are expected with it ({done})", err=True)
