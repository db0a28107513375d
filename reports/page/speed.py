"""The page of a comparison of speed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from epcheck.conformance.records.speed import (
    CREATE,
    EQUIVALENT,
    FASTER,
    FIRST,
    SLOWER,
    UNDECIDED,
    PhaseRatio,
    SpeedComparison,
    SpeedReport,
    find_judged,
    format_seconds,
)
from epcheck.reports.page import shell
from epcheck.reports.runs.run_folder import replacing

READINGS = {SLOWER: "failure", FASTER: "ok", EQUIVALENT: "not-run", UNDECIDED: "flaky"}
"""Verdict -> the reading whose colour it has."""

ORDER = (SLOWER, FASTER, UNDECIDED, EQUIVALENT)
"""Verdicts, in the order of the table."""

WIDTH, EDGE, LEAST, MOST = 200, 5, 0.5, 2.0
"""Of the drawing of an interval: pixels, those on either side of the scale, and the ratios at its ends; the scale is
logarithmic."""

FACTS = ("onnxruntime", "plugin", "DirectML.dll", "adapter", "device", "driver_version", "graphics_stack", "function",
         "processor", "os", "provider_options", "session_config")  # fmt: skip
"""What a worker reports that the page shows."""


@dataclass(frozen=True)
class Row:
    """A ratio as the table has it. x_low, x_high, x: of the drawing, in pixels."""

    comparison: SpeedComparison
    phase: PhaseRatio
    is_too_slow: bool
    x_low: float
    x_high: float
    x: float

    @property
    def reading(self) -> str:
        return READINGS[self.phase.verdict]


def write_speed_page(path: Path, report: SpeedReport) -> None:
    """Write the comparison as one page that fetches nothing. Raises OSError."""
    too_slow = {(each.case, phase.phase) for each, phase in report.too_slow}
    rows = sorted(
        (_row(each, phase, (each.case, phase.phase) in too_slow) for each, phase in report.judged_phases()),
        key=lambda row: (not row.is_too_slow, ORDER.index(row.phase.verdict), -row.phase.ratio),
    )
    others = [
        _row(each, phase, False)
        for each in report.comparisons
        for phase in each.phases
        if phase.differs and phase not in find_judged(each.phases, report.judged)
    ]
    with replacing(path) as file:
        shell.write(
            file,
            "speed/speed.html.j2",
            styles=("speed/speed.css",),
            report=report,
            rows=rows,
            is_mixed=any(row.phase.phase not in report.judged for row in rows),
            others=sorted(others, key=lambda row: -row.phase.ratio),
            counts={verdict: sum(row.phase.verdict == verdict for row in rows) for verdict in ORDER},
            readings=READINGS,
            noted=[each for each in report.comparisons if each.notes],
            facts={
                side: [(name, facts[name]) for name in FACTS if facts.get(name)] for side, facts in report.facts.items()
            },
            width=WIDTH,
            x_same=_place(1.0),
            x_limit=None if report.max_slowdown is None else _place(report.max_slowdown),
            time=format_seconds,
            phases=(CREATE, FIRST),
        )


def _row(comparison: SpeedComparison, phase: PhaseRatio, is_too_slow: bool) -> Row:
    return Row(comparison, phase, is_too_slow, _place(phase.low), _place(phase.high), _place(phase.ratio))


def _place(ratio: float) -> float:
    """Where a ratio is drawn: those beyond the ends at the ends."""
    inside = min(max(ratio, LEAST), MOST)
    return round(EDGE + (WIDTH - 2 * EDGE) * math.log(inside / LEAST) / math.log(MOST / LEAST), 1)
