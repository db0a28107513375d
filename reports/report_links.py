"""Links from a page about several runs into the reports of these runs, where they lie on the same disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

REPORT = "report.html"


class ReportLinks:
    """The addresses of cases in the reports of runs, relative to a page."""

    def __init__(self, page: Path, runs: Mapping[str, Path]) -> None:
        """page: the file from which is linked. runs: run id -> folder; those without a report have no links."""
        found = ((run_id, _relative(folder / REPORT, page)) for run_id, folder in runs.items())
        self._reports = {run_id: address for run_id, address in found if address}

    def case(self, run_id: str, case_id: str, target: str) -> str:
        """The address of a case in the report of a run; empty where there is no report."""
        return self._address(run_id, case=case_id, target=target)

    def run(self, run_id: str) -> str:
        """The address of the report of a run; empty where there is none."""
        return self._reports.get(run_id, "")

    def _address(self, run_id: str, **state: str) -> str:
        if run_id not in self._reports:
            return ""
        shown = {name: value.encode("utf-8", "replace").decode() for name, value in state.items()}
        return f"{self._reports[run_id]}#{urlencode(shown, quote_via=quote)}"


NO_LINKS = ReportLinks(Path(), {})


def _relative(report: Path, page: Path) -> str:
    """The address of a file from a page; empty where the file is missing or on another drive."""
    if not report.is_file():
        return ""
    try:
        relative = os.path.relpath(report.resolve(), page.resolve().parent)
    except ValueError:  # another drive of Windows
        return ""
    return quote(relative.replace(os.sep, "/").encode("utf-8", "surrogateescape"))
