"""The state of each case in each run of a machine, from the metadata of the files.

The metadata has the positions of failing cases among the sorted ids of the file; files with the same digest have the
same ids. So the ids are read from one file of each digest, and the rest is arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epcheck.conformance.records.terms import FLAKY
from epcheck.reports.store.machines import MachineRuns
from epcheck.reports.store.query import query
from epcheck.reports.store.run_file import FileProblemError, ProblemKind, StoredRun
from epcheck.reports.trend.case_history import FAILING, NOT_RECORDED, PASSING, UNSTABLE

Codes = np.ndarray[Any, np.dtype[np.int64]]
StateMatrix = np.ndarray[Any, np.dtype[np.int8]]

_IDS = """
SELECT r.digest, o.case_id, CASE o.domain WHEN '' THEN '' ELSE o.domain || '::' END || o.operator AS operator
FROM outcomes o JOIN recorded r ON o.run_id = r.run_id AND o.target = r.target ORDER BY r.digest, o.case_id
"""


@dataclass(frozen=True)
class CaseTable:
    """All cases of a store, each with a code: its index. operators: their keys. of_digest: the codes of the cases of a
    file, in the order of their ids."""

    case_ids: Sequence[str]
    operators: Sequence[str]
    of_digest: dict[str, Codes]


def read_cases(machines: Sequence[MachineRuns]) -> CaseTable:
    """Read the ids of all cases. Raises FileProblemError and StoreError."""
    recorded: dict[str, tuple[StoredRun, str]] = {}
    for machine in machines:
        for run, (stored, target) in enumerate(machine.runs):
            if counted := machine.find_counts(run):
                recorded.setdefault(counted.digest, (stored, target))
    table = query(
        list({stored.run_id: stored for stored, _ in recorded.values()}.values()),
        _IDS,
        recorded=pa.table({
            "digest": pa.array(list(recorded), pa.string()),
            "run_id": pa.array([stored.run_id for stored, _ in recorded.values()], pa.string()),
            "target": pa.array([target for _, target in recorded.values()], pa.string()),
        }),
    ).combine_chunks()  # fmt: skip
    ids = table["case_id"].combine_chunks().dictionary_encode()
    codes = ids.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(codes, return_index=True)
    return CaseTable(
        ids.dictionary.to_pylist(),
        table["operator"].take(pa.array(first)).to_pylist(),
        {digest: codes[pc.equal(table["digest"], digest).to_numpy()] for digest in recorded},
    )


def case_states(machine: MachineRuns, table: CaseTable) -> StateMatrix:
    """(runs, cases): the state of each case in each run. What is recorded and does not fail is PASSING.

    Raises FileProblemError when a file names a position beyond its rows.
    """
    found = np.full((len(machine.runs), len(table.case_ids)), NOT_RECORDED, np.int8)
    for run in range(len(machine.runs)):
        if counted := machine.find_counts(run):
            found[run, table.of_digest[counted.digest]] = PASSING
            for status, codes in _failing(machine, run, table):
                found[run, codes] = UNSTABLE if status == FLAKY else FAILING
    return found


def failing_statuses(machine: MachineRuns, run: int, table: CaseTable) -> dict[int, str]:
    """Code -> status of the cases that fail in a run."""
    return {code: status for status, codes in _failing(machine, run, table) for code in codes.tolist()}


def _failing(machine: MachineRuns, run: int, table: CaseTable) -> list[tuple[str, Codes]]:
    counted = machine.find_counts(run)
    if counted is None:
        return []
    codes = table.of_digest[counted.digest]
    try:
        return [(status, codes[positions]) for status, positions in counted.failing.items()]
    except IndexError:
        path = machine.runs[run][0].path
        raise FileProblemError(path, ProblemKind.DAMAGED, "names failing cases that it does not have") from None
