"""`epcheck validate`: does a model load on a target, where does it run, is it right; if not, which node is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import typer

from epcheck.api.models.validate import (
    CANNOT_TELL,
    FAILS,
    PASSES,
    Gate,
    ValidateOptions,
    ValidationInterrupted,
    validate,
)
from epcheck.cli.options import command
from epcheck.cli.output import Quiet, choose_progress
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.cli.terminal.text import MESSAGE, brief
from epcheck.models.validation import page
from epcheck.models.validation.faults import Fault, list_faults
from epcheck.models.validation.formatting import (
    NOT_LOOKED_FOR,
    byte_size,
    failures,
    find_tone,
    number,
    percent,
    reduce_command,
    unsuitable,
)
from epcheck.models.validation.formatting import failure as failure_of
from epcheck.models.validation.speed import milliseconds
from epcheck.models.validation.validation import Validation

app = typer.Typer(add_completion=False)

COLOURS = {"right": "green", "unjudged": "yellow", "error": "red", "warning": "yellow", "note": "blue"}

EXIT_CODES = {PASSES: exit_codes.GOOD, FAILS: exit_codes.FAILURES, CANNOT_TELL: exit_codes.CANNOT}
RESULTS = {PASSES: "green", FAILS: "red", CANNOT_TELL: "yellow"}

SHOWN = 12
"""Rows of each table in the terminal; the page has all."""

EXTENDED = 4
"""How many outputs beyond their thresholds and right the terminal explains."""

FAULTS = 3
"""Faults below a headline; the page has all."""

OF_MANY = 400
"""Characters of the sentence on one of several nodes at fault: it may repeat a long message of the runtime."""

WIDTH = 120
"""Characters of a line that goes to no terminal; rich takes 80."""


@dataclass(frozen=True)
class ShownValidation(ValidateOptions):
    """A validation, and how it is shown."""

    quiet: Quiet = False


@command(app, ShownValidation)
def validate_models(options: ShownValidation) -> int:
    """Validate models on targets: do they load, where does each node run and why, are they right, which are wrong.

    Exit code: 0 all run and are right, 1 one does not load, fails, is wrong or breaks a limit of epcheck.toml, 2 it
    cannot be told, bad input, or it could not run.
    """
    terminal = Terminal(width=WIDTH)
    options = replace(options, html=options.html or options.default_page)
    try:
        gate = validate(options, progress=choose_progress(options.quiet))
    except ValidationInterrupted as interrupted:
        show_gate(terminal, interrupted.gate, options)
        raise
    show_gate(terminal, gate, options)
    return EXIT_CODES[gate.result]


def show_gate(terminal: Terminal, gate: Gate, options: ShownValidation) -> None:
    """The result, and where the page is."""
    if options.is_single and gate.checked[0].validation is not None:
        (show_headline if options.quiet else show)(terminal, gate.validation)
        for sentence in gate.checked[0].broken:
            if sentence != gate.validation.headline:
                source = "--strict-nodes" if options.strict_nodes and (
                    sentence == gate.validation.nodes_beyond_bounds) else "epcheck.toml"  # fmt: skip
                terminal.print(brief(f"{sentence} ({source})"), style="bold red")
    else:
        if not options.quiet:
            show_table(terminal, gate)
        terminal.print(gate.headline, style=f"bold {RESULTS[gate.result]}")
    terminal.print(f"Page: {options.html}")
    if gate.stopped and not all(checked.is_finished for checked in gate.checked):
        terminal.print(f"Continue with --resume: {options.state_file}")


def show_table(terminal: Terminal, gate: Gate) -> None:
    """Several models or targets, a row for each."""
    table = Table(indented=True)
    for name in ("model", "target", "result", "placed", "error", "latency"):
        table.add_column(name, fold=True, right=name in ("placed", "error", "latency"))
    for checked in gate.checked:
        validation = checked.validation
        ratio = validation.speeds.ratio if validation and validation.speeds else None
        figures = (percent(validation.placed_share), number(validation.error)) if validation else ("", "")
        cells = (checked.name, checked.target, checked.status, *figures, "" if ratio is None else f"× {ratio:.3g}")
        table.add_row(*cells, style=RESULTS[checked.result])
    terminal.print_table(table)
    for checked in gate.checked:
        if checked.result != PASSES or checked.has_wrong_nodes:
            terminal.print(brief(f"{checked.name} on {checked.target}: {checked.words}"), style=RESULTS[checked.result])
            show_faults(terminal, checked.faults)


def show(terminal: Terminal, validation: Validation) -> None:
    """A validation in the terminal, in the order of its questions."""

    def say(text: str, style: str = "", most: int = MESSAGE) -> None:
        terminal.print(brief(text, most), style=style)

    say("1. Will it load?", "bold")
    for finding in validation.inspection.findings:
        say(f"   {finding.severity}: {finding.text}", COLOURS[finding.severity])
        if finding.suggestion:
            say(f"      → {finding.suggestion}")
    size = f"{byte_size(validation.inspection.bytes)}, {validation.inspection.nodes} nodes"
    say(f"   {size}, opsets {', '.join(f'{d} {v}' for d, v in validation.inspection.opsets)}")
    _show_placement(say, validation)
    say("3. Is it right?", "bold")
    for trials, step in failures(validation.steps):
        why = unsuitable(validation, step)
        say(f"   {step.target}, {trials}: {failure_of(step)}: {step.message}", "yellow" if why else "red")
        if why:
            say(f"      → {why}")
    for step in validation.steps:
        if step.repeat_differs or step.unwritten:
            changed = ", ".join((*step.repeat_differs, *step.unwritten))
            say(f"   {step.target}, {step.trial}: a second run changes {changed}", "red")
    if validation.verdicts:
        terminal.print_table(_table(validation))
        _show_verdicts(say, validation)
    say(f"   {validation.truth}")
    if validation.nodes_judged:
        say(f"   {validation.nodes_judged}", "yellow" if validation.wrong_nodes else "")
    _show_departures(say, validation)
    _show_generation(say, validation)
    if validation.is_settled and validation.wrong_nodes:
        say("4. Which nodes are wrong?", "bold")
        _show_culprits(say, validation)
    if not validation.is_settled:
        _show_wrong_nodes(say, validation)
        say("5. Reproduce it", "bold")
        terminal.print(f"   {reduce_command(validation)}")
    if validation.speeds:
        say("6. How fast is it?", "bold")
        say(f"   {validation.speeds.words}")
        for node in validation.speeds.candidate.nodes[:3]:
            where = f"{node.name} ({node.operator}, {node.provider})"
            say(f"   {milliseconds(node.seconds)} ms, {percent(node.share)}: {where}")
    show_headline(terminal, validation)
    show_faults(terminal, list_faults(validation))


def show_faults(terminal: Terminal, faults: Sequence[Fault]) -> None:
    """What to do about each fault, and the command that shows it again."""
    for fault in faults[:FAULTS]:
        terminal.print(brief(f"   {f'{fault.where}: ' if fault.where else ''}→ {fault.remedy}", OF_MANY))
        terminal.print(f"      reproduce: {fault.command}")
    if len(faults) > FAULTS:
        terminal.print(f"   and {len(faults) - FAULTS} more: see the page")


def _show_placement(say: Callable[..., None], validation: Validation) -> None:
    """Where the nodes run, and why."""
    placed = validation.placement
    if placed is None:
        return
    say("2. Where does it run, and why?", "bold")
    say(f"   {placed.count(placed.provider)} nodes on {placed.provider}, {len(placed.elsewhere)} elsewhere; "
        f"{percent(placed.share)} of the arithmetic; {_several(placed.partitions, 'partition')}, "
        f"{len(placed.copies)} {'copy' if len(placed.copies) == 1 else 'copies'} "
        f"of {'' if placed.is_exact else 'at least '}{byte_size(placed.copied_bytes)} in each run"
        f"{_copying(validation)}")  # fmt: skip
    if placed.best_opset:
        opset, nodes = placed.best_opset
        versions = f"there are kernels for the versions of {_several(nodes, 'node')}, if they can be written so"
        say(f"   with opset {opset} {versions}")
    for group in page.group_by_reason(placed)[:SHOWN]:
        named = ", ".join(group.names[:3]) + (" …" if len(group.names) > 3 else "")
        say(f"   {group.what} on {group.provider}: {group.reason} ({named})")
        if group.what_to_do:
            say(f"      → {group.what_to_do}")


def show_headline(terminal: Terminal, validation: Validation) -> None:
    """The verdict on a model."""
    terminal.print(brief(validation.headline), style=f"bold {COLOURS.get(find_tone(validation), 'red')}")


def _show_verdicts(say: Callable[..., None], validation: Validation) -> None:
    """What the table of outputs does not say: why one is wrong or undecided, or right beyond its threshold."""
    if len(validation.verdicts) > SHOWN:
        say(f"   and {len(validation.verdicts) - SHOWN} more: see the page")
    for found in validation.verdicts:
        if not found.right:
            colour = "red" if found.wrong else "yellow"
            say(f"   {found.output}, {found.trial}, against {found.against}: {found.why}", colour)
    beyond = [found for found in validation.verdicts if found.is_extended]
    for found in beyond[:EXTENDED]:
        say(f"   {found.output}, {found.trial}, against {found.against}: right, but: {found.why}")
    if len(beyond) > EXTENDED:
        say(f"   and {len(beyond) - EXTENDED} more that are right beyond their thresholds: see the page")


def _show_departures(say: Callable[..., None], validation: Validation) -> None:
    """The model next to the one that it was made from."""
    if validation.reference is not None:
        say(f"   {validation.reference.words}")
    for departure in validation.departures[:SHOWN]:
        say(f"   {departure.words}", "red", 2 * OF_MANY)


def _show_generation(say: Callable[..., None], validation: Validation) -> None:
    """Each mode in which the model was decoded."""
    found = validation.generation
    if found is None:
        return
    say(f"   decoded with its cache, {_several(found.steps, 'token')} behind a prompt of {found.prompt}; {found.truth}")
    for mode in found.modes:
        colour = {"WRONG": "red", "right": ""}.get(mode.result, "yellow")
        words = f" {mode.words}" if mode.fault else f" {mode.name}{f': {mode.words}' if mode.words else ''}"
        say(f"   {mode.result}{words}", colour, 2 * OF_MANY)


def _show_wrong_nodes(say: Callable[..., None], validation: Validation) -> None:
    say("4. Which nodes are wrong?", "bold")
    _show_culprits(say, validation)
    if validation.benign_nodes:
        count = _several(len(validation.benign_nodes), "further node")
        say(f"   {count} beyond the operator's bound, without effect on the outputs: see the page")
    if left := validation.unexplained or ("" if validation.culprit else NOT_LOOKED_FOR):
        say(f"   {left}")


def _show_culprits(say: Callable[..., None], validation: Validation) -> None:
    """The nodes at fault; where the outputs are right, those that are wrong alone."""
    culprits = validation.culprits or validation.wrong_nodes
    most = MESSAGE if len(culprits) == 1 else OF_MANY
    for culprit in culprits[:SHOWN]:
        say(f"   {culprit.words}", most=most)
        if culprit.effect:
            say(f"      {culprit.effect.words}")
        if culprit.advice and not culprit.advice.change:
            say(f"      → {culprit.advice.words}")
    if len(culprits) > SHOWN:
        say(f"   and {len(culprits) - SHOWN} more: see the page")


def _copying(validation: Validation) -> str:
    """How long the copies take, where the candidate's profile says."""
    speed = validation.speeds.candidate if validation.speeds else None
    if speed is None or speed.copies_s is None:
        return ""
    share = percent(speed.copies_share)
    return f"; those within the graph take {milliseconds(speed.copies_s)} ms, {share} of the time of all nodes"


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _table(validation: Validation) -> Table:
    table = Table(indented=True)
    for name in ("output", "trial", "against", "verdict"):
        table.add_column(name, whole=name != "output", fold=True)
    for name in ("max abs", "max ULP", "cosine", "SNR dB", "top-1"):
        table.add_column(name, right=True)
    ordered = sorted(validation.verdicts, key=lambda found: found.right)
    for found in ordered[:SHOWN]:
        metrics = found.metrics
        figures = (
            (number(metrics.max_abs), number(metrics.max_ulp), f"{metrics.cosine:.6g}", number(metrics.snr_db),
             percent(metrics.top1)) if metrics else ("", "", "", "", "")
        )  # fmt: skip
        words = (found.output, found.trial, found.against, found.word, *figures)
        style = "red" if found.wrong else "" if found.right else "yellow"
        table.add_row(*(brief(word) for word in words), style=style)
    return table
