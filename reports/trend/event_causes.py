"""The causes of the cases that broke or were fixed in a night: they are in the rows of its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from epcheck.reports.store.query import query
from epcheck.reports.store.run_file import StoredRun

MOST = 100
"""Events whose causes are read, the newest."""

_CAUSES = """
SELECT o.run_id, o.target, o.case_id, o.cause FROM outcomes o JOIN failing t
ON o.run_id = t.run_id AND o.target = t.target AND o.case_id = t.case_id WHERE o.cause <> ''
"""


def read_event_causes(
    runs: Sequence[StoredRun], failing: Sequence[tuple[str, str, Sequence[str]]]
) -> list[tuple[tuple[str, int], ...]]:
    """Of each (run id, target, ids of cases that fail in it): the causes with the number of their cases, the largest
    first; nothing beyond MOST, and where the file has none. Raises FileProblemError and StoreError."""
    known: dict[tuple[str, str], dict[str, str]] = {}
    rows = [(run_id, target, case_id) for run_id, target, cases in failing[:MOST] for case_id in cases]
    wanted = {run_id for run_id, _, _ in rows}
    if rows:
        run_ids, targets, case_ids = zip(*rows, strict=True)
        table = pa.table({
            "run_id": pa.array(run_ids, pa.string()), "target": pa.array(targets, pa.string()),
            "case_id": pa.array(case_ids, pa.string()),
        })  # fmt: skip
        found = query([run for run in runs if run.run_id in wanted], _CAUSES, failing=table)
        for run_id, target, case_id, cause in zip(*(column.to_pylist() for column in found.itercolumns()), strict=True):
            known.setdefault((run_id, target), {})[case_id] = cause
    counted = [
        Counter(cause for case_id in cases if (cause := known.get((run_id, target), {}).get(case_id)))
        for run_id, target, cases in failing
    ]
    return [tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))) for counts in counted]
