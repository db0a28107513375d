"""The parts of a comparison in words, the same in the terminal, in Markdown and on the page."""

from __future__ import annotations

from epcheck.reports.diff.difference import Group, Half
from epcheck.reports.diff.drift import AccuracyDrift, Speed
from epcheck.reports.text import moment


def side_in_words(half: Half) -> str:
    """`dml of 20261121-155123-1cbb (2026-11-21 15:51:23 UTC): 10,000 of 11,231 cases pass`."""
    return f"{half.target} of {half.run_id} ({moment(half.started)}): {half.passes:,} of {half.recorded:,} cases pass"


def cases_in_words(count: int) -> str:
    """`1 case`, `500 cases`."""
    return f"{count:,} case{'' if count == 1 else 's'}"


def step_in_words(group: Group) -> str:
    """`pass → mismatch`; `refused (expected → failure)` where only the reading changed; otherwise the one status."""
    if not (group.older and group.newer):
        return group.newer or group.older
    if group.older != group.newer:
        return f"{group.older} → {group.newer}"
    return group.newer + (f" ({group.older_reading} → {group.reading})" if group.older_reading != group.reading else "")


def accuracy_in_words(drift: AccuracyDrift) -> str:
    """`0.5 → 12 ULP, 24 times`."""
    return f"{drift.older:.3g} → {drift.newer:.3g} ULP, {drift.factor:.3g} times"


def speed_in_words(speed: Speed) -> str:
    """How long it takes now: `1.52 times as long (0.9 to 1.1 is noise; 40 sessions)`."""
    band = f"{speed.low:.2g} to {speed.high:.2g}"
    noise = f"most operators are within {band}" if not speed.operator else f"{band} is noise"
    return f"{speed.ratio:.2f} times as long ({noise}; {speed.sessions:,} sessions)"


PHASES = {"run": "running", "create": "making the session"}
"""Phase of a Speed -> what takes the time."""
