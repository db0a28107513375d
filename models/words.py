"""Figures of a validation in the words of the terminal and of the page."""

from __future__ import annotations

import math
import shlex
import subprocess
import sys

from epcheck.models.validate import Validation


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


def again(validation: Validation) -> str:
    """The command that shrinks the model to what still fails."""
    words = ["epcheck", "reduce", str(validation.path), *validation.again]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
