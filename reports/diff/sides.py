"""The runs that a comparison is asked for, from where they are kept: a run's folder, or a file of a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from epcheck.conformance.records.record import Run
from epcheck.reports.diff.difference import Side
from epcheck.reports.diff.row import Row, placement_of
from epcheck.reports.runs.run_folder import StoreError, read_records, read_run
from epcheck.reports.store import history
from epcheck.reports.store.history import Stored
from epcheck.reports.write import OUTCOMES

COLUMNS = (
    "case_id", "domain", "operator", "since_version", "dtype", "sample", "status", "blame", "reading", "reason",
    "create_s", "run_s", "ulp_max", "assignment",
)  # fmt: skip


def open_sides(
    older: Path, newer: Path | None = None, older_target: str | None = None, newer_target: str | None = None
) -> tuple[Side, Side]:
    """Two sides of a comparison. newer: None for another target of the same run. Targets need to be named only where a
    run has several and the other run has none of the same name alone.

    Raises StoreError when one cannot be read, or it is not clear which target is meant.
    """
    one, other = run_at(older), run_at(newer or older)
    first = _target(one, older, older_target, newer_target or _only(other), "--target-a")
    second = _target(other, newer or older, newer_target, first if newer else None, "--target-b")
    if newer is None and first == second:
        raise StoreError(f"{older}: compares '{first}' with itself; name another run, or another target of this one")
    return side_at(older, first, one), side_at(newer or older, second, other)


def run_at(path: Path) -> Run:
    """The run in a folder or a file. Raises StoreError."""
    return history.read_file(path).run if path.is_file() else read_run(path)


def open_side(path: Path, target: str | None = None) -> Side:
    """A side alone. Raises StoreError when it cannot be read, or it is not clear which target is meant."""
    run = run_at(path)
    return side_at(path, _target(run, path, target, None, "--target"), run)


def side_at(path: Path, target: str, run: Run) -> Side:
    """One target of the run that is at `path`. Raises StoreError when its records cannot be read.

    Of a folder, `outcomes.parquet` is read where it has the whole run, ten times as fast as the journal.
    """
    if stored := _stored(path, run):
        return Side(run, target, tuple(_rows_of_file(stored, target)))
    return Side(run, target, tuple(Row.of(r) for r in read_records(path) if r.candidate.target == target))


def _stored(path: Path, run: Run) -> Stored | None:
    if path.is_file():
        return history.read_file(path)
    try:
        stored = history.read_file(path / OUTCOMES)
    except StoreError:
        return None
    return stored if stored.whole and stored.run_id == run.run_id else None


def _only(run: Run) -> str | None:
    return run.candidates[0] if len(run.candidates) == 1 else None


def _target(run: Run, path: Path, asked: str | None, alike: str | None, option: str) -> str:
    """The target that is meant. alike: the name that the other side has, which is preferred."""
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


def _rows_of_file(stored: Stored, target: str) -> Iterator[Row]:
    rows = history.query([stored], f"SELECT target, {', '.join(COLUMNS)} FROM outcomes")
    return map(_row, rows.filter(pc.equal(rows["target"], target)).to_pylist())


def _row(fields: dict[str, Any]) -> Row:
    told = {name: fields[name] for name in COLUMNS if name not in ("domain", "operator", "assignment")}
    operator = f"{fields['domain']}::{fields['operator']}" if fields["domain"] else fields["operator"]
    return Row(operator=operator, placement=_placement(fields["assignment"]), **told)


def _placement(assignment: str | None) -> str | None:
    """`DmlExecutionProvider Slice, CPUExecutionProvider Cast` in the words of `placement_of`."""
    if assignment is None:
        return None
    pairs = (node.partition(" ") for node in assignment.split(", ") if node)
    return placement_of((provider, operator) for provider, _, operator in pairs)
