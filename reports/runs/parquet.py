"""`outcomes.parquet`, the file of a run that a store holds: one narrow row for each record, for queries over many runs.

`docs/reports/store.md` has the columns and the metadata in a table. The files are made to be small and to be asked for
what failed: rows are sorted, those that fail stand first in row groups of their own, which a reader finds by the
statistics of the column `failing`, and what is asked most (how many cases of each operator passed) stands counted in
the metadata.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Annotated, Any, NamedTuple, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from epcheck.conformance.records import strict_json, typed_json
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.case_facts import qualified_name
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record, accuracy_of
from epcheck.conformance.records.run import Run
from epcheck.conformance.records.terms import FAILING, OK, PASS
from epcheck.conformance.records.typed_json import to_json
from epcheck.reports.checksum import NO_CHECKSUMS, PARQUET_KEY, parquet_with_checksums
from epcheck.reports.runs.report import Entry
from epcheck.reports.runs.summary import Summary

SCHEMA_VERSION = 5
"""The version of the columns and the metadata. A reader refuses a newer one."""

SINCE_VERSION = {"cause": 3, "excused_elements": 4, "excused_ulp": 4}
"""Column -> the version since which files have it, where that is not 2, the oldest that is read."""

EARLIER_NAMES = {"binding": ("variant", 5)}
"""Column -> its name in files of an earlier version, and the version since which it has its present name."""

RUN_KEY, SCHEMA_KEY, COUNTS_KEY = "epcheck.run", "epcheck.schema", "epcheck.counts"
"""Keys of the file's metadata: the Run as JSON; SCHEMA_VERSION; what is counted of each target, as JSON."""

ROWS_AT_ONCE = 1000
ROW_GROUP = 100_000

_COLUMNS: tuple[tuple[str, Any, Callable[[Record], Any]], ...] = (
    ("target", pa.string(), lambda r: r.candidate.target),
    ("case_id", pa.string(), lambda r: r.case_id),
    ("operator", pa.string(), lambda r: r.case.operator),
    ("domain", pa.string(), lambda r: r.case.domain),
    ("since_version", pa.int32(), lambda r: r.case.since_version),
    ("opset", pa.int32(), lambda r: r.case.opset),
    ("dtype", pa.string(), lambda r: r.case.dtype),
    ("sample", pa.string(), lambda r: r.case.sample),
    ("binding", pa.string(), lambda r: r.case.binding),
    ("status", pa.string(), lambda r: r.status),
    ("blame", pa.string(), lambda r: r.blame),
    ("reading", pa.string(), lambda r: r.reading),
    ("failing", pa.bool_(), lambda r: r.reading in FAILING),
    ("claimed", pa.bool_(), lambda r: r.claimed),
    ("reason", pa.string(), lambda r: r.reason),
    ("cause", pa.string(), lambda _: None),
    ("assignment", pa.string(), lambda r: _placement(r.candidate)),
    ("create_s", pa.float64(), lambda r: _coarse(r.candidate.create_s)),
    ("run_s", pa.float64(), lambda r: _coarse(r.candidate.run_s)),
    ("attempts", pa.int32(), lambda r: r.candidate.attempts),
    ("baseline", pa.string(), lambda r: r.baseline.target if r.baseline else None),
    ("baseline_status", pa.string(), lambda r: r.baseline.status if r.baseline else None),
    ("max_ulp", pa.float64(), lambda r: _max_ulp(r.candidate)),
    ("wrong_elements", pa.int64(), lambda r: sum(d.wrong for d in r.candidate.differences)),
    ("ulp_elements", pa.int64(), lambda r: _accuracy(r, r.candidate, lambda a: a.elements)),
    ("ulp_max", pa.float64(), lambda r: _accuracy(r, r.candidate, lambda a: a.max_ulp)),
    ("ulp_sum", pa.float64(), lambda r: _accuracy(r, r.candidate, lambda a: a.sum_ulp)),
    ("ulp_counts", pa.list_(pa.int64()), lambda r: _accuracy(r, r.candidate, lambda a: list(a.counts))),
    ("excused_elements", pa.int64(), lambda r: sum(e.elements for e in r.candidate.excused)),
    ("excused_ulp", pa.float64(), lambda r: max((e.max_ulp for e in r.candidate.excused), default=None)),
    ("baseline_ulp_max", pa.float64(), lambda r: _accuracy(r, r.baseline, lambda a: a.max_ulp)),
    ("baseline_ulp_sum", pa.float64(), lambda r: _accuracy(r, r.baseline, lambda a: a.sum_ulp)),
    ("baseline_ulp_counts", pa.list_(pa.int64()), lambda r: _accuracy(r, r.baseline, lambda a: list(a.counts))),
)

SCHEMA = pa.schema([("run_id", pa.string()), *((name, kind) for name, kind, _ in _COLUMNS), ("record", pa.string())])
"""The columns."""

_CAUSE = SCHEMA.names.index("cause")
"""The column that is of the entry: its cause's condition, symptom and place, empty for the reading `ok`."""


class Counts(NamedTuple):
    """Cases by how they stand: passes; failing (a reading of FAILING); other, of which nothing is owed: not
    placed or refused where nothing is claimed, or skipped."""

    passes: int
    failing: int
    other: int


Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class TargetCounts:
    """What a file says of a target.

    digest: equal where the same cases are recorded. keys: of the operators, as `Slice` or `com.microsoft::Gelu`.
    table: (keys, 3), the Counts of each. failing: status -> where in the sorted ids of the cases those are that fail.
    """

    digest: str
    keys: tuple[str, ...]
    table: Numbers
    failing: Mapping[str, Numbers]

    @property
    def operators(self) -> dict[str, Counts]:
        """The counts by operator key."""
        return {key: Counts(*row) for key, row in zip(self.keys, self.table.tolist(), strict=True)}

    @property
    def counts(self) -> Counts:
        """Over all operators."""
        return Counts(*self.table.sum(axis=0).tolist())

    def as_json(self) -> dict[str, Any]:
        """In JSON's types; positions as base64 of uint32, little-endian."""
        return {
            "digest": self.digest,
            "operators": dict(zip(self.keys, self.table.tolist(), strict=True)),
            "failing": {s: base64.b64encode(at.astype("<u4").tobytes()).decode() for s, at in self.failing.items()},
        }

    @classmethod
    def from_json(cls, document: Any) -> Self:
        """What `as_json` gave. Raises ValueError when it is not that."""
        counts = typed_json.read(_CountsDocument, document)
        table = np.array(list(counts.operators.values()), np.int64).reshape(len(counts.operators), 3)
        found = {s: np.frombuffer(base64.b64decode(text), "<u4") for s, text in counts.failing.items()}
        cases = int(table.sum())
        if any(at.size and at.max() >= cases for at in found.values()):
            raise ValueError(f"it names failing cases beyond its {cases:,} cases")
        return cls(counts.digest, tuple(counts.operators), table, found)


_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]


class _CountsDocument(msgspec.Struct):
    """What `TargetCounts.as_json` gives."""

    digest: str
    operators: dict[str, tuple[_Count, _Count, _Count]]
    failing: dict[str, str]


class Outcomes:
    """The records as rows of SCHEMA. They are held in Arrow's memory, some 300 bytes each, until they can be sorted."""

    def __init__(self, run: Run, file: IO[bytes], _held: ExitStack) -> None:
        self._run = run
        self._file = file
        self._rows: list[list[Any]] = [[] for _ in SCHEMA]
        self._tables: list[pa.Table] = []

    def add(self, entry: Entry) -> None:
        record = entry.record
        line = None if record.reading == OK else entry.line.decode("ascii")
        row = [self._run.run_id, *(get(record) for _, _, get in _COLUMNS), line]
        row[_CAUSE] = entry.cause and entry.cause.full_title
        for column, value in zip(self._rows, row, strict=True):
            column.append(_text(value) if isinstance(value, str) else value)
        if len(self._rows[0]) == ROWS_AT_ONCE:
            self._flush()

    def finish(self, _summary: Summary) -> None:
        self._flush()
        write_table(pa.concat_tables(self._tables), self._run, self._file)

    def _flush(self) -> None:
        try:
            self._tables.append(pa.table(self._rows, schema=SCHEMA))
        except (ValueError, OverflowError) as error:
            raise OSError(f"it cannot hold what the journal says: {error}") from error
        for column in self._rows:
            column.clear()


def write_table(outcomes: pa.Table, run: Run, file: IO[bytes]) -> None:
    """Write the rows, which are of SCHEMA and of this run, as a file of a store. Raises OSError."""
    order = [("failing", "descending"), ("target", "ascending"), ("case_id", "ascending")]
    write_sorted(outcomes.sort_by(order), count(outcomes), run, file)


def write_sorted(outcomes: pa.Table, counted: Mapping[str, TargetCounts], run: Run, file: IO[bytes]) -> None:
    """`write_table` of rows that are sorted and counted. Raises OSError."""
    metadata = {
        SCHEMA_KEY: str(SCHEMA_VERSION),
        RUN_KEY: strict_json.dumps(to_json(run)),
        COUNTS_KEY: strict_json.dumps({target: of_target.as_json() for target, of_target in counted.items()}),
        PARQUET_KEY: NO_CHECKSUMS,
    }
    written = pa.BufferOutputStream()
    with pq.ParquetWriter(written, SCHEMA, **_LAYOUT) as writer:
        for group in _row_groups(outcomes):
            writer.write_table(group, row_group_size=ROW_GROUP)
        writer.add_key_value_metadata(metadata)
    for part in parquet_with_checksums(memoryview(written.getvalue())):
        file.write(part)


def count(outcomes: pa.Table) -> dict[str, TargetCounts]:
    """What the rows say of each target."""
    targets = sorted(pc.unique(outcomes["target"]).to_pylist())
    return {target: _counted(outcomes.filter(pc.equal(outcomes["target"], target))) for target in targets}


def _counted(rows: pa.Table) -> TargetCounts:
    """What the rows of one target say of it."""
    each = rows.select(["domain", "operator", "failing"]).append_column("passes", pc.equal(rows["status"], PASS))
    grouped = each.group_by(["domain", "operator"]).aggregate(
        [("passes", "sum"), ("failing", "sum"), ([], "count_all")]
    )
    counts = {}
    for row in grouped.sort_by([("domain", "ascending"), ("operator", "ascending")]).to_pylist():
        key = qualified_name(row["operator"], row["domain"])
        passes, failing, cases = row["passes_sum"], row["failing_sum"], row["count_all"]
        counts[key] = (passes, failing, cases - passes - failing)
    ordered = rows.select(["case_id", "status", "failing"]).sort_by("case_id")
    digest = hashlib.sha256("\n".join(ordered["case_id"].to_pylist()).encode()).hexdigest()[:16]
    statuses = ordered["status"].to_numpy()
    failing = ordered["failing"].to_numpy()
    at = {status: np.flatnonzero(failing & (statuses == status)) for status in sorted(set(statuses[failing]))}
    return TargetCounts(digest, tuple(counts), np.array(list(counts.values()), np.int64), at)


_LAYOUT: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,  # 9 takes four times as long and saves a tenth
    "use_dictionary": [name for name in SCHEMA.names if name not in ("case_id", "record")],
    "column_encoding": {"case_id": "DELTA_BYTE_ARRAY"},  # sorted ids share their beginnings
    "write_statistics": ["target", "case_id", "operator", "status", "failing"],  # a footer is read of every file
    "write_page_checksum": True,
    "store_schema": False,  # Arrow's own description of the columns, 3 KB in every file
}


def _row_groups(outcomes: pa.Table) -> Iterable[pa.Table]:
    """The failing rows, then the others; `outcomes` is sorted."""
    failing = pc.sum(outcomes["failing"]).as_py() or 0
    return (group for group in (outcomes[:failing], outcomes[failing:]) if group.num_rows)


def _placement(opinion: Opinion) -> str | None:
    """`DmlExecutionProvider Slice, CPUExecutionProvider Cast`; None where the session's record does not say."""
    nodes = opinion.assignment
    return None if nodes is None else ", ".join(f"{provider} {operator}" for provider, operator in nodes)


def _coarse(seconds: float | None) -> float | None:
    """To three significant digits, as much as a measurement repeats: few values, and so small on disk."""
    return None if seconds is None else float(f"{seconds:.3g}")


def _max_ulp(opinion: Opinion) -> float | None:
    return max((d.max_ulp for d in opinion.differences if d.max_ulp is not None), default=None)


def _accuracy(record: Record, opinion: Opinion | None, get: Callable[[Accuracy], Any]) -> Any:
    found = None if opinion is None else accuracy_of(record.case, opinion)
    return None if found is None else get(found)


def _text(value: str) -> str:
    """Half a surrogate pair, which a hostile name may hold, has no UTF-8; it is written out as `\\udXXX`."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
