"""A comparison of speed in the terminal."""

from __future__ import annotations

from epcheck.api.suite.speed import HTML, SpeedResult
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.cli.terminal.text import cut
from epcheck.conformance.records.speed import CREATE, FASTER, FIRST, SLOWER, UNDECIDED, format_seconds

STYLES = {SLOWER: "red", FASTER: "green", UNDECIDED: "yellow"}
"""Verdict -> the style of its row."""

NOTE, NOTES = 160, 3
"""Characters of a note that are shown, and notes."""


def show(terminal: Terminal, result: SpeedResult) -> None:
    """A row for each node with its judged times, what else changed, what was not compared, and where the page is."""
    report = result.report
    table = Table()
    table.add_column("node", fold=True)
    table.add_column("A → B", right=True, whole=True)
    table.add_column("B beside A", whole=True)
    for each, phase in report.judged_phases():
        times = f"{format_seconds(phase.a_s)} → {format_seconds(phase.b_s)}"
        node = each.case if phase.phase in report.judged else f"{each.case} ({phase.phase})"
        table.add_row(node, times, phase.words, style=STYLES.get(phase.verdict, ""))
    if report.judged_phases():
        terminal.print_table(table)
    for each in report.comparisons:
        for phase in each.phases:
            if phase.phase in (CREATE, FIRST) and phase.phase not in report.judged and phase.differs:
                terminal.print(f"{each.case}: {phase.phase} {phase.words}")
    for each in report.failed:
        terminal.print(f"not compared: {each.case}: {cut(each.trouble, NOTE)}", style="yellow")
    for note in report.notes:
        terminal.print(f"note: {note}")
    notes = [(each.case, note) for each in report.comparisons for note in each.notes]
    for case, note in notes[:NOTES]:
        terminal.print(f"note: {case}: {cut(note, NOTE)}")
    if len(notes) > NOTES:
        terminal.print(f"… and {len(notes) - NOTES} more notes; the page has all")
    for each, phase in report.too_slow:
        terminal.print(f"too slow: {each.case}: {phase.words}, more than {report.max_slowdown:g} ×", style="bold red")
    if report.max_slowdown is not None and report.open:
        terminal.print(f"undecided whether slower by more than {report.max_slowdown:g} ×: "
                       + ", ".join(each.case for each, _ in report.open), style="yellow")  # fmt: skip
    terminal.print(f"A: {report.a}, B: {report.b}; all intervals hold with a probability of {1 - report.alpha:g}")
    terminal.print(f"{report.headline}.", style="bold green" if result.conforms else "bold red")
    terminal.print(f"page: {result.folder / HTML}")
