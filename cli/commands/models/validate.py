"""`epcheck validate`: does a model load on a target, where does it run, is it right; if not, which node is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from epcheck.cli.terminal import failure
from epcheck.cli.terminal.plain import safe
from epcheck.conformance.records import strict_json
from epcheck.conformance.targets.target import TargetError
from epcheck.models.accuracy.thresholds import Override
from epcheck.models.execution.asking import LEVELS
from epcheck.models.execution.session import DEADLINE_S, Level
from epcheck.models.feeds.dims import DimsError
from epcheck.models.validation import page
from epcheck.models.validation.document import document
from epcheck.models.validation.formatting import byte_size, failures, number, percent, reduce_command
from epcheck.models.validation.formatting import failure as failure_of
from epcheck.models.validation.options import SEEDS, ValidateOptions
from epcheck.models.validation.validate import validate
from epcheck.models.validation.validation import RIGHT, Validation

app = typer.Typer(add_completion=False)

COLOURS = {"right": "green", "error": "red", "warning": "yellow", "note": "blue"}

SHOWN = 12
"""Rows of each table in the terminal; the page has all."""

WIDTH = 120
"""Characters of a line that goes to no terminal; rich takes 80."""


@app.command()
def command(
    model: Annotated[Path, typer.Argument(help="An ONNX model; its external data lies beside it.")],
    target: Annotated[str | None, typer.Option("--target", "-t", help="Candidate. Default: the best.")] = None,
    baseline: Annotated[str | None, typer.Option(help="Target to compare with; 'none': load and place only.")] = None,
    given: Annotated[
        Path | None, typer.Option("--feeds", help="An .npz or a folder of ONNX test data; generated otherwise.")
    ] = None,
    dim: Annotated[
        list[str] | None, typer.Option(metavar="NAME=SIZE,...", help="Sizes of a dynamic dimension; repeat.")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Of generated feeds; repeat. Default: 0 and 1.")] = None,
    level: Annotated[str, typer.Option(help=f"Graph optimisation: {', '.join(LEVELS)}.")] = "all",
    rtol: Annotated[float | None, typer.Option(min=0, help="Relative error that is allowed, in place of ours.")] = None,
    snr: Annotated[float | None, typer.Option(help="Signal to noise in dB that is wanted, in place of ours.")] = None,
    agreement: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of equal elements that integer outputs need.")
    ] = None,
    bisect: Annotated[bool, typer.Option(help="Look for the node at fault.")] = True,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for each step of a session.")] = DEADLINE_S,
    vulkan: Annotated[Path | None, typer.Option(metavar="ICD.json", help="Vulkan driver of the lab.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the page here. Default: MODEL.validation.html")] = None,
    json: Annotated[Path | None, typer.Option(help="Write everything as JSON here.")] = None,
) -> None:
    """Validate a model on a target: does it load, where does each node run and why, is it right, which node is wrong.

    Exit code: 0 it runs and is right, 1 it does not load, fails or is wrong, 2 bad input or it could not run.
    """
    console = Console(emoji=False, highlight=False, soft_wrap=True)
    console.width = console.width if console.is_terminal else WIDTH
    with failure.one_sentence():
        override = Override(rtol, snr, agreement)
        sizes = parse_dims(dim or ())
        with _live(console) as say:
            options = ValidateOptions(
                target, baseline, given, sizes, tuple(seed or SEEDS), chosen_level(level), override, bisect, timeout,
                vulkan,
            )  # fmt: skip
            validation = validate(model, options, say)
        out = html or model.with_name(f"{model.name}.validation.html")
        page.write(validation, out)
        if json is not None:
            json.parent.mkdir(parents=True, exist_ok=True)
            json.write_text(strict_json.dumps(document(validation)), encoding="utf-8")
        show(console, validation)
        console.print(f"Page: {safe(str(out))}")
    raise typer.Exit(failure.GOOD if validation.status == RIGHT else failure.FAILURES)


@contextmanager
def _live(console: Console) -> Iterator[Callable[[str], None]]:
    """Where to say what is being done: a line that changes, and nothing in a log."""
    if not console.is_terminal:
        yield lambda _part: None
        return
    with console.status("") as status:
        yield lambda part: status.update(escape(part))


def chosen_level(name: str) -> Level:
    """The optimisation level of that name. Raises TargetError."""
    for level in LEVELS:
        if level == name:
            return level
    raise TargetError(f"there is no level '{name}'; choose one of {', '.join(LEVELS)}")


def parse_dims(words: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
    """`batch=1,4` -> {"batch": (1, 4)}. Raises DimsError."""
    found: dict[str, tuple[int, ...]] = {}
    for word in words:
        name, equals, sizes = word.rpartition("=")
        try:
            found[name] = tuple(int(size) for size in sizes.split(","))
        except ValueError:
            equals = ""
        if not equals:
            raise DimsError(f"--dim {word}: write a name and sizes, for example --dim batch=1,4")
    return found


def show(console: Console, validation: Validation) -> None:
    """A validation in the terminal, in the order of its questions."""

    def say(text: str, style: str = "") -> None:
        console.print(safe(text), style=style)

    say("1. Will it load?", "bold")
    for finding in validation.inspection.findings:
        say(f"   {finding.severity}: {finding.text}", COLOURS[finding.severity])
        if finding.suggestion:
            say(f"      → {finding.suggestion}")
    size = f"{byte_size(validation.inspection.bytes)}, {validation.inspection.nodes} nodes"
    say(f"   {size}, opsets {', '.join(f'{d} {v}' for d, v in validation.inspection.opsets)}")
    if (placed := validation.placement) is not None:
        say("2. Where does it run, and why?", "bold")
        say(f"   {placed.count(placed.provider)} nodes on {placed.provider}, {len(placed.elsewhere)} elsewhere; "
            f"{percent(placed.share)} of the arithmetic; {_several(placed.partitions, 'partition')}, "
            f"{len(placed.copies)} {'copy' if len(placed.copies) == 1 else 'copies'} "
            f"of {'' if placed.is_exact else 'at least '}{byte_size(placed.copied_bytes)} in each run")  # fmt: skip
        if placed.best_opset:
            say(f"   with opset {placed.best_opset[0]} there would be kernels for {placed.best_opset[1]} nodes")
        for group in page.grouped(placed)[:SHOWN]:
            named = ", ".join(group.names[:3]) + (" …" if len(group.names) > 3 else "")
            say(f"   {group.operator} × {len(group.names)} on {group.provider}: {group.reason} ({named})")
            if group.suggestion:
                say(f"      → {group.suggestion}")
    say("3. Is it right?", "bold")
    for trials, step in failures(validation.steps):
        say(f"   {step.target}, {trials}: {failure_of(step)}: {step.message}", "red")
    for step in validation.steps:
        if step.repeat_differs or step.unwritten:
            changed = ", ".join((*step.repeat_differs, *step.unwritten))
            say(f"   {step.target}, {step.trial}: a second run gives something else for {changed}", "red")
    if validation.verdicts:
        console.print(_table(validation))
        if len(validation.verdicts) > SHOWN:
            say(f"   and {len(validation.verdicts) - SHOWN} more, which the page has")
        for one in validation.verdicts:
            if not one.right:
                say(f"   {one.output}, {one.trial}, against {one.against}: {one.why}", "red")
    if validation.culprit is not None:
        say("4. Which node is wrong?", "bold")
        say(f"   {validation.culprit.words}")
        say("5. Reproduce it", "bold")
        say(f"   {reduce_command(validation)}")
    say(validation.headline, f"bold {COLOURS.get(validation.status, 'red')}")


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _table(validation: Validation) -> Table:
    table = Table(box=None, pad_edge=True)
    for name in ("output", "trial", "against", "verdict"):
        table.add_column(name, no_wrap=name != "output", overflow="fold")
    for name in ("max abs", "max ULP", "cosine", "SNR dB", "top-1"):
        table.add_column(name, justify="right")
    ordered = sorted(validation.verdicts, key=lambda one: one.right)
    for one in ordered[:SHOWN]:
        metrics = one.metrics
        figures = (
            (number(metrics.max_abs), number(metrics.max_ulp), f"{metrics.cosine:.6g}", number(metrics.snr_db),
             percent(metrics.top1)) if metrics else ("", "", "", "", "")
        )  # fmt: skip
        words = (one.output, one.trial, one.against, "right" if one.right else "WRONG", *figures)
        table.add_row(*(safe(word) for word in words), style="" if one.right else "red")
    return table
