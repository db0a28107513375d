"""A bisection over releases in the terminal: what each release came to, and since which of them."""

from __future__ import annotations

from epcheck.api.releases.bisected import Bisected
from epcheck.cli.terminal.terminal import Table, Terminal
from epcheck.cli.terminal.text import cut

GROUPS = 20
"""Groups of cases that are shown; the JSON document has all."""

MESSAGE = 120
"""Characters of a message that are shown."""


def show(terminal: Terminal, bisected: Bisected) -> None:
    """The releases that were tried with what a single case came to in each, then the groups of cases."""
    histories = bisected.bisection.cases
    if len(histories) == 1:
        terminal.print_table(_of_one_case(bisected))
    groups = bisected.groups
    for group in groups[:GROUPS]:
        first = group.case_ids[0]
        count = "" if len(group.case_ids) == 1 else f" and {len(group.case_ids) - 1:,} like it"
        terminal.print((first, "bold"), f"{count}: {group.words}")
        (history,) = (history for history in histories if history.case_id == first)
        if check := bisected.check_command(history):
            terminal.print(f"  see both: {check}")
    if len(groups) > GROUPS:
        terminal.print(f"… and {len(groups) - GROUPS:,} more groups; --json has all")


def _of_one_case(bisected: Bisected) -> Table:
    (history,) = bisected.bisection.cases
    table = Table()
    for name in ("release", "status", "why"):
        table.add_column(name)
    left_out = bisected.bisection.left_out
    for release in bisected.bisection.releases:
        if release in history.trials:
            trial = history.trials[release]
            table.add_row(release, trial.status, cut(trial.message, MESSAGE))
        elif release in left_out:
            table.add_row(release, "left out", left_out[release])
    return table
