"""What a row of the table gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.rates.child_process import ChildFailed


@dataclass(frozen=True)
class Measurement:
    """Cases and what they took, in seconds. report: all that the process said, as the JSON file of the table has it."""

    cases: int
    seconds: float
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Cases per second."""
        return self.cases / self.seconds


def of(report: Mapping[str, Any], prefix: str = "") -> Measurement:
    """The measurement that a script of this folder reports as `cases` and `seconds`, or with a prefix to both."""
    return Measurement(report[f"{prefix}cases"], report[f"{prefix}seconds"], report)


def pytest_tally(output: str) -> dict[str, int]:
    """pytest's last line, `3 failed, 5 passed in 1.00s` or `8 tests collected in 0.10s`, as a mapping."""
    last = next((line for line in reversed(output.splitlines()) if re.search(r" in \d", line)), "")
    found = {what: int(number) for number, what in re.findall(r"(\d+) (?:tests? )?([a-z]+)", last.partition(" in ")[0])}
    if not found:
        raise ChildFailed(f"pytest gave no summary, but: {output[-400:]}")
    return found
