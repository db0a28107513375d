"""`epcheck show`: one case in the terminal, what a run recorded of it, and what a target makes of it now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import typer

from epcheck.api.suite.show import Shown, ShowOptions, show
from epcheck.api.suite.shown_case import ShownCase, ShownTensor
from epcheck.cli.options import command
from epcheck.cli.output import AsJson, choose_progress
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.colours import COLOURS
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.conformance.records import strict_json
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record

app = typer.Typer(add_completion=False)

SCHEMA = 1
"""Of the document that `--json` prints; a reader refuses a newer one."""


@dataclass(frozen=True)
class ShowCaseOptions(ShowOptions):
    """What is shown, and how."""

    json: AsJson = False


@command(app, ShowCaseOptions)
def show_case(options: ShowCaseOptions) -> int:
    """Show one case: its model, feeds, true result and claims, what a run recorded of it, and what a target makes of it
    now.

    Exit code: 0 shown, 1 --target fails the case, 2 bad input or it could not run.
    """
    shown = show(options, progress=choose_progress(quiet=False, json=options.json))
    terminal = Terminal()
    if options.json:
        terminal.print_document(make_document(shown))
    else:
        _show_case(terminal, shown.case)
        _show_records(terminal, shown)
        terminal.print()
        terminal.print(("Reproduce", "bold"))
        terminal.print(f"  {shown.repro}")
    return exit_codes.GOOD if shown.conforms else exit_codes.FAILURES


def make_document(shown: Shown) -> str:
    """`schema` (SCHEMA), `case` (a ShownCase), `run` (the folder, or null), `records` and `now` (each a Record with the
    fields that its journal has, or null), `repro`."""
    fields = {
        "schema": SCHEMA,
        "case": asdict(shown.case),
        "run": None if shown.run is None else str(shown.run),
        "records": [record.to_fields() for record in shown.records],
        "now": shown.now and shown.now.to_fields(),
        "repro": shown.repro,
    }
    return strict_json.dumps(fields)


def _show_case(terminal: Terminal, case: ShownCase) -> None:
    opsets = ", ".join(f"{domain} {version}" for domain, version in case.opsets.items())
    terminal.print(case.case_id, style="bold")
    terminal.print()
    terminal.print(("Model", "bold"), f", opset {opsets}")
    for node in case.nodes:
        named = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        terminal.print(f"  {named}({', '.join(node.inputs)}) → {', '.join(node.outputs)}")
        for name, value in node.attributes.items():
            terminal.print(f"    {name} = {value}")
    weights = [("initializer", each) for each in case.initializers]
    _print_tensors(terminal, [*(("input", each) for each in case.inputs), *weights])
    terminal.print()
    terminal.print(("Feeds", "bold"), "" if case.feeds else ": none")
    _print_tensors(terminal, [("", each) for each in case.feeds])
    terminal.print()
    terminal.print(("Expected", "bold"), f": {case.expects}")
    _print_tensors(terminal, [("", output.tensor) for output in case.truth])
    for output in case.truth:
        terminal.print(f"  {output.tensor.name}: each element {output.bound}")
    terminal.print()
    terminal.print(("Claims", "bold"))
    for claim in case.claims:
        terminal.print(f"  {claim.provider}: {claim.why_not or 'claimed'}")


def _print_tensors(terminal: Terminal, rows: Sequence[tuple[str, ShownTensor]]) -> None:
    """A row for each: what it is, name, dtype, shape and the first elements."""
    table = Table(header=False, indented=True)
    for whole in (True, True, True, False):
        table.add_column("", whole=whole, fold=not whole)
    for what, tensor in rows:
        name = f" {what} {tensor.name}".replace("  ", " ")
        table.add_row(name, tensor.dtype, f"[{', '.join(tensor.shape)}]", tensor.elements)
    if rows:
        terminal.print_table(table)


def _show_records(terminal: Terminal, shown: Shown) -> None:
    for title, records in ((f"Run {shown.run}", shown.records), ("Now", (shown.now,) if shown.now else ())):
        if records:
            terminal.print()
            terminal.print((title, "bold"))
        for record in records:
            _show_record(terminal, record)


def _show_record(terminal: Terminal, record: Record) -> None:
    """The verdict, then what each target said."""
    claimed = {True: ", claimed", False: ", not claimed", None: ""}[record.claimed]
    blame = f", blame: {record.blame}" if record.blame else ""
    terminal.print(
        f"  {record.candidate.target}: ",
        (record.reading, COLOURS[record.reading]),
        f" ({record.status}{claimed}{blame})",
    )
    terminal.print(f"    {record.reason}")
    if record.expectation is not None:
        terminal.print(f"    expected: {record.expectation.reason}")
    for line in _differences(record.candidate):
        terminal.print(f"    {line}")
    if record.baseline is not None:
        terminal.print(
            f"  {record.baseline.target}, the baseline: {record.baseline.status} {record.baseline.message}".rstrip()
        )
        for line in _differences(record.baseline):
            terminal.print(f"    {line}")
    if record.direct is not None:
        terminal.print(f"  DirectML, called directly: {record.direct.blame}: {record.direct.opinion.status}")
    for oracle, words in record.oracles.items():
        terminal.print(f"  oracle {oracle}: {words}")
    for way in record.variants:
        terminal.print(f"  {way.variant}: {way.state}{f': {way.reason}' if way.reason else ''}")


def _differences(opinion: Opinion) -> Iterator[str]:
    """Of each wrong output the first wrong element."""
    for difference in opinion.differences:
        for wrong in difference.first[:1]:
            ulp = "" if wrong.ulp is None else f", {wrong.ulp:g} ULP away"
            yield f"first wrong: {difference.output}{list(wrong.at)}: expected {wrong.expected}, got {wrong.got}{ulp}"
