"""Runs as nights of a store, for the tests of what is made of many runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from epcheck.conformance.records.record import Record
from epcheck.conformance.records.run import Run
from epcheck.reports import write_outcomes
from tests.reports.stored_records import a_run, stored


def a_night(day: int, adapter: str = "Radeon", **facts: str) -> Run:
    """A run on a machine with this adapter, on a day of January."""
    targets = {"dml": {"execution_provider": "DmlExecutionProvider", "adapter": adapter, "os": "Windows 11", **facts}}
    return a_run(
        run_id=f"202501{day:02}-030405-{''.join(filter(str.isalnum, adapter)).lower()}",
        started=f"2025-01-{day:02}T03:04:05Z",
        candidates=("dml",),
        targets=targets,
    )


def keep(store: Path, run: Run, records: Iterable[Record], planned: int | None = None) -> Path:
    """Put a run into the store as the file that `epcheck run` leaves. planned: if not as many as are recorded."""
    records = tuple(records)
    store.mkdir(exist_ok=True)
    folder = stored(store.parent / "runs" / run.run_id, records, replace(run, planned=planned or len(records)))
    return write_outcomes(folder, store / f"{run.run_id}.parquet")
