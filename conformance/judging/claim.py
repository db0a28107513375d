"""What a target claims of a case, from its claim table, and what that predicts of the case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import DISABLE_FALLBACK, Target
from epcheck.generators.claims import Claims
from epcheck.generators.directml.feature_level import is_documented


def find_unclaimed(prepared: PreparedCase, target: Target) -> str | None:
    """What the target's provider does not claim of this case; None when it claims it or has no table.

    The claims of DirectML itself are its documentation pages: they say which operator descriptions are valid.
    """
    if target.calls_directml:
        described = prepared.facts.directml
        return described.violations[0] if described and described.violations else None
    claims = target.claims
    return None if claims is None else _find_unclaimed(claims, *_key(prepared))


def is_promised(prepared: PreparedCase, target: Target) -> bool:
    """Whether the provider has to take the node: it claims the operator with these dtypes, whatever its shapes,
    attributes and inputs."""
    if prepared.level:  # a table says nothing of the other nodes of a graph
        return False
    if target.calls_directml:
        return find_unclaimed(prepared, target) is None
    claims = target.claims
    if claims is None:
        return False
    key = _key(prepared)
    return _find_unclaimed(claims, *key) is None and not _is_partial(claims, *key)


_Key = tuple[str, str, int, tuple[tuple[str, str], ...]]


def _key(prepared: PreparedCase) -> _Key:
    case = prepared.case
    return case.domain, case.operator, case.since_version, tuple(prepared.types.items())


@cache
def _find_unclaimed(
    claims: Claims, domain: str, operator: str, since_version: int, types: tuple[tuple[str, str], ...]
) -> str | None:
    return claims.why_not(domain, operator, since_version, dict(types))


@cache
def _is_partial(
    claims: Claims, domain: str, operator: str, since_version: int, types: tuple[tuple[str, str], ...]
) -> bool:
    return claims.is_partial(domain, operator, since_version, dict(types))


def is_published(prepared: PreparedCase, target: Target) -> bool:
    """Whether it is known what the target claims; of a DirectML operator, whether its tensors' types are documented."""
    if target.calls_directml:
        described = prepared.facts.directml
        return described is not None and is_documented(described.name)
    return target.claims is not None


def predicted_status(prepared: PreparedCase, target: Target, expectations: Sequence[Expectation]) -> str:
    """The status that a case will probably have. expectations: of the target, those whose glob matches the case."""
    if find_unclaimed(prepared, target) is not None:
        return terms.UNPLACED
    return expectations[0].status if expectations else terms.PASS


def can_show_placement(target: Target, facts: Mapping[str, str]) -> bool:
    """Whether a session that is created and not run can show that the target declines a case: the target has a claim
    table, and its sessions record where nodes go. facts: what its worker reports of itself."""
    records = facts.get("assignment") == "recorded" and target.config.get(DISABLE_FALLBACK) == "1"
    return records and target.claims is not None
