"""A comparison as Markdown, for a chat, an issue or the summary of a CI step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
from epcheck.reports.diff.difference import Difference, Group
from epcheck.reports.diff.formatting import (
    PHASES,
    format_accuracy,
    format_bisect,
    format_change,
    format_count,
    format_run,
    format_speed,
)
from epcheck.reports.diff.wording import Wording, wording
from epcheck.reports.markdown import escape_markdown, row

SHOWN = 10
"""Groups of a kind, and lines of a drift, that are written out; the page has all."""

REASON = 200
"""Characters of a reason that are written out."""

SIGNS = {GOOD: "✅", FIRST: "🆕", WORSE: "❌", SAME: "🟰", DIFFERS: "↔️"}
NO_SIGN = "⚠️"

LISTED = (REGRESSION, NOT_RUN, FLAPPING, REPAIRED, OTHERWISE, TOLERATED, APPEARED, VANISHED)
"""The kinds whose groups are listed; what still fails is only counted."""


def markdown(title: str, assessments: Sequence[Assessment], links: Iterable[str] = ()) -> str:
    """The assessments, each with its difference. links: lines of Markdown that stand at the end."""
    return "\n".join(
        [f"# {escape_markdown(title)}", "", *(line for v in assessments for line in _assessment(v)), *links, ""]
    )


def _assessment(assessment: Assessment) -> Iterator[str]:
    yield f"## {SIGNS.get(assessment.result, NO_SIGN)} {escape_markdown(assessment.title)}"
    yield ""
    yield escape_markdown(assessment.sentences)
    yield ""
    if assessment.difference:
        yield from _difference(assessment.difference)


def _difference(difference: Difference) -> Iterator[str]:
    words = wording(difference.sides)
    yield f"{escape_markdown(words.older)}: {escape_markdown(format_run(difference.older))}  "
    yield f"{escape_markdown(words.newer)}: {escape_markdown(format_run(difference.newer))}"
    yield ""
    counted = [(words.names[kind], difference.cases(kind), len(difference.of(kind))) for kind in KINDS]
    yield from _table(("", "cases", "groups"), [(k, f"{c:,}", f"{g:,}") for k, c, g in counted if c])
    for kind in LISTED:
        yield from _groups(kind, difference.of(kind), words)
        yield from _since_which_release(difference, kind)
    accuracy = [
        (
            change.operator,
            change.dtype,
            change.sample,
            format_accuracy(change, words.between),
            f"{len(change.case_ids):,}",
        )
        for change in difference.accuracy
    ]
    yield from _section(words.accuracy, ("operator", "dtype", "sample", "error", "cases"), accuracy)
    speed = [
        (change.operator or "all together", PHASES[change.phase], format_speed(change)) for change in difference.speed
    ]
    yield from _section(words.speed, ("operator", "", words.takes), speed)
    placement = [
        (change.operator, change.older, change.newer, f"{len(change.case_ids):,}") for change in difference.placement
    ]
    yield from _section(words.placement, ("operator", *words.columns, "cases"), placement)


def _groups(kind: str, groups: Sequence[Group], words: Wording) -> Iterator[str]:
    rows = [
        (
            group.operator,
            group.sample,
            f"{len(group.case_ids):,}",
            format_change(group, words.between),
            group.blame or "nobody",
            _short(group.why),
            group.case_ids[0],
        )
        for group in groups
    ]
    head = ("operator", "sample", "cases", "status", "blame", "why", "for example")
    total = format_count(sum(len(group.case_ids) for group in groups))
    yield from _section(f"{words.names[kind]}: {total}, {words.meanings[kind]}", head, rows)


def _since_which_release(difference: Difference, kind: str) -> Iterator[str]:
    """The command line for each group that is written out, where the target has releases."""
    commands = [format_bisect(difference, group) for group in difference.of(kind)[:SHOWN]]
    if any(commands):
        yield "Since which release?"
        yield ""
        yield from (f"- {escape_markdown(command)}" for command in commands if command)
        yield ""


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield f"### {escape_markdown(title)}"
        yield ""
        yield from _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield row(head)
    yield row("---" for _ in head)
    yield from (row(map(escape_markdown, cells)) for cells in rows[:SHOWN])
    yield ""
    if len(rows) > SHOWN:
        yield f"… and {len(rows) - SHOWN:,} more"
        yield ""


def _short(reason: str) -> str:
    return reason if len(reason) <= REASON else f"{reason[: REASON - 1]}…"
