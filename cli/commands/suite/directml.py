"""`epcheck directml`: DirectML's operators called directly, held to their pages and to their device's own claims."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Column, Table

from epcheck.cli.terminal import failure
from epcheck.conformance.directml import probing
from epcheck.conformance.directml.client import Directly
from epcheck.conformance.directml.probing import JUDGEMENTS, LOST, NOT_COMPILED, Border, Probed
from epcheck.conformance.records import strict_json
from epcheck.conformance.targets import target as targets
from epcheck.conformance.targets.target import TargetError
from epcheck.generators.directml.call import operators
from epcheck.generators.directml.probes import probes
from epcheck.generators.suite import lowerings
from epcheck.reports.page import device_claims as device_claims
from epcheck.reports.page.device_claims import Claims

app = typer.Typer(add_completion=False)


@app.command()
def command(
    target: Annotated[str, typer.Option("--target", "-t", help="directml, or directml@RELEASE.")] = targets.DIRECTML,
    borders: Annotated[
        bool, typer.Option("--borders", help="Also ask of every operator what it takes and what it refuses.")
    ] = False,
    op: Annotated[list[str] | None, typer.Option("--op", help="With --borders: a DirectML operator, SLICE1.")] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write all that was found as JSON.")] = None,
) -> None:
    """Call what ONNX cannot say: flags, layouts, ownership; compare the device's claims with the documented ones.

    Exit code: 0 as it should be, 1 a probe is wrong or a process ended, 2 it could not run.
    """
    console = Console(width=None if sys.stdout.isatty() else 200, emoji=False, highlight=False)
    with failure.one_sentence():
        known = [name.removeprefix("DML_").removesuffix("_OPERATOR_DESC") for name in operators()]
        if unknown := [name for name in op or () if name not in known]:
            raise TargetError(f"unknown DirectML operator '{unknown[0]}'; one is called SLICE1")
        resolved = targets.resolve(target)
        if not resolved.direct:
            raise TargetError(f"target '{target}' does not call DirectML directly; 'directml' does")
        with Directly(resolved) as directml:
            probed = [probing.run_probe(directml, probe) for probe in probes()]
            claims = device_claims.claims(directml.facts)
            found = _borders(directml, op or ()) if borders or op else []
        show(console, probed, claims, found)
        if json:
            document = {
                "facts": dict(directml.facts),
                "claims": None if claims is None else dataclasses.asdict(claims),
                "probes": [dataclasses.asdict(one) for one in probed],
                "borders": [dataclasses.asdict(one) for one in found],
            }
            json.write_text(strict_json.dumps(document) + "\n", encoding="utf-8", newline="\n")
    if any(one.wrong for one in probed) or any(one.judgement == LOST for one in found):
        raise typer.Exit(failure.FAILURES)


def show(console: Console, probed: list[Probed], claims: Claims | None, found: list[Border]) -> None:
    """The claims, the probes by group, what is wrong, and how often page and device agree."""
    if claims is not None:
        console.print(f"device: {claims.level}, tensors of {', '.join(claims.data_types)}", markup=False)
        for difference in claims.differences or ("its claims are the documented ones",):
            console.print(f"  {difference}", markup=False)
    for group in dict.fromkeys(one.id.partition("/")[0] for one in probed):
        own = [one for one in probed if one.id.startswith(f"{group}/") and not one.left_out]
        console.print(f"{group}: {sum(not one.wrong for one in own)} of {len(own)} right")
    for one in probed:
        if one.wrong or one.left_out:
            console.print(f"  {one.id}: {one.wrong or f'left out: {one.left_out}'}", markup=False)
    if found:
        _show_borders(console, found)


def _show_borders(console: Console, found: list[Border]) -> None:
    table = Table(Column("operator", no_wrap=True), box=box.SIMPLE)
    for judgement in JUDGEMENTS:
        table.add_column(judgement, justify="right")
    for operator, counts in probing.tally(found).items():
        table.add_row(operator, *(str(counts[judgement] or "") for judgement in JUDGEMENTS))
    console.print(table)
    for border in found:
        if border.judgement in (LOST, NOT_COMPILED) or (border.documented and border.judgement.startswith("only")):
            console.print(f"{border.operator} {border.what}: {border.judgement}: {border.said}", markup=False)


def _borders(directml: Directly, wanted: Collection[str]) -> list[Border]:
    names = {f"DML_{name}_OPERATOR_DESC" for name in wanted}
    chosen = (one.description for one in lowerings() if not names or one.description.NAME in names)
    return [border for valid in chosen for border in probing.borders(directml, valid)]
