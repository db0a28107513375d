"""Expectations: deviations of a target that are known, explained and tolerated for now.

An expectation never changes how a case is judged. One that matches no case is stale, one whose case passes is `fixed`;
both fail a strict run. One whose condition does not hold on a machine does not apply there: it is neither used, nor
stale, nor fixed. How they are written down: `expectation_file`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from epcheck.conformance.records.case_condition import Term, format_condition
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Expected, VariantResult
from epcheck.conformance.records.terms import DEPENDENT, MISMATCH
from epcheck.conformance.targets.condition import ANYWHERE, Condition
from epcheck.generators.case_pattern import matches
from epcheck.generators.error import EpcheckError


class ExpectationError(EpcheckError, ValueError):
    """An expectation file is not valid; the message names the file, the entry and what to write."""


@dataclass(frozen=True)
class Expectation:
    """case: glob. where: terms about the facts of a case, which hold for those that are meant; none for all. status:
    what is expected. bound: the largest ULP error that is covered; None covers any. when: the condition under which it
    applies. variants: of a case that depends on its variant, globs over those that may differ; none for any. gives: the
    statuses that these may have then; none for any."""

    case: str
    status: str
    reason: str
    link: str = ""
    bound: float | None = None
    when: Condition = ANYWHERE
    where: tuple[Term, ...] = ()
    variants: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The glob, which of its cases and variants are meant, and on which machines it applies."""
        limits = "; ".join(filter(None, (self.where_text, self.variant_text)))
        meant = f"{self.case} ({limits})" if limits else self.case
        return f"{meant}, where {self.when}" if self.when else meant

    @property
    def where_text(self) -> str:
        """The terms in words; empty for all cases of the glob."""
        return format_condition(self.where) if self.where else ""

    @property
    def variant_text(self) -> str:
        """The variants in words, `threads=2 or threads=4 gives crash`; empty for all."""
        statuses = f" gives {' or '.join(self.gives)}" if self.gives else ""
        return f"{' or '.join(self.variants)}{statuses}" if self.variants else ""

    def covers_variant(self, result: VariantResult) -> bool:
        """Whether a variant that differs is one that may, and gives what it may give."""
        if self.variants and not any(fnmatchcase(result.variant, glob) for glob in self.variants):
            return False
        return not self.gives or (result.opinion is not None and result.opinion.status in self.gives)

    def covers(self, opinion: Opinion) -> bool:
        """Whether the opinion is the expected deviation: the status, and a mismatch within the bound.

        What is not a finite number of ULP (a NaN, a wrong shape, an integer) is within no bound.
        """
        if opinion.status != self.status:
            return False
        if self.bound is None or self.status != MISMATCH:
            return True
        errors = [difference.max_ulp for difference in opinion.differences]
        return bool(errors) and all(error is not None and error <= self.bound for error in errors)

    def as_expected(self) -> Expected:
        """What a record keeps of it."""
        return Expected(
            self.case, self.status, self.reason, self.link, str(self.when), self.where_text, self.variant_text
        )


def find_covering(
    expectations: Iterable[Expectation], opinion: Opinion, differing: Iterable[VariantResult]
) -> Expectation | None:
    """The first that covers the opinion; of one that depends on variants, the first of those that together cover all
    variants that differ. None where something is not covered."""
    covering = [each for each in expectations if each.covers(opinion)]
    needed = []
    for result in differing if opinion.status in DEPENDENT else ():
        found = next((each for each in covering if each.covers_variant(result)), None)
        if found is None:
            return None
        needed.append(found)
    return next(iter(needed or covering), None)


def head(case_id: str) -> str:
    """What all ids of an operator begin with: `Slice-`."""
    return f"{case_id.partition('/')[0].rpartition('-')[0]}-"


_IS_ID = re.compile(r"[^/]*-\d+/[^/]*/[^/]*\[[^\[\]]*\]", re.DOTALL)
"""An id, or its end: no other part of an id has two slashes and ends so. It is looked for in the ids of one operator,
and of those whose names end alike: `Gelu-1/...` is found in `com.microsoft::Gelu-1/...`."""


def is_case_id(text: str) -> bool:
    """Whether a text has the form of a case id, `Slice-13/float16/ties[runtime]`, and names one case alone."""
    return bool(_IS_ID.fullmatch(text)) and head(text) != "-" and not re.search("[*?]", text)


def may_match(expectation: Expectation, operator_head: str) -> bool:
    """Whether the glob could match some id that begins so: there are thousands of expectations, and most are of one
    operator."""
    prefix, has_wildcard = _beginning(expectation.case)
    if not has_wildcard:
        return not _IS_ID.fullmatch(prefix) or operator_head.endswith(head(prefix))
    return operator_head.startswith(prefix) or prefix.startswith(operator_head)


@cache
def _beginning(glob: str) -> tuple[str, bool]:
    """What stands before the first wildcard, and whether there is one."""
    prefix = re.split("[*?]", glob, maxsplit=1)[0]
    return prefix, prefix != glob


def is_about_node_tests(expectation: Expectation) -> bool:
    """Whether it is about node tests of onnx, which are no cases of the suite: `...[onnx]`, `...[onnx@dml]`."""
    return "[onnx" in expectation.case


def stale(expectations: Iterable[Expectation], case_ids: Iterable[str]) -> tuple[Expectation, ...]:
    """The expectations that match none of the cases."""
    by_head: dict[str, list[str]] = {}
    for case_id in case_ids:
        by_head.setdefault(head(case_id), []).append(case_id)

    def is_found(expectation: Expectation) -> bool:
        groups = (ids for start, ids in by_head.items() if may_match(expectation, start))
        return any(matches(case_id, expectation.case) for ids in groups for case_id in ids)

    return tuple(e for e in expectations if not is_found(e))


def applicable(expectations: tuple[Expectation, ...], facts: Mapping[str, str]) -> tuple[Expectation, ...]:
    """The expectations whose condition holds where a target's worker reports these facts; the same tuple where all
    do."""
    found = tuple(e for e in expectations if not e.when or e.when.holds(facts))
    return expectations if len(found) == len(expectations) else found
