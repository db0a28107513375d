"""What the terminal shows of a comparison: the verdict, what is behind it by kind, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from epcheck.cli.terminal.plain import safe
from epcheck.conformance.test_data import repro
from epcheck.reports.diff.difference import (
    APPEARED,
    FLAPPING,
    KINDS,
    NOT_RUN,
    OTHERWISE,
    REGRESSION,
    REPAIRED,
    TOLERATED,
    VANISHED,
    Difference,
    Group,
)
from epcheck.reports.diff.verdict import FIRST, GOOD, WORSE, Verdict
from epcheck.reports.diff.words import (
    PHASES,
    accuracy_in_words,
    cases_in_words,
    side_in_words,
    speed_in_words,
    step_in_words,
)

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
}


def show(console: Console, verdict: Verdict) -> None:
    """Print a verdict and what is behind it."""

    def say(line: str) -> None:
        console.print(line, soft_wrap=True, highlight=False)

    difference = verdict.difference
    if difference:
        say(f"before  {safe(side_in_words(difference.older))}")
        say(f"now     {safe(side_in_words(difference.newer))}")
        if difference.groups:
            console.print(_counts(difference))
        for kind, most in SHOWN.items():
            for line in _groups(difference.of(kind), most):
                say(line)
        for line in _drifts(difference):
            say(line)
    colour = COLOURS.get(verdict.word, "bold yellow")
    say(f"[{colour}]{safe(verdict.target)}: {verdict.word}[/]  {safe(verdict.said)}")


def _counts(difference: Difference) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("", "cases", "groups"):
        table.add_column(name, justify="left" if not name else "right")
    for kind, meaning in KINDS.items():
        if groups := difference.of(kind):
            name = f"[{COLOURS.get(kind, 'bold')}]{kind}[/] [dim]{meaning}[/]"
            table.add_row(name, f"{difference.cases(kind):,}", f"{len(groups):,}")
    return table


def _groups(groups: tuple[Group, ...], most: int) -> Iterator[str]:
    for group in groups[:most]:
        reason = group.reason if len(group.reason) <= REASON else f"{group.reason[:REASON]}…"
        yield (
            f"[{COLOURS.get(group.kind, 'bold')}]{group.kind}[/] {safe(group.operator)} {safe(group.sample)} "
            f"({cases_in_words(len(group.case_ids))}, {step_in_words(group)}, blame: {group.blame or 'nobody'}): "
            f"{safe(reason)}"
        )
        if group.kind in (REGRESSION, FLAPPING):
            yield f"  reproduce: {safe(repro.command(group.case_ids[0]))}"
    if len(groups) > most:
        yield f"… and {len(groups) - most:,} more groups that are {groups[0].kind}"


def _drifts(difference: Difference) -> Iterator[str]:
    accuracy = [
        f"{safe(one.operator)} {safe(one.dtype)} {safe(one.sample)}: {accuracy_in_words(one)} "
        f"({cases_in_words(len(one.case_ids))})"
        for one in difference.accuracy
    ]
    speed = [
        f"{safe(one.operator) or 'all operators together'}, {PHASES[one.phase]}: {speed_in_words(one)}"
        for one in difference.speed
    ]
    placement = [
        f"{safe(one.operator)}: {safe(one.older)} → {safe(one.newer)} ({cases_in_words(len(one.case_ids))})"
        for one in difference.placement
    ]
    for name, lines in (("less accurate", accuracy), ("speed", speed), ("placement", placement)):
        yield from (f"[bold]{name}[/] {line}" for line in lines[:DRIFTS])
        if len(lines) > DRIFTS:
            yield f"… and {len(lines) - DRIFTS:,} more lines of {name}"
