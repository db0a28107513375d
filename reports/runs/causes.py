"""The causes of a run, found before its reports are made: they say of each record which cause it belongs to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from epcheck.conformance.records.terms import FAILING
from epcheck.reports.causes.cause import Causes
from epcheck.reports.causes.find import find_causes, find_explained
from epcheck.reports.runs.run_folder import read_records

RIGHT = b'"reading":"ok"'
"""What is in a line of a journal where nothing is to be said of its record; in a text the quotes are escaped."""

WRONG = tuple(b'"reading":"%b"' % reading.encode() for reading in FAILING)

SAMPLED = 200
"""Right cases of an operator that are looked at where it has expected deviations only, at most about."""

_OPERATOR = b'"operator":"'


def find_causes_of_run(folder: Path) -> Causes:
    """The causes of a run in its folder. Raises StoreError, as `read_records`.

    The journal is read twice, since most records are right: of those, the second time decodes all that are of an
    operator with failures, a sample of those with expected deviations, and none of another.
    """
    cases: Counter[bytes] = Counter()

    def is_wrong(line: bytes) -> bool:
        cases[_operator(line)] += 1
        return any(reading in line for reading in WRONG)

    failing, expected = find_explained(read_records(folder, is_wrong))
    steps = {_name(operator): 1 for operator in failing}
    steps = {_name(operator): 1 + cases[_name(operator)] // SAMPLED for operator in expected} | steps
    seen: Counter[bytes] = Counter()

    def is_wanted(line: bytes) -> bool:
        if RIGHT not in line:
            return True
        operator = _operator(line)
        seen[operator] += 1
        return operator in steps and seen[operator] % steps[operator] == 0

    return find_causes(read_records(folder, is_wanted), failing | expected)


def _name(operator: str) -> bytes:
    """A qualified name without its domain, as a line has it."""
    return operator.rpartition("::")[2].encode("ascii", "backslashreplace")


def _operator(line: bytes) -> bytes:
    """The text of the first field `operator` of a line: a name without its domain."""
    start = line.find(_OPERATOR) + len(_OPERATOR)
    return line[start : line.find(b'"', start)]
