"""`epcheck coverage`: what a provider claims, and what the suite, or a run of it, says of each claim."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Column, Table

from epcheck import reports
from epcheck.cli.terminal import failure
from epcheck.conformance.judging import coverage
from epcheck.conformance.judging.coverage import FAILING, MISSING, UNREACHABLE, Triple
from epcheck.conformance.records import strict_json
from epcheck.generators.claims import PROVIDERS, claims_of

app = typer.Typer(add_completion=False)

STATES = (coverage.COVERED, coverage.PASSING, FAILING, coverage.UNPLACED, UNREACHABLE, MISSING)


@app.command()
def command(
    run: Annotated[
        Path | None,
        typer.Option("--run", help="A run's folder: what it says of each claim, not only whether there is a case."),
    ] = None,
    provider: Annotated[str, typer.Option(help="Whose claims.")] = PROVIDERS[0],
    each: Annotated[bool, typer.Option("--all", help="Print every claim, not only those without a case.")] = False,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every claim as JSON.")] = None,
) -> None:
    """Print the claims of a provider, operator by version by dtype, with what is known of them.

    Exit status 1 when a claim that a case could reach has none.
    """
    with failure.one_sentence():
        claims = claims_of(provider)
        if claims is None:
            failure.say(f"provider '{provider}' has no claim table; there is one of {', '.join(PROVIDERS)}")
            raise typer.Exit(failure.CANNOT)
        if run is None:
            triples = list(coverage.of_suite(claims))
        else:
            triples = list(coverage.of_run(claims, coverage.tally(reports.read_records(run))))
        show(triples, each)
        if json:
            document = [_as_json(triple) for triple in triples]
            json.write_text(strict_json.dumps(document) + "\n", encoding="utf-8", newline="\n")
    if any(triple.state == MISSING for triple in triples):
        raise typer.Exit(failure.FAILURES)


def show(triples: Iterable[Triple], each: bool) -> None:
    """One line for each operator, then the claims without a case, and why others cannot be reached."""
    triples = list(triples)
    states = [state for state in STATES if any(triple.state == state for triple in triples)]
    table = Table(Column("operator", no_wrap=True), "versions", box=box.SIMPLE)
    for heading in ("claims", *states):
        table.add_column(heading, justify="right")
    for operator in dict.fromkeys(triple.operator for triple in triples):
        own = [triple for triple in triples if triple.operator == operator]
        versions = ", ".join(map(str, sorted({triple.key[2] for triple in own})))
        counts = Counter(triple.state for triple in own)
        table.add_row(operator, versions, str(len(own)), *(str(counts[state] or "") for state in states))
    Console(width=None if sys.stdout.isatty() else 200, highlight=False, emoji=False).print(table)
    for triple in triples:
        if each or triple.state == MISSING:
            said = ", ".join(f"{count} {status}" for status, count in sorted(triple.statuses.items())) or triple.why
            typer.echo(f"{triple.state:11} {_name(triple)}{f': {said}' if said else ''}")
    for why, count in Counter(t.why for t in triples if t.state == UNREACHABLE).most_common():
        typer.echo(f"{count:5} unreachable: {why}")
    counts = Counter(triple.state for triple in triples)
    reachable = len(triples) - counts[UNREACHABLE]
    typer.echo(
        f"{len(triples):,} claims of {len({t.operator for t in triples})} operators, {reachable:,} can be reached: "
        + ", ".join(f"{counts[state]:,} {state}" for state in states if state != UNREACHABLE)
    )


def _name(triple: Triple) -> str:
    return f"{triple.operator}-{triple.key[2]} {triple.dtype}"


def _as_json(triple: Triple) -> dict[str, object]:
    domain, operator, since_version = triple.key
    return {
        "domain": domain, "operator": operator, "since_version": since_version, "dtype": triple.dtype,
        "state": triple.state, "why": triple.why, "statuses": dict(triple.statuses),
    }  # fmt: skip
