"""Figures of a validation in the words of the terminal and of the page."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable

from epcheck.models.execution.session import CREATE, RUN
from epcheck.models.validation.validate import Step, Validation


def bytes_words(count: float | None) -> str:
    """`12.3 MiB`; a dash where it is not known."""
    if count is None:
        return "–"
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def number(value: float | None) -> str:
    """Three digits; a dash where there is none."""
    if value is None:
        return "–"
    return "∞" if math.isinf(value) and value > 0 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """`99.3 %`."""
    return "–" if share is None else f"{share:.1%}".replace("%", " %")


def operations(count: float | None) -> str:
    """`1.2 G`, of operations."""
    if count is None:
        return "–"
    for unit in ("", " k", " M", " G"):
        if abs(count) < 1000:
            return f"{count:.3g}{unit}"
        count /= 1000
    return f"{count:.3g} T"


def failures(steps: Iterable[Step]) -> list[tuple[str, Step]]:
    """The steps that failed, of those that failed alike the first, with the trials in words."""
    alike: dict[tuple[str, str, str], list[Step]] = {}
    for step in steps:
        if step.during:
            # addresses, threads and counters differ from one to the next
            alike.setdefault((step.target, step.during, re.sub(r"[0-9A-F]*\d[0-9A-F]*", "", step.message)), []).append(
                step
            )
    return [(f"{group[0].trial}{_more(len(group) - 1)}", group[0]) for group in alike.values()]


def ended(step: Step) -> str:
    """How a step failed: `crash in session creation`, `error in the run`."""
    return f"{'error' if step.stage in (CREATE, RUN) else step.stage} in {step.during}"


def _more(count: int) -> str:
    return f" and {count} more trial{'s' if count > 1 else ''}" if count else ""


def again(validation: Validation) -> str:
    """The command that shrinks the model to what still fails."""
    words = ["epcheck", "reduce", str(validation.path), *validation.again]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
