"""Findings: the cases of one operator that are wrong in the same way, as one entry with one key.

The key is computed from the record alone and is the same in every run, so a finding can be followed from run to run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Self

from epcheck.conformance.records.record import Record
from epcheck.reports.checksum import group_key
from epcheck.reports.dtypes import dtype_order

_BOUND = r"int(?:32|64)_(?:max|min)(?:_(?:plus|minus)_\d+)?"

_NUMBER_IN_SAMPLE = re.compile(rf"(?<![^_])(?:minus_)?(?:{_BOUND}|length|\d+)(?![^_])")

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")

_DTYPE = re.compile(r"\b(?:bfloat16|float(?:16|32|64)?|double|u?int(?:2|4|8|16|32|64)|bool)\b")


@dataclass(frozen=True)
class Finding:
    """Cases of one operator that are wrong in the same way.

    sample: the samples' common name, `*` for the numbers in it. reason: of the first case. key: the same in every run.
    """

    key: str
    target: str
    reading: str
    operator: str
    sample: str
    status: str
    blame: str
    reason: str
    versions: tuple[int, ...]
    dtypes: tuple[str, ...]
    case_ids: tuple[str, ...]


@dataclass(slots=True)
class FindingBuilder:
    """A finding in the making: what its first case says, and what every case adds."""

    target: str
    reading: str
    operator: str
    sample: str
    status: str
    blame: str
    reason: str
    versions: set[int] = field(default_factory=set)
    dtypes: set[str] = field(default_factory=set)
    case_ids: list[str] = field(default_factory=list)

    @classmethod
    def of_first(cls, record: Record) -> Self:
        case = record.case
        return cls(
            target=record.candidate.target,
            reading=record.reading,
            operator=case.operator_key,
            sample=sample_stem(case.sample),
            status=record.status,
            blame=record.blame,
            reason=record.reason,
        )

    def add(self, record: Record) -> None:
        self.versions.add(record.case.since_version)
        self.dtypes.add(record.case.dtype)
        self.case_ids.append(record.case_id)

    def build(self, key: str) -> Finding:
        return Finding(
            key=key,
            target=self.target,
            reading=self.reading,
            operator=self.operator,
            sample=self.sample,
            status=self.status,
            blame=self.blame,
            reason=self.reason,
            versions=tuple(sorted(self.versions)),
            dtypes=tuple(sorted(self.dtypes, key=dtype_order)),
            case_ids=tuple(self.case_ids),
        )


def sample_stem(sample: str) -> str:
    """The sample's name with `*` for its numbers: `start_minus_1_step_2` is `start_*_step_*`."""
    return _NUMBER_IN_SAMPLE.sub("*", sample)


def finding_key(record: Record) -> str:
    """Equal for records that are wrong in the same way: the numbers and dtypes in the reason do not count."""
    parts = (record.candidate.target, record.case.domain, record.case.operator, sample_stem(record.case.sample))
    return group_key(*parts, record.reading, record.status, record.blame, reason_stem(record.reason))


def reason_stem(reason: str) -> str:
    """The reason with `#` for its numbers and `dtype` for its dtypes: alike where cases are wrong in the same way."""
    return _NUMBER.sub("#", _DTYPE.sub("dtype", reason))
