"""Open the runs of a comparison: each is a run's folder, or a file of a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.run import Run
from epcheck.reports.diff.difference import ComparedRun
from epcheck.reports.diff.row import Row, placement_of
from epcheck.reports.runs.causes import find_causes_of_run
from epcheck.reports.runs.run_folder import OUTCOMES, StoreError, read_records, read_run
from epcheck.reports.store.query import query
from epcheck.reports.store.run_file import StoredRun, read_file

COLUMNS = (
    "case_id", "domain", "operator", "since_version", "dtype", "sample", "status", "blame", "reading", "reason",
    "create_s", "run_s", "ulp_max", "assignment", "cause",
)  # fmt: skip


def open_pair(
    older: Path, newer: Path | None = None, older_target: str | None = None, newer_target: str | None = None
) -> tuple[ComparedRun, ComparedRun]:
    """Open two runs to compare. newer: None for another target of the same run. A target needs to be named only where a
    run has several, and the other run does not have exactly one that is named like one of them.

    Raises StoreError when one cannot be read, or it is not clear which target is meant.
    """
    old, new = run_at(older), run_at(newer or older)
    first = _target(old, older, older_target, newer_target or _only(new), "--target-a")
    second = _target(new, newer or older, newer_target, first if newer else None, "--target-b")
    if newer is None and first == second:
        raise StoreError(f"{older}: cannot compare '{first}' with itself; name another run or target")
    return read_compared_run(older, first, old), read_compared_run(newer or older, second, new)


def run_at(path: Path) -> Run:
    """The run in a folder or a file. Raises StoreError."""
    return read_file(path).run if path.is_file() else read_run(path)


def open_single(path: Path, target: str | None = None) -> ComparedRun:
    """Open one run alone. Raises StoreError when it cannot be read, or it is not clear which target is meant."""
    run = run_at(path)
    return read_compared_run(path, _target(run, path, target, None, "--target"), run)


def read_compared_run(path: Path, target: str, run: Run) -> ComparedRun:
    """One target of the run that is at `path`. Raises StoreError when its records cannot be read.

    Of a folder, `outcomes.parquet` is read where it has the whole run, ten times as fast as the journal.
    """
    if stored := _read_stored(path, run):
        return ComparedRun(run, target, tuple(_rows_of_file(stored, target)))
    causes = find_causes_of_run(path).of_case
    rows = (
        Row.of(record, cause.full_title if (cause := causes.get((target, record.case_id))) else None)
        for record in read_records(path)
        if record.candidate.target == target
    )
    return ComparedRun(run, target, tuple(rows))


def _read_stored(path: Path, run: Run) -> StoredRun | None:
    if path.is_file():
        return read_file(path)
    try:
        stored = read_file(path / OUTCOMES)
    except StoreError:
        return None
    return stored if stored.whole and stored.run_id == run.run_id else None


def _only(run: Run) -> str | None:
    return run.candidates[0] if len(run.candidates) == 1 else None


def _target(run: Run, path: Path, asked: str | None, alike: str | None, option: str) -> str:
    """The target that is meant. alike: the target of the other run, which is preferred."""
    listed = ", ".join(f"'{name}'" for name in run.candidates)
    if asked is not None:
        if asked not in run.candidates:
            raise StoreError(f"{path}: has no target '{asked}'; it has {listed or 'none'}")
        return asked
    if only := _only(run):
        return only
    if alike in run.candidates:
        return str(alike)
    raise StoreError(f"{path}: has the targets {listed or '(none)'}; choose one with {option}")


def _rows_of_file(stored: StoredRun, target: str) -> Iterator[Row]:
    rows = query([stored], f"SELECT target, {', '.join(COLUMNS)} FROM outcomes")
    return map(_row, rows.filter(pc.equal(rows["target"], target)).to_pylist())


def _row(fields: dict[str, Any]) -> Row:
    values = {name: fields[name] for name in COLUMNS if name not in ("domain", "operator", "assignment")}
    return Row(
        operator=qualified_name(fields["operator"], fields["domain"]),
        placement=_placement(fields["assignment"]),
        **values,
    )


def _placement(assignment: str | None) -> str | None:
    """`DmlExecutionProvider Slice, CPUExecutionProvider Cast` as `placement_of` writes it."""
    if assignment is None:
        return None
    pairs = (node.partition(" ") for node in assignment.split(", ") if node)
    return placement_of((provider, operator) for provider, _, operator in pairs)
