"""The parts of a comparison as text, the same in the terminal, in Markdown and on the page."""

from __future__ import annotations

from epcheck.reports.diff.difference import ComparedSummary, Group
from epcheck.reports.diff.drift import AccuracyDrift, SpeedDrift
from epcheck.reports.diff.wording import NIGHTS
from epcheck.reports.text import moment


def format_run(summary: ComparedSummary) -> str:
    """`dml of 20261121-155123-1cbb (2026-11-21 15:51:23 UTC): 10,000 of 11,231 cases pass`."""
    run = f"{summary.target} of {summary.run_id} ({moment(summary.started)})"
    return f"{run}: {summary.passes:,} of {summary.recorded:,} cases pass"


def format_count(count: int) -> str:
    """`1 case`, `500 cases`."""
    return f"{count:,} case{'' if count == 1 else 's'}"


def format_change(group: Group, between: str = NIGHTS.between) -> str:
    """`pass → mismatch`, with what stands `between`; `refused (expected → failure)` where only the reading changed;
    otherwise the one status."""
    if not (group.older and group.newer):
        return group.newer or group.older
    if group.older != group.newer:
        return f"{group.older}{between}{group.newer}"
    return group.newer + (
        f" ({group.older_reading}{between}{group.reading})" if group.older_reading != group.reading else ""
    )


def format_accuracy(drift: AccuracyDrift, between: str = NIGHTS.between) -> str:
    """`0.5 → 12 ULP, 24 times`."""
    return f"{drift.older:.3g}{between}{drift.newer:.3g} ULP, {drift.factor:.3g} times"


def format_speed(speed: SpeedDrift) -> str:
    """How long it takes now: `1.52 times as long (0.9 to 1.1 is noise; 40 sessions)`."""
    band = f"{speed.low:.2g} to {speed.high:.2g}"
    noise = f"most operators are within {band}" if not speed.operator else f"{band} is noise"
    return f"{speed.ratio:.2f} times as long ({noise}; {speed.sessions:,} sessions)"


PHASES = {"run": "running", "create": "making the session"}
"""Phase of a SpeedDrift -> what takes the time."""
