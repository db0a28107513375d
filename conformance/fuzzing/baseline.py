"""What the baseline makes of what fails on the candidate. Where it fails in the same way, the fault is not the
candidate's alone: it is in what both share, or in our oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from epcheck.conformance.fuzzing.rounds import RoundsByLevel
from epcheck.conformance.fuzzing.symptom import symptom
from epcheck.conformance.records.record import Record
from epcheck.conformance.workers.client import TargetDown
from epcheck.generators.case import Case

Item = TypeVar("Item")


class Baseline:
    """The target that is asked about failures; it is started for the first."""

    def __init__(self, rounds: RoundsByLevel | None, level: str = "") -> None:
        """rounds: of the baseline; None for none. level: of graph optimisation, as the candidate runs."""
        self._rounds, self._level = rounds, level

    def shows(self, failures: Sequence[tuple[Item, Record]], case_of: Callable[[Item], Case]) -> list[bool]:
        """Whether it fails in the same way, of each failure. One that does not start or is lost shows none."""
        records: dict[str, Record] = {}
        if self._rounds is not None and failures:
            try:
                judged = self._rounds[self._level].judge(case_of(item) for item, _ in failures)
                records = {record.case_id: record for record in judged}
            except TargetDown:
                self._rounds = None
        return [
            record.case_id in records and symptom(records[record.case_id]) == symptom(record) for _, record in failures
        ]
