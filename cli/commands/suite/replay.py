"""`epcheck replay`: a folder with a model and test data, run on targets and judged."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from epcheck.api.suite.replay import ReplayOptions, on_cpu, replay
from epcheck.cli.options import command
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.terminal import Terminal
from epcheck.conformance.records import terms
from epcheck.conformance.records.record import Record
from epcheck.models.validation.names import shorten_words

app = typer.Typer(add_completion=False)


@command(app, ReplayOptions)
def run_folder(options: ReplayOptions) -> int:
    """Run a model with its test data on targets: any ONNX test-data folder, or one written by `epcheck repro`.

    Exit code: 0 every target gives the expected outputs, 1 one does not, 2 bad input or it could not run.
    """
    terminal = Terminal()
    passed = True
    elsewhere: dict[str, set[str]] = {}
    for item in replay(options):
        passed &= item.status == terms.PASS
        elsewhere.setdefault(item.candidate.target, set()).update(on_cpu(item))
        for line in words(item):
            terminal.print(shorten_words(line))
    for target, operators in elsewhere.items():
        if operators:
            terminal.print(
                f"{target}: on the CPU provider ran {', '.join(sorted(operators))}; epcheck validate says why"
            )
    return exit_codes.GOOD if passed else exit_codes.FAILURES


def words(item: Record) -> Iterable[str]:
    """A verdict as lines of plain text: the status, who, why, and the first wrong elements."""
    opinion = item.candidate
    why = opinion.message or "gives the expected outputs"
    yield f"{item.status}: {item.case.sample}: {opinion.target}: {why}"
    for difference in opinion.differences:
        for wrong in difference.first:
            ulp = "" if wrong.ulp is None else f", {wrong.ulp:g} ULP away"
            yield f"  {difference.output}{list(wrong.at)}: expected {wrong.expected}, got {wrong.got}{ulp}"
    for way in item.variants:
        yield f"  {way.variant}: {way.state}{f': {way.reason}' if way.reason else ''}"
    if item.baseline is not None and item.baseline.status != terms.PASS:
        yield f"  {item.baseline.target}, the baseline: {item.baseline.status}: {item.baseline.message}"
