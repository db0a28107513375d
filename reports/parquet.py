"""`outcomes.parquet`: one flat row for each record, for queries over one run or many (DuckDB, pandas, pyarrow)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from epcheck.conformance import strict_json
from epcheck.conformance.record import Opinion, Record, Run, encode, to_json

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
    ("record", pa.string(), encode),
)

SCHEMA = pa.schema([("run_id", pa.string()), *((name, kind) for name, kind, _ in _COLUMNS)])
"""The columns. max_ulp: over all outputs of the candidate. record: the whole record as JSON."""


def write_parquet(path: Path, run: Run, records: Iterable[Record]) -> None:
    """Write the records, a thousand in memory at a time. Raises OSError."""
    metadata = {METADATA_KEY: strict_json.dumps(to_json(run))}
    with pq.ParquetWriter(path, SCHEMA.with_metadata(metadata), compression="zstd") as writer:
        for batch in _batches(records):
            columns: dict[str, list[Any]] = {name: [_text(get(r)) for r in batch] for name, _, get in _COLUMNS}
            writer.write_table(pa.table({"run_id": [_text(run.run_id)] * len(batch), **columns}, schema=SCHEMA))


def _batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    rest = iter(records)
    while batch := list(islice(rest, ROWS_AT_ONCE)):
        yield batch


def _max_ulp(opinion: Opinion) -> float | None:
    return max((d.max_ulp for d in opinion.differences if d.max_ulp is not None), default=None)


def _text(value: Any) -> Any:
    """Half a surrogate pair, which a hostile name may hold, has no UTF-8; it is written out as `\\udXXX`."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
