"""A trend as sentences and tables, the same in the terminal, in Markdown and on the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from epcheck.reports.runs.fingerprint import COMPARED, describe_unknown
from epcheck.reports.store.machines import Machine
from epcheck.reports.store.nights import Completeness, Night
from epcheck.reports.text import format_count, format_list, format_share
from epcheck.reports.trend.trend import AffectedCase, Event, FlakyCase, SingleNight, Trend

NAMED = 5
"""Regressions whose causes stand before the table of all, the newest."""


@dataclass(frozen=True)
class Section:
    """A heading, sentences, and a table if there are rows. numbers: the columns of numbers."""

    title: str
    sentences: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    numbers: Collection[int] = ()


def sections(trend: Trend, most: int = 20) -> tuple[Section, ...]:
    """All of the trend in reading order, lists cut after `most` entries, with the number of those left out."""
    every = (_events(trend, most), _machines(trend), _families(trend), _single_nights(trend, most),
             _flakes(trend, most), _not_run(trend, most), _problems(trend))  # fmt: skip
    return tuple(section for section in every if section.rows or section.sentences)


def headline(trend: Trend) -> str:
    """The store in one sentence."""
    completeness = sum(
        night.completeness is not Completeness.NOT_RUN for machine in trend.machines for night in machine.nights
    )
    if not completeness:
        return f"{trend.store}: no nights recorded."
    runs, machines = format_count(completeness, "night"), format_count(len(trend.machines), "machine")
    return f"{runs} of {machines}, {trend.labels[0]} to {trend.labels[-1]}."


def verdict(trend: Trend) -> str:
    """What is broken, and since when, in one sentence: the newest first."""
    lasting = _lasting(trend)
    if not lasting:
        return "Nothing is broken that once passed." if trend.labels else headline(trend)
    cases = sum(event.lasting for event in lasting)
    return (
        f"{format_count(cases, 'case')} that once passed {'fails' if cases == 1 else 'fail'}, of "
        f"{format_count(len(lasting), 'regression')}; the newest: {lasting[0].night}, {lasting[0].machine}."
    )


def _lasting(trend: Trend) -> list[Event]:
    """The regressions of which cases still fail, the newest first."""
    return [event for event in trend.events if event.broke and event.lasting]


def describe_event(event: Event) -> str:
    """The causes of an event and the operators of its cases: `dtype = float16: the last element is wrong (Conv 12)`."""
    causes = [f"{title} ({format_count(cases, 'case')})" for title, cases in event.causes[:2]]
    more = [f"{format_count(len(event.causes) - 2, 'more cause')}"] if len(event.causes) > 2 else []
    return "; ".join([by_operator(event.cases), *causes, *more])


def percent(rate: float | None) -> str:
    """A share; `not run` for none."""
    if rate is None:
        return "not run"
    return format_share(rate)


def standing(machine: Machine) -> Night | None:
    """The newest whole night of a machine."""
    return next((night for night in reversed(machine.nights) if night.completeness is Completeness.WHOLE), None)


def first(machine: Machine) -> Night | None:
    """The oldest whole night of a machine."""
    return next((night for night in machine.nights if night.completeness is Completeness.WHOLE), None)


def came_with(event: Event) -> str:
    """What came with an event, in words."""
    known = [name for name in COMPARED if name not in event.unknown]
    same = f"no recorded change in {format_list(known, 'or')}" if known and not event.changed else ""
    untold = describe_unknown(event.changed, event.unknown)
    not_run = f"{format_count(event.not_run, 'night')} before it did not run" if event.not_run else ""
    return "; ".join(filter(None, (*map(str, event.changed), same, untold, not_run)))


def by_operator(cases: Iterable[AffectedCase], most: int = 4) -> str:
    """`Conv 12, Slice 3, 2 more operators`."""
    counts = Counter(case.operator for case in cases).most_common()
    words = [f"{operator} {count}" for operator, count in counts[:most]]
    return ", ".join([*words, f"{format_count(len(counts) - most, 'more operator')}"] if len(counts) > most else words)


def how_often(flake: FlakyCase) -> str:
    """In what way a case flickers."""
    words = [f"differs between repeats in {format_count(flake.wavering, 'night')}"] if flake.wavering else []
    words += [f"changed {flake.flips} times without a recorded change"] if flake.flips >= 2 else []
    return ", ".join(words)


def _machines(trend: Trend) -> Section:
    rows = []
    for machine in trend.machines:
        counts = Counter(night.completeness for night in machine.nights)
        newest, now, then = machine.nights[-1], standing(machine), first(machine)
        rows.append((
            machine.name, *(str(counts[completeness]) for completeness in Completeness),
            f"{newest.label}: {newest.completeness}" if newest.completeness is not Completeness.WHOLE else newest.label,
            percent(_rate(then)), percent(_rate(now)), f"{now.counts.failing:,}" if now else "not run",
        ))  # fmt: skip
    header = ("machine", "whole", "partial", "not run", "newest night", "pass at first", "pass now", "failing now")
    return Section("Machines", (), header, tuple(rows), (1, 2, 3, 5, 6, 7))


def _events(trend: Trend, most: int) -> Section:
    broke = sum(event.broke for event in trend.events)
    sentences = [
        f"{format_count(broke, 'regression')}, {format_count(len(trend.events) - broke, 'fix', 'fixes')}."
    ] if trend.events else ["No regressions and no fixes."]  # fmt: skip
    rows = tuple(
        (
            event.night,
            "regression" if event.broke else "fix",
            str(len(event.cases)),
            str(event.lasting),
            by_operator(event.cases),
            came_with(event),
            event.machine,
        )
        for event in trend.events[:most]
    )
    sentences += [f"{event.night}: {describe_event(event)}." for event in _lasting(trend)[:NAMED] if event.causes]
    sentences += _left_out(len(trend.events), most)
    header = ("night", "", "cases", "still failing", "operators", "what changed", "machine")
    return Section("Regressions and fixes, and what changed with them", tuple(sentences), header, rows, (2, 3))


def _families(trend: Trend) -> Section:
    """Families that are not all right on every machine, worst first."""
    now = [standing(machine) for machine in trend.machines]
    then = [first(machine) for machine in trend.machines]
    rows, right = [], 0
    for family in trend.families:
        rates = [_rate(night, family) for night in now]
        right += all(rate == 1 for rate in rates)
        if any(rate is not None and rate < 1 for rate in rates):
            before = [_rate(night, family) for night in then]
            cells = [_describe_move(old, new) for old, new in zip(before, rates, strict=True)]
            rows.append((min(rate for rate in rates if rate is not None), family, cells))
    families = format_count(len(trend.families), "operator family", "operator families")
    sentences = (f"{right} of {families} pass completely on every machine.",) if trend.families else ()
    header = ("family", *(machine.name for machine in trend.machines))
    table = tuple((name, *cells) for _, name, cells in sorted(rows))
    return Section("Pass rate by family, now", sentences, header, table, range(1, len(header)))


def _flakes(trend: Trend, most: int) -> Section:
    rows = tuple(
        (flake.case_id, how_often(flake), f"{flake.failing} of {flake.nights}", flake.last, flake.machine)
        for flake in trend.flaky_cases[:most]
    )
    header = ("case", "how", "failing nights", "last", "machine")
    return Section("Flakiest cases", tuple(_left_out(len(trend.flaky_cases), most)) if rows else (), header, rows, (2,))


def _single_nights(trend: Trend, most: int) -> Section:
    """Cases that failed together once, by night and machine."""
    rows = tuple(
        (night.night, f"{len(night.cases):,}", by_status(night), by_operator(night.cases), night.machine)
        for night in trend.single_nights[:most]
    )
    header = ("night", "cases", "status", "operators", "machine")
    sentences = ("Cases that failed together in one night only, without a recorded change.",)
    left_out = tuple(_left_out(len(trend.single_nights), most))
    return Section("One bad night", (*sentences, *left_out) if rows else (), header, rows, (1,))


def by_status(night: SingleNight) -> str:
    """`crash 170, timeout 4`."""
    return ", ".join(f"{status} {count}" for status, count in Counter(c.status for c in night.cases).most_common())


def _not_run(trend: Trend, most: int) -> Section:
    """Nights that say nothing, or only of a part."""
    found = [
        (night.label, str(night.completeness), night.why, machine.name)
        for machine in trend.machines
        for night in machine.nights
        if night.completeness is not Completeness.WHOLE
    ]
    rows = tuple(sorted(found, reverse=True)[:most])
    header = ("night", "", "why", "machine")
    return Section("Nights not run", tuple(_left_out(len(found), most)), header, rows)


def _problems(trend: Trend) -> Section:
    return Section("Files not counted", tuple(f"{t.kind}: {t.sentence}" for t in trend.problems))


def _rate(night: Night | None, family: str | None = None) -> float | None:
    return None if night is None else night.rate(family)


def _describe_move(old: float | None, new: float | None) -> str:
    """The rate now, and by how many percentage points it differs from that of the first night."""
    if new is None or old is None or f"{new - old:+.2%}" in ("+0.00%", "-0.00%"):
        return percent(new)
    return f"{percent(new)} ({(new - old) * 100:+.2f})"


def _left_out(count: int, most: int) -> list[str]:
    return [f"First {most} of {count:,}."] if count > most else []
