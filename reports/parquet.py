"""`outcomes.parquet`: one flat row for each record, for queries over one run or many (DuckDB, pandas, pyarrow)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from epcheck.conformance import strict_json
from epcheck.conformance.record import Accuracy, Opinion, Record, Run, accuracy_of, to_json
from epcheck.reports.report import Entry
from epcheck.reports.summary import Summary

ROWS_AT_ONCE = 1000
METADATA_KEY = "epcheck.run"
"""The key of the file's metadata under which the Run stands as JSON."""

_COLUMNS: tuple[tuple[str, Any, Callable[[Record], Any]], ...] = (
    ("case_id", pa.string(), lambda r: r.case_id),
    ("operator", pa.string(), lambda r: r.case.operator),
    ("domain", pa.string(), lambda r: r.case.domain),
    ("since_version", pa.int32(), lambda r: r.case.since_version),
    ("opset", pa.int32(), lambda r: r.case.opset),
    ("dtype", pa.string(), lambda r: r.case.dtype),
    ("sample", pa.string(), lambda r: r.case.sample),
    ("variant", pa.string(), lambda r: r.case.variant),
    ("target", pa.string(), lambda r: r.candidate.target),
    ("status", pa.string(), lambda r: r.status),
    ("blame", pa.string(), lambda r: r.blame),
    ("reading", pa.string(), lambda r: r.reading),
    ("claimed", pa.bool_(), lambda r: r.claimed),
    ("reason", pa.string(), lambda r: r.reason),
    ("create_s", pa.float64(), lambda r: r.candidate.create_s),
    ("run_s", pa.float64(), lambda r: r.candidate.run_s),
    ("attempts", pa.int32(), lambda r: r.candidate.attempts),
    ("baseline", pa.string(), lambda r: r.baseline.target if r.baseline else None),
    ("baseline_status", pa.string(), lambda r: r.baseline.status if r.baseline else None),
    ("max_ulp", pa.float64(), lambda r: _max_ulp(r.candidate)),
    ("wrong_elements", pa.int64(), lambda r: sum(d.wrong for d in r.candidate.differences)),
    ("ulp_elements", pa.int64(), lambda r: _accuracy(r, r.candidate, lambda a: a.elements)),
    ("ulp_max", pa.float64(), lambda r: _accuracy(r, r.candidate, lambda a: a.max_ulp)),
    ("ulp_sum", pa.float64(), lambda r: _accuracy(r, r.candidate, lambda a: a.sum_ulp)),
    ("ulp_counts", pa.list_(pa.int64()), lambda r: _accuracy(r, r.candidate, lambda a: list(a.counts))),
    ("baseline_ulp_max", pa.float64(), lambda r: _accuracy(r, r.baseline, lambda a: a.max_ulp)),
    ("baseline_ulp_sum", pa.float64(), lambda r: _accuracy(r, r.baseline, lambda a: a.sum_ulp)),
    ("baseline_ulp_counts", pa.list_(pa.int64()), lambda r: _accuracy(r, r.baseline, lambda a: list(a.counts))),
)

SCHEMA = pa.schema([("run_id", pa.string()), *((name, kind) for name, kind, _ in _COLUMNS), ("record", pa.string())])
"""The columns. max_ulp: over all outputs of the candidate that are wrong. ulp_*: of all outputs with a bound in ULP, as
in record.Accuracy, null where there are none. record: the whole record as JSON."""


class Outcomes:
    """The records as rows of SCHEMA, ROWS_AT_ONCE in memory at a time."""

    def __init__(self, run: Run, file: IO[bytes], held: ExitStack) -> None:
        self._run_id = run.run_id
        self._columns: list[list[Any]] = [[] for _ in SCHEMA]
        metadata = {METADATA_KEY: strict_json.dumps(to_json(run))}
        self._writer = held.enter_context(pq.ParquetWriter(file, SCHEMA.with_metadata(metadata), compression="zstd"))

    def add(self, entry: Entry) -> None:
        row = (self._run_id, *(get(entry.record) for _, _, get in _COLUMNS), entry.line.decode("ascii"))
        for column, value in zip(self._columns, row, strict=True):
            column.append(_text(value) if isinstance(value, str) else value)
        if len(self._columns[0]) == ROWS_AT_ONCE:
            self._flush()

    def finish(self, _summary: Summary) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        try:
            self._writer.write_table(pa.table(self._columns, schema=SCHEMA))
        except (ValueError, OverflowError) as error:
            raise OSError(f"it cannot hold what the journal says: {error}") from error
        for column in self._columns:
            column.clear()


def _max_ulp(opinion: Opinion) -> float | None:
    return max((d.max_ulp for d in opinion.differences if d.max_ulp is not None), default=None)


def _accuracy(record: Record, opinion: Opinion | None, get: Callable[[Accuracy], Any]) -> Any:
    found = None if opinion is None else accuracy_of(record.case, opinion)
    return None if found is None else get(found)


def _text(value: str) -> str:
    """Half a surrogate pair, which a hostile name may hold, has no UTF-8; it is written out as `\\udXXX`."""
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
