"""Rows and runs to be compared, for the tests of comparisons."""

from __future__ import annotations

from typing import Any

from epcheck.reports.diff.difference import ComparedRun
from epcheck.reports.diff.row import Row
from tests.reports.stored_records import a_run

STATUS_READS = {"pass": "ok", "unplaced": "ok", "skipped": "ok"}


def a_row(sample: str = "rank_1", status: str = "pass", dtype: str = "float32", **changes: Any) -> Row:
    """A case of Slice-13; what does not pass is a failure unless `reading` says otherwise."""
    operator, version = changes.pop("operator", "Slice"), changes.pop("since_version", 13)
    fields = {
        "case_id": f"{operator}-{version}/{dtype}/{sample}[runtime]",
        "operator": operator,
        "since_version": version,
        "dtype": dtype,
        "sample": sample,
        "status": status,
        "blame": "" if status in STATUS_READS else "candidate",
        "reading": STATUS_READS.get(status, "failure"),
        "reason": "dml is right" if status == "pass" else f"dml: {status}",
        **changes,
    }
    return Row(**fields)


def a_compared_run(*rows: Row, target: str = "dml", planned: int | None = None, **changes: Any) -> ComparedRun:
    """A complete run with these rows."""
    fields: dict[str, Any] = {"candidates": (target,), "run_id": "20250101-000000-aaaa", "selection": {}, **changes}
    return ComparedRun(a_run(len(rows) if planned is None else planned, **fields), target, rows)
