"""A fault as a bug report needs it, whether a case or a model shows it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from epcheck.generators.error import EpcheckError
from epcheck.reports.bug_report.issue import Answer, Issue


class BugReportError(EpcheckError, ValueError):
    """There is nothing to report, or it cannot be; the message says why."""


@dataclass(frozen=True)
class Fault:
    """name: of the report's folder. repro: the folder that reproduces it. target: on which it was seen. issue: the
    report without its attachment. cases: the cases of the fault group; empty for a model."""

    name: str
    repro: Path
    target: str
    issue: Issue
    cases: tuple[str, ...] = ()

    def with_answers(self, more: Iterable[Answer]) -> Fault:
        """With what further targets say."""
        return replace(self, issue=replace(self.issue, answers=(*self.issue.answers, *more)))
