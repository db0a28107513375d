"""What the terminal shows of a comparison: the verdict, what is behind it by kind, and the numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epcheck.api.suite.repro import repro_command
from epcheck.cli.terminal import exit_codes
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.cli.terminal.text import Text, cut, text
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


EXIT_CODES = {
    GOOD: exit_codes.GOOD,
    FIRST: exit_codes.GOOD,
    WORSE: exit_codes.FAILURES,
    SAME: exit_codes.GOOD,
    DIFFERS: exit_codes.FAILURES,
}
"""What the result of a comparison ends a command with; a run that says nothing is never good."""


def choose_exit_code(assessments: Sequence[Assessment]) -> int:
    """0 all as good as before or without a difference, 1 one is worse or differs, 2 one could not be compared."""
    return max((EXIT_CODES.get(each.result, exit_codes.CANNOT) for each in assessments), default=exit_codes.CANNOT)


def show(terminal: Terminal, assessment: Assessment) -> None:
    """Print an assessment and what is behind it."""
    difference = assessment.difference
    if difference:
        words = wording(difference.sides)
        width = max(6, *map(len, words.columns))
        for name, run in zip(words.columns, (difference.older, difference.newer), strict=True):
            terminal.print(f"{name:<{width}}  {format_run(run)}")
        if difference.groups:
            terminal.print_table(_counts(difference))
        for kind, most in SHOWN.items():
            for line in _groups(difference, kind, most, words):
                terminal.print(line)
        for line in _drifts(difference):
            terminal.print(line)
    show_verdict(terminal, assessment)


def show_verdict(terminal: Terminal, assessment: Assessment) -> None:
    """The result of an assessment and its sentences."""
    terminal.print((assessment.title, COLOURS.get(assessment.result, "bold yellow")), f"  {assessment.sentences}")


def _counts(difference: Difference) -> Table:
    table = Table()
    for name in ("", "cases", "groups"):
        table.add_column(name, right=bool(name))
    words = wording(difference.sides)
    for kind in KINDS:
        if groups := difference.of(kind):
            named = text((words.names[kind], COLOURS.get(kind, "bold")), " ", (words.meanings[kind], "dim"))
            table.add_row(named, f"{difference.cases(kind):,}", f"{len(groups):,}")
    return table


def _groups(difference: Difference, kind: str, most: int, words: Wording) -> Iterator[Text]:
    groups = difference.of(kind)
    for group in groups[:most]:
        yield text(
            (words.names[group.kind], COLOURS.get(group.kind, "bold")),
            f" {group.operator}{'' if group.cause else ' ' + group.sample} ({format_count(len(group.case_ids))}, "
            f"{format_change(group, words.between)}, blame: {group.blame or 'nobody'}): {cut(group.why, REASON)}",
        )
        if group.kind in (REGRESSION, FLAPPING):
            yield text(f"  reproduce: {repro_command(group.case_ids[0], difference.newer.target)}")
        if command := format_bisect(difference, group):
            yield text(f"  since which release: {command}")
    if len(groups) > most:
        yield text(f"… and {len(groups) - most:,} more groups of cases: {words.names[groups[0].kind]}")


def _drifts(difference: Difference) -> Iterator[Text]:
    words = wording(difference.sides)
    accuracy = [
        f"{drift.operator} {drift.dtype} {drift.sample}: {format_accuracy(drift, words.between)} "
        f"({format_count(len(drift.case_ids))})"
        for drift in difference.accuracy
    ]
    speed = [
        f"{drift.operator or 'all operators together'}, {PHASES[drift.phase]}: {format_speed(drift)}"
        for drift in difference.speed
    ]
    placement = [
        f"{drift.operator}: {drift.older}{words.between}{drift.newer} ({format_count(len(drift.case_ids))})"
        for drift in difference.placement
    ]
    for name, lines in zip(_headings(words), (accuracy, speed, placement), strict=True):
        yield from (text((name, "bold"), f" {line}") for line in lines[:DRIFTS])
        if len(lines) > DRIFTS:
            yield text(f"… and {len(lines) - DRIFTS:,} more lines of {name}")


def _headings(words: Wording) -> tuple[str, str, str]:
    """Of less accurate cases, of speed and of placement: short for nights."""
    if words is NIGHTS:
        return "less accurate", "speed", "placement"
    return words.accuracy, words.speed, words.placement
