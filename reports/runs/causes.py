"""Causes: the cases of all operators that are not right for one and the same reason, as one entry with one key.

A cause is coarser than a finding, which is of one operator and sample: a cause says what the findings have in common.
Its key is computed from the record alone and is the same in every run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from epcheck.conformance.records.record import Record
from epcheck.reports.cause_text import CauseText, cause_text
from epcheck.reports.runs.dtypes import dtype_order
from epcheck.reports.runs.findings import group_key

MOST_SHARED = 6
"""Facts that are told of what all cases of a cause have in common."""


@dataclass(frozen=True)
class Cause:
    """Cases of one candidate that are not right for the same reason.

    text, place, link: as of CauseText. statuses, blames: counted; the blame of nobody is empty. below: what DirectML
    itself says of them (`--explain`), counted, without those that were not asked. common: what all cases have in
    common, in words, where there are several. smallest: the case whose inputs and outputs have the fewest elements, of
    several the first by its id. repro: the command line that writes it out. findings: keys, the largest first.
    """

    key: str
    target: str
    reading: str
    text: str
    place: str
    link: str
    statuses: Mapping[str, int]
    blames: Mapping[str, int]
    below: Mapping[str, int]
    operators: tuple[str, ...]
    dtypes: tuple[str, ...]
    common: tuple[str, ...]
    smallest: str
    repro: str
    cases: int
    findings: tuple[str, ...]


@dataclass(slots=True)
class CauseBuilder:
    """A cause in the making."""

    target: str
    reading: str
    words: CauseText
    statuses: Counter[str] = field(default_factory=Counter)
    blames: Counter[str] = field(default_factory=Counter)
    below: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    dtypes: set[str] = field(default_factory=set)
    findings: Counter[str] = field(default_factory=Counter)
    common: dict[str, str] | None = None
    smallest: tuple[float, str, str] = (math.inf, "", "")

    def add(self, record: Record, finding: str) -> None:
        case = record.case
        self.statuses[record.status] += 1
        self.blames[record.blame] += 1
        if record.direct is not None and record.direct.blame:
            self.below[record.direct.blame] += 1
        self.operators[case.operator_key] += 1
        self.dtypes.add(case.dtype)
        self.findings[finding] += 1
        own = _facts(record)
        self.common = own if self.common is None else dict(self.common.items() & own.items())
        elements = float(sum(math.prod(value.shape) for value in case.values))
        self.smallest = min(self.smallest, (elements, record.case_id, case.repro))

    def build(self, key: str) -> Cause:
        cases = self.statuses.total()
        common = sorted(self.common or {}) if cases > 1 else []
        return Cause(
            key=key,
            target=self.target,
            reading=self.reading,
            text=self.words.text,
            place=self.words.place,
            link=self.words.link,
            statuses=dict(self.statuses.most_common()),
            blames=dict(self.blames.most_common()),
            below=dict(self.below.most_common()),
            operators=tuple(operator for operator, _ in self.operators.most_common()),
            dtypes=tuple(sorted(self.dtypes, key=dtype_order)),
            common=tuple(f"{name} {self.common[name]}" for name in common[:MOST_SHARED]) if self.common else (),
            smallest=self.smallest[1],
            repro=self.smallest[2],
            cases=cases,
            findings=tuple(finding for finding, _ in self.findings.most_common()),
        )


class Causes:
    """Sorts records into causes; keeps no record."""

    def __init__(self) -> None:
        self._builders: dict[str, CauseBuilder] = {}

    def add(self, record: Record, reading: str, finding: str) -> str:
        """Count a record that is shown with this reading; the key of its cause, empty where there is none."""
        words = cause_text(record)
        if words is None:
            return ""
        key = cause_key(record, words)
        if key not in self._builders:
            self._builders[key] = CauseBuilder(record.candidate.target, reading, words)
        self._builders[key].add(record, finding)
        return key

    def of(self, target: str) -> Iterable[Cause]:
        """The causes of one candidate, in the order in which they were met."""
        return (builder.build(key) for key, builder in self._builders.items() if builder.target == target)


def cause_key(record: Record, words: CauseText) -> str:
    """Equal for records of one candidate that are not right for the same reason."""
    return group_key(record.candidate.target, record.reading, words.text, words.place)


def _facts(record: Record) -> dict[str, str]:
    """What cases may have in common: dtype, binding, the rank of the first input, the value of each attribute."""
    case = record.case
    found = {f"attribute {name}": f"= {value}" for name, value in case.attributes.items() if len(str(value)) <= 40}
    found |= {"dtype": case.dtype, "binding": case.binding, "sample": case.sample}
    if case.values:
        found["rank"] = str(len(case.values[0].shape))
    return found
