"""Coverage: what a provider claims, and what the suite's cases and a run say of each claim.

A claim is an operator version with one dtype: a triple. A case covers those that its node binds to a type constraint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from epcheck.conformance.records import record, terms
from epcheck.generators import registry, suite
from epcheck.generators.case import Case
from epcheck.generators.claims import Claims, Key, why_unreachable
from epcheck.generators.node import qualified_name
from epcheck.generators.operator import Operator

COVERED, PASSING, FAILING, UNPLACED, UNREACHABLE, MISSING = (
    "covered", "passing", "failing", "unplaced", "unreachable", "missing",
)  # fmt: skip
"""What is said of a claim: it has cases (and no run was asked); all of them that ran pass; at least one fails, be that
expected or not; none was taken by the provider, or its device lacks what they need; no case can reach it; there is no
case, though one could reach it."""


NO_FAILURE = (terms.PASS, terms.UNPLACED, terms.SKIPPED)


@dataclass(frozen=True)
class Triple:
    """One claim. state: one of the above. why: for one that is unreachable. statuses: of a run, how often each came;
    `noted` for one that is not right and no failure of the provider's."""

    key: Key
    dtype: str
    state: str
    why: str = ""
    statuses: Mapping[str, int] = field(default_factory=dict)

    @property
    def operator(self) -> str:
        """`Slice`, `com.microsoft::Gelu`."""
        return _operator_key(self.key)


@dataclass(frozen=True)
class CaseKind:
    """The cases by one rule. kind, aim: what they are, in a word and in words. cases: how many the suite has.
    statuses: of a run, how often each came."""

    kind: str
    aim: str
    cases: int
    statuses: Mapping[str, int] = field(default_factory=dict)


Seen = Mapping[tuple[Key, str], Mapping[str, int]]
"""(operator version, dtype) -> how many records of a run have each status, or `noted`; empty where nothing ran."""


def of_suite(claims: Claims) -> Iterator[Triple]:
    """Every claim, covered by a case of the suite or not."""
    for key, dtypes in _collect_claimed_types(claims).items():
        operator = registry.all_operators().get(_operator_key(key))
        reached = dtypes_of_cases(operator, key, dtypes) if operator else frozenset[str]()
        yield from (_triple(key, dtype, {} if dtype in reached else None) for dtype in sorted(dtypes))


def of_run(claims: Claims, seen: Seen) -> Iterator[Triple]:
    """Every claim, with what the records of a run say of it."""
    for key, dtypes in _collect_claimed_types(claims).items():
        yield from (_triple(key, dtype, seen.get((key, dtype))) for dtype in sorted(dtypes))


def case_kinds(records: Iterable[record.Record] = ()) -> tuple[CaseKind, ...]:
    """Every kind of case that no operator declares itself, and what the records of a run say of them."""
    kinds = _list_kinds()
    statuses: dict[str, Counter[str]] = {kind: Counter() for kind in suite.KINDS}
    for item in records:
        if item.case_id in kinds:
            statuses[kinds[item.case_id]][item.status] += 1
    counts = Counter(kinds.values())
    return tuple(CaseKind(kind, aim, counts[kind], dict(statuses[kind])) for kind, aim in suite.KINDS.items())


@cache
def _list_kinds() -> Mapping[str, str]:
    """Id of a case that no operator declares itself -> its kind; listing them takes seconds."""
    return {case.id: case.kind for case in suite.engine_cases()}


def tally(records: Iterable[record.Record]) -> Seen:
    """What the records say of each operator version and dtype, claimed or not. One that is only noted, as a refusal is
    for want of float16 in the device, does not count as its status."""
    found: dict[tuple[Key, str], Counter[str]] = {}
    for item in records:
        case = item.case
        is_noted = item.status not in NO_FAILURE and item.reading not in terms.FAILING
        for dtype in set(case.types.values()):
            key = case.domain, case.operator, case.since_version
            found.setdefault((key, dtype), Counter())[terms.NOTED if is_noted else item.status] += 1
    return found


def _collect_claimed_types(claims: Claims) -> dict[Key, set[str]]:
    return {key: set().union(*constraints.values()) for key, constraints in claims.operators.items()}


def _operator_key(key: Key) -> str:
    domain, name, _ = key
    return qualified_name(name, domain)


def _triple(key: Key, dtype: str, statuses: Mapping[str, int] | None) -> Triple:
    if statuses is None:
        why = why_unreachable(key, dtype)
        return Triple(key, dtype, UNREACHABLE if why else MISSING, why)
    if not statuses:
        return Triple(key, dtype, COVERED)
    failing = statuses.keys() - {*NO_FAILURE, terms.NOTED}
    state = FAILING if failing else PASSING if terms.PASS in statuses else UNPLACED
    return Triple(key, dtype, state, statuses=statuses)


@lru_cache(1)
def _list_by_version(operator: Operator[Any]) -> Mapping[int, list[Case]]:
    """The operator's own cases of each version, kept until another operator is asked for."""
    found: dict[int, list[Case]] = {}
    for case in operator.cases():
        found.setdefault(case.since_version, []).append(case)
    return found


def has_case(operator: Operator[Any], since_version: int) -> bool:
    """Whether the operator has a case of its own in that version."""
    return since_version in _list_versions(operator)


@cache
def _list_versions(operator: Operator[Any]) -> frozenset[int]:
    """The versions of which the operator has cases of its own: they are enumerated once."""
    return frozenset(_list_by_version(operator))


def dtypes_of_cases(operator: Operator[Any], key: Key, claimed: set[str]) -> frozenset[str]:
    """The dtypes that the operator's cases of a version bind, looked for until all that can be reached are found."""
    reachable = frozenset(dtype for dtype in claimed if not why_unreachable(key, dtype))
    return _find_dtypes(operator, key[2], reachable)


@cache
def _find_dtypes(operator: Operator[Any], since_version: int, reachable: frozenset[str]) -> frozenset[str]:
    """Models are built, first one for each label of dtypes, since only they tell all constraints."""
    cases = _list_by_version(operator).get(since_version, [])
    found: set[str] = set()
    for case in (*{case.dtype: case for case in cases}.values(), *cases):
        if found >= reachable:
            break
        found |= set(case.build().types.values())
    return frozenset(found)
