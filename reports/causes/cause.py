"""A cause: cases of one candidate that are not right for the same reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from epcheck.conformance.records.case_condition import Term, holds
from epcheck.conformance.records.facts import Facts


@dataclass(frozen=True)
class Cause:
    """Cases of one candidate that are not right for the same reason.

    key: of the same cause the same in every run. text: the symptom, or the reason of an expectation. condition: under
    which it shows, in words; empty where no condition separates the cases. evidence: in how many cases the condition
    holds and how many of those fail; or, without one, the nearest condition. place: DirectML's operator, for its
    provider. link: of the finding, where an expectation has one. statuses, blames: counted; the blame of nobody is
    empty. below: what DirectML itself says of them (`--explain`), counted, without those that were not asked.
    smallest: the failing case whose inputs and outputs have the fewest elements, of several the first by its id; repro:
    the command line that writes it out. right: the case nearest to it that is right; empty where there is none.
    shared: the baseline fails alike. findings: keys of the findings that its cases belong to, the largest first.
    terms: those of the condition.
    """

    key: str
    target: str
    reading: str
    text: str
    condition: str
    evidence: str
    place: str
    link: str
    statuses: Mapping[str, int]
    blames: Mapping[str, int]
    below: Mapping[str, int]
    operators: tuple[str, ...]
    dtypes: tuple[str, ...]
    smallest: str
    repro: str
    right: str
    cases: int
    shared: bool = False
    findings: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()

    def matches(self, facts: Facts) -> bool:
        """Whether the condition holds for a case with these facts (see `describe_case`)."""
        return holds(self.terms, facts)

    @property
    def title(self) -> str:
        """The condition and the symptom in one line."""
        return f"{self.condition}: {self.text}" if self.condition else self.text

    @property
    def full_title(self) -> str:
        """The title, with DirectML's operator where there is one."""
        return " · ".join(filter(None, (self.title, self.place)))


@dataclass(frozen=True)
class Causes:
    """The causes of all candidates, the worst and largest first. of_case: (target, case id) -> its cause."""

    all: tuple[Cause, ...] = ()
    of_case: Mapping[tuple[str, str], Cause] = field(default_factory=dict)

    def of(self, target: str) -> tuple[Cause, ...]:
        """Those of one candidate."""
        return tuple(cause for cause in self.all if cause.target == target)
