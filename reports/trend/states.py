"""Which state each case had in each run of a machine, from what the files say of themselves.

A file tells which of its cases fail by their places in its sorted ids; files with the same digest have the same ids. So
the ids are read from one file of each digest, and everything else is arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from epcheck.conformance.records.record import FLAKY
from epcheck.reports.store import history
from epcheck.reports.store.history import Kind, Stored, TroubleError
from epcheck.reports.store.nights import Observed
from epcheck.reports.trend.streaks import BAD, GOOD, UNKNOWN, WAVERING

Codes = np.ndarray[Any, np.dtype[np.int64]]
States = np.ndarray[Any, np.dtype[np.int8]]

_IDS = """
SELECT r.digest, o.case_id, CASE o.domain WHEN '' THEN '' ELSE o.domain || '::' END || o.operator AS operator
FROM outcomes o JOIN ran r ON o.run_id = r.run_id AND o.target = r.target ORDER BY r.digest, o.case_id
"""


@dataclass(frozen=True)
class Cases:
    """All cases of a store, each with a code: its index. operators: their keys. of_digest: the codes of the cases of a
    file, in the order of their ids."""

    case_ids: Sequence[str]
    operators: Sequence[str]
    of_digest: dict[str, Codes]


def cases(observed: Sequence[Observed]) -> Cases:
    """Read the ids of all cases. Raises TroubleError and StoreError."""
    ran: dict[str, tuple[Stored, str]] = {}
    for machine in observed:
        for run, (stored, target) in enumerate(machine.runs):
            if counted := machine.counted(run):
                ran.setdefault(counted.digest, (stored, target))
    table = history.query(
        list({stored.run_id: stored for stored, _ in ran.values()}.values()),
        _IDS,
        ran=pa.table({
            "digest": pa.array(list(ran), pa.string()),
            "run_id": pa.array([stored.run_id for stored, _ in ran.values()], pa.string()),
            "target": pa.array([target for _, target in ran.values()], pa.string()),
        }),
    ).combine_chunks()  # fmt: skip
    ids = table["case_id"].combine_chunks().dictionary_encode()
    codes = ids.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    _, first = np.unique(codes, return_index=True)
    return Cases(
        ids.dictionary.to_pylist(),
        table["operator"].take(pa.array(first)).to_pylist(),
        {digest: codes[pc.equal(table["digest"], digest).to_numpy()] for digest in ran},
    )


def states(machine: Observed, known: Cases) -> States:
    """(runs, cases): the state of each case in each run. What is recorded and does not fail is as it should be.

    Raises TroubleError when a file names a place beyond its rows.
    """
    found = np.full((len(machine.runs), len(known.case_ids)), UNKNOWN, np.int8)
    for run in range(len(machine.runs)):
        if counted := machine.counted(run):
            found[run, known.of_digest[counted.digest]] = GOOD
            for status, codes in _failing(machine, run, known):
                found[run, codes] = WAVERING if status == FLAKY else BAD
    return found


def statuses(machine: Observed, run: int, known: Cases) -> dict[int, str]:
    """Code -> status of the cases that fail in a run."""
    return {code: status for status, codes in _failing(machine, run, known) for code in codes.tolist()}


def _failing(machine: Observed, run: int, known: Cases) -> list[tuple[str, Codes]]:
    counted = machine.counted(run)
    if counted is None:
        return []
    codes = known.of_digest[counted.digest]
    try:
        return [(status, codes[at]) for status, at in counted.failing.items()]
    except IndexError:
        path = machine.runs[run][0].path
        raise TroubleError(path, Kind.DAMAGED, "names failing cases that it does not have") from None
