"""A comparison of speed in the terminal."""

from __future__ import annotations

from epcheck.api.suite.speed import HTML, SpeedResult
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.cli.terminal.text import cut
from epcheck.conformance.records.speed import CREATE, FASTER, FIRST, SLOWER, UNDECIDED, PhaseRatio, SpeedComparison

STYLES = {SLOWER: "red", FASTER: "green", UNDECIDED: "yellow"}
"""Verdict -> the style of its row."""

NOTE = 160
"""Characters of a note that are shown."""


def show(terminal: Terminal, result: SpeedResult) -> None:
    """A row for each node with its judged times, what else changed, what was not compared, and where the page is."""
    report = result.report
    table = Table()
    table.add_column("node", fold=True)
    table.add_column("A", right=True, whole=True)
    table.add_column("B", right=True, whole=True)
    table.add_column("B beside A", whole=True)
    table.add_column("rounds", right=True)
    for each, phase in report.judged_phases():
        row = each.case, format_time(phase.a_s), format_time(phase.b_s), phase.words, f"{each.rounds}"
        table.add_row(*row, style=STYLES.get(phase.verdict, ""))
    if report.judged_phases():
        terminal.print_table(table)
    for each in report.comparisons:
        for phase in each.phases:
            if phase.phase in (CREATE, FIRST) and phase.phase not in report.judged and _differs(phase):
                terminal.print(f"{each.case}: {phase.phase} {phase.words}")
    for each in report.failed:
        terminal.print(f"not compared: {each.case}: {cut(each.trouble, NOTE)}", style="yellow")
    for note, cases in _by_note(report.comparisons).items():
        terminal.print(f"note: {cut(note, NOTE)} ({cases[0]}{f' and {len(cases) - 1} more' if cases[1:] else ''})")
    for each, phase in report.too_slow:
        terminal.print(f"too slow: {each.case}: {phase.words}, more than {report.max_slowdown:g} ×", style="bold red")
    if report.max_slowdown is not None and report.open:
        terminal.print(f"undecided whether slower by more than {report.max_slowdown:g} ×: "
                       + ", ".join(each.case for each, _ in report.open), style="yellow")  # fmt: skip
    terminal.print(f"A: {report.a}, B: {report.b}; all intervals hold with a probability of {1 - report.alpha:g}")
    terminal.print(f"{report.headline}.", style="bold green" if result.conforms else "bold red")
    terminal.print(f"page: {result.folder / HTML}")


def format_time(seconds: float) -> str:
    """`12.3 µs`, `4.56 ms`, `1.20 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _differs(phase: PhaseRatio) -> bool:
    return phase.verdict in (SLOWER, FASTER)


def _by_note(comparisons: tuple[SpeedComparison, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in comparisons:
        for note in each.notes:
            found.setdefault(note, []).append(each.case)
    return found
