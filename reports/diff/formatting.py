"""The parts of a comparison as text, the same in the terminal, in Markdown and on the page."""

from __future__ import annotations

import re

from packaging.version import Version

from epcheck.conformance.records.target_facts import base_of
from epcheck.reports.diff.classification import REGRESSION
from epcheck.reports.diff.difference import ComparedSummary, Difference, Group
from epcheck.reports.diff.drift import AccuracyDrift, SpeedDrift
from epcheck.reports.diff.wording import NIGHTS
from epcheck.reports.text import moment

WITH_RELEASES = {
    **dict.fromkeys(("cpu", "dml", "directml", "openvino", "cuda"), "onnxruntime"),
    **dict.fromkeys(("webgpu", "openvino-plugin", "qnn"), "plugin"),
}
"""Target of which `epcheck bisect` has the releases -> the part of a fingerprint that names its release, last."""

WINDOWSML = "windowsml-"
RELEASE = rf"(?:{WINDOWSML})?\d+(?:\.\d+)*"


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


def format_bisect(difference: Difference, group: Group) -> str:
    """The command line that finds the release in which a case of a regression broke, with the releases of the two runs
    as ends where they differ; empty for other groups, and for a target that has no releases of its own."""
    if group.kind != REGRESSION or not group.older:
        return ""
    older, _, older_release = difference.older.target.partition("@")
    newer, _, newer_release = difference.newer.target.partition("@")
    if base_of(newer) not in WITH_RELEASES or older != newer:
        return ""
    changed = next((change for change in difference.changed if change.part == WITH_RELEASES[base_of(newer)]), None)
    if changed is not None:
        older_release = older_release or changed.older.rpartition(" ")[2]
        newer_release = newer_release or changed.newer.rpartition(" ")[2]
    ends = {older_release, newer_release}
    command = f'epcheck bisect "{group.case_ids[0]}" --target {newer}'
    if len(ends) < 2 or not all(re.fullmatch(RELEASE, end) for end in ends):
        return command
    first, last = sorted(ends, key=_order)
    return f"{command} --releases {first}..{last}"


def _order(release: str) -> tuple[bool, Version]:
    number = release.removeprefix(WINDOWSML)
    return number != release, Version(number)


def format_accuracy(drift: AccuracyDrift, between: str = NIGHTS.between) -> str:
    """`0.5 → 12 ULP, 24 times`."""
    return f"{drift.older:.3g}{between}{drift.newer:.3g} ULP, {drift.factor:.3g} times"


WIDE = 100.0
"""The ratio of the ends of a noise band from which on it says nothing: that of a single operator was 0.014 to 78."""


def format_speed(speed: SpeedDrift) -> str:
    """How long it takes now: `1.52 times as long (0.9 to 1.1 is noise; 40 sessions)`."""
    band = f"{speed.low:.2g} to {speed.high:.2g}"
    if speed.high > WIDE * speed.low:
        noise = "the measurements are too noisy to tell"
    else:
        noise = f"most operators are within {band}" if not speed.operator else f"{band} is noise"
    ratio = f"{speed.ratio:.2f}" if speed.ratio >= 0.1 else f"{speed.ratio:.2g}"
    return f"{ratio} times as long ({noise}; {speed.sessions:,} sessions)"


PHASES = {"run": "running", "create": "making the session"}
"""Phase of a SpeedDrift -> what takes the time."""
