"""A comparison as Markdown, for a chat, an issue or the summary of a CI step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
from epcheck.reports.markdown import escaped, row

SHOWN = 10
"""Groups of a kind, and lines of a drift, that are written out; the page has all."""

REASON = 200
"""Characters of a reason that are written out."""

SIGNS = {GOOD: "✅", FIRST: "🆕", WORSE: "❌"}
NO_SIGN = "⚠️"

LISTED = (REGRESSION, NOT_RUN, FLAPPING, REPAIRED, OTHERWISE, TOLERATED, APPEARED, VANISHED)
"""The kinds whose groups are listed; what still fails is only counted."""


def markdown(title: str, verdicts: Sequence[Verdict], links: Iterable[str] = ()) -> str:
    """The verdicts, each with what is behind it. links: lines of Markdown that stand at the end."""
    return "\n".join([f"# {escaped(title)}", "", *(line for v in verdicts for line in _verdict(v)), *links, ""])


def _verdict(verdict: Verdict) -> Iterator[str]:
    yield f"## {SIGNS.get(verdict.word, NO_SIGN)} {escaped(verdict.target)}: {verdict.word}"
    yield ""
    yield escaped(verdict.said)
    yield ""
    if verdict.difference:
        yield from _difference(verdict.difference)


def _difference(difference: Difference) -> Iterator[str]:
    yield f"Before: {escaped(side_in_words(difference.older))}  "
    yield f"Now: {escaped(side_in_words(difference.newer))}"
    yield ""
    counted = [(kind, difference.cases(kind), len(difference.of(kind))) for kind in KINDS]
    yield from _table(("", "cases", "groups"), [(k, f"{c:,}", f"{g:,}") for k, c, g in counted if c])
    for kind in LISTED:
        yield from _groups(kind, difference.of(kind))
    accuracy = [
        (one.operator, one.dtype, one.sample, accuracy_in_words(one), f"{len(one.case_ids):,}")
        for one in difference.accuracy
    ]
    yield from _section("less accurate, though it passes", ("operator", "dtype", "sample", "error", "cases"), accuracy)
    speed = [(one.operator or "all together", PHASES[one.phase], speed_in_words(one)) for one in difference.speed]
    yield from _section("speed", ("operator", "", "takes now"), speed)
    placement = [(one.operator, one.older, one.newer, f"{len(one.case_ids):,}") for one in difference.placement]
    yield from _section("placement", ("operator", "before", "now", "cases"), placement)


def _groups(kind: str, groups: Sequence[Group]) -> Iterator[str]:
    rows = [
        (
            group.operator,
            group.sample,
            f"{len(group.case_ids):,}",
            step_in_words(group),
            group.blame or "nobody",
            _short(group.reason),
            group.case_ids[0],
        )
        for group in groups
    ]
    head = ("operator", "sample", "cases", "status", "blame", "reason", "for example")
    total = cases_in_words(sum(len(group.case_ids) for group in groups))
    yield from _section(f"{kind}: {total}, {KINDS[kind]}", head, rows)


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield f"### {escaped(title)}"
        yield ""
        yield from _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield row(head)
    yield row("---" for _ in head)
    yield from (row(map(escaped, cells)) for cells in rows[:SHOWN])
    yield ""
    if len(rows) > SHOWN:
        yield f"… and {len(rows) - SHOWN:,} more"
        yield ""


def _short(reason: str) -> str:
    return reason if len(reason) <= REASON else f"{reason[: REASON - 1]}…"
