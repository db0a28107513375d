"""What the terminal shows of a comparison: the verdict, what is behind it by kind, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from epcheck.api.suite.repro import repro_command
from epcheck.cli.terminal.plain import safe
from epcheck.reports.diff.assessment import DIFFERS, FIRST, GOOD, SAME, WORSE, Assessment
from epcheck.reports.diff.classification import (
    APPEARED,
    FLAPPING,
    KINDS,
    NOT_RUN,
    OTHERWISE,
    REGRESSION,
    REPAIRED,
    TOLERATED,
    VANISHED,
)
from epcheck.reports.diff.difference import Difference
from epcheck.reports.diff.formatting import (
    PHASES,
    format_accuracy,
    format_bisect,
    format_change,
    format_count,
    format_run,
    format_speed,
)
from epcheck.reports.diff.wording import NIGHTS, Wording, wording

SHOWN = {REGRESSION: 12, FLAPPING: 6, NOT_RUN: 3, REPAIRED: 6, OTHERWISE: 6, TOLERATED: 3, APPEARED: 3, VANISHED: 3}
"""Kinds whose groups are listed, and how many of them; what still fails is only counted."""

DRIFTS = 6
"""Lines of each drift that are listed."""

REASON = 300
COLOURS = {
    REGRESSION: "bold red",
    NOT_RUN: "yellow",
    FLAPPING: "magenta",
    REPAIRED: "green",
    WORSE: "bold red",
    GOOD: "bold green",
    FIRST: "bold blue",
    SAME: "bold green",
    DIFFERS: "bold blue",
}


def show(console: Console, assessment: Assessment) -> None:
    """Print an assessment and what is behind it."""

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    difference = assessment.difference
    if difference:
        words = wording(difference.sides)
        width = max(6, *map(len, words.columns))
        for name, run in zip(words.columns, (difference.older, difference.newer), strict=True):
            say(f"{safe(name):<{width}}  {safe(format_run(run))}")
        if difference.groups:
            console.print(_counts(difference))
        for kind, most in SHOWN.items():
            for line in _groups(difference, kind, most, words):
                say(line)
        for line in _drifts(difference):
            say(line)
    colour = COLOURS.get(assessment.result, "bold yellow")
    say(f"[{colour}]{safe(assessment.title)}[/]  {safe(assessment.sentences)}")


def _counts(difference: Difference) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("", "cases", "groups"):
        table.add_column(name, justify="left" if not name else "right")
    words = wording(difference.sides)
    for kind in KINDS:
        if groups := difference.of(kind):
            name = f"[{COLOURS.get(kind, 'bold')}]{safe(words.names[kind])}[/] [dim]{safe(words.meanings[kind])}[/]"
            table.add_row(name, f"{difference.cases(kind):,}", f"{len(groups):,}")
    return table


def _groups(difference: Difference, kind: str, most: int, words: Wording) -> Iterator[str]:
    groups = difference.of(kind)
    for group in groups[:most]:
        reason = group.reason if len(group.reason) <= REASON else f"{group.reason[:REASON]}…"
        yield (
            f"[{COLOURS.get(group.kind, 'bold')}]{safe(words.names[group.kind])}[/] {safe(group.operator)} "
            f"{safe(group.sample)} ({format_count(len(group.case_ids))}, {format_change(group, words.between)}, "
            f"blame: {group.blame or 'nobody'}): {safe(reason)}"
        )
        if group.kind in (REGRESSION, FLAPPING):
            yield f"  reproduce: {safe(repro_command(group.case_ids[0]))}"
        if command := format_bisect(difference, group):
            yield f"  since which release: {safe(command)}"
    if len(groups) > most:
        yield f"… and {len(groups) - most:,} more groups that are {safe(words.names[groups[0].kind])}"


def _drifts(difference: Difference) -> Iterator[str]:
    words = wording(difference.sides)
    accuracy = [
        f"{safe(drift.operator)} {safe(drift.dtype)} {safe(drift.sample)}: {format_accuracy(drift, words.between)} "
        f"({format_count(len(drift.case_ids))})"
        for drift in difference.accuracy
    ]
    speed = [
        f"{safe(drift.operator) or 'all operators together'}, {PHASES[drift.phase]}: {format_speed(drift)}"
        for drift in difference.speed
    ]
    placement = [
        f"{safe(drift.operator)}: {safe(drift.older)}{words.between}{safe(drift.newer)} "
        f"({format_count(len(drift.case_ids))})"
        for drift in difference.placement
    ]
    for name, lines in zip(_headings(words), (accuracy, speed, placement), strict=True):
        yield from (f"[bold]{name}[/] {line}" for line in lines[:DRIFTS])
        if len(lines) > DRIFTS:
            yield f"… and {len(lines) - DRIFTS:,} more lines of {name}"


def _headings(words: Wording) -> tuple[str, str, str]:
    """Of less accurate cases, of speed and of placement: short for nights."""
    if words is NIGHTS:
        return "less accurate", "speed", "placement"
    return safe(words.accuracy), safe(words.speed), safe(words.placement)
