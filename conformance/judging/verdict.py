"""The verdict: the opinions on candidate, baseline and oracles together, read against claim and expectation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from epcheck.conformance.judging import claim, explain, variants, wording
from epcheck.conformance.judging.device_limit import lacking_feature
from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.preparation import case_facts
from epcheck.conformance.preparation.prepared_case import PreparedCase, UnbuiltCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.record import Record
from epcheck.conformance.records.terms import (
    BASELINE,
    BOTH,
    CANDIDATE,
    EXPECTED,
    FAILURE,
    FIXED,
    FLAKY,
    NOBODY,
    NOTED,
    OK,
    ORACLES_DISAGREE,
)
from epcheck.conformance.targets.expectation import find_covering
from epcheck.conformance.targets.target import Target

RIGHT, RIGHT_UNCLAIMED, EXCUSED, HARMLESS, REFUSES, NOT_ASKED, NOT_TAKEN, ECHOED, CHANGES, WRONG = (
    "right", "right, though unclaimed", "excused", "harmless", "refuses", "not asked", "not taken", "echoed", "changes",
    "wrong",
)  # fmt: skip
"""The condition of a candidate. It gives what must come out, where that is claimed or nothing is known of its claims;
or where it is not claimed; what it gives is far from that, and right only because a published floor accepts it; it
declines what it need not take; it refuses a session, and nothing is known of its claims; it cannot be asked on this
device or by this runtime; it does not take a node that it promises to take; its answer is wrong, and the very answer of
another oracle; its answer changes when the case is repeated; it fails."""


class Row(NamedTuple):
    """A row of TABLE: who is to blame, and how the status reads where there is no expectation, where there are only
    expectations of something else, and where one covers the candidate's opinion."""

    blame: str
    unexpected: str
    other_expected: str
    expected: str


TABLE: Mapping[tuple[str, bool], Row] = {
    # candidate, baseline is wrong:  blame             unexpected  other     expected
    (RIGHT, False):              Row(NOBODY,           OK,         FIXED,    OK),
    (RIGHT, True):               Row(BASELINE,         NOTED,      FIXED,    NOTED),
    (RIGHT_UNCLAIMED, False):    Row(NOBODY,           NOTED,      FIXED,    NOTED),
    (RIGHT_UNCLAIMED, True):     Row(BASELINE,         NOTED,      FIXED,    NOTED),
    (EXCUSED, False):            Row(NOBODY,           NOTED,      FIXED,    NOTED),
    (EXCUSED, True):             Row(BASELINE,         NOTED,      FIXED,    NOTED),
    (HARMLESS, False):           Row(NOBODY,           OK,         OK,       OK),
    (HARMLESS, True):            Row(BASELINE,         NOTED,      NOTED,    NOTED),
    (REFUSES, False):            Row(NOBODY,           NOTED,      NOTED,    EXPECTED),
    (REFUSES, True):             Row(BASELINE,         NOTED,      NOTED,    EXPECTED),
    (NOT_ASKED, False):          Row(NOBODY,           NOTED,      NOTED,    NOTED),
    (NOT_ASKED, True):           Row(BASELINE,         NOTED,      NOTED,    NOTED),
    (NOT_TAKEN, False):          Row(CANDIDATE,        FAILURE,    FAILURE,  EXPECTED),
    (NOT_TAKEN, True):           Row(CANDIDATE,        FAILURE,    FAILURE,  EXPECTED),
    (ECHOED, False):             Row(ORACLES_DISAGREE, FAILURE,    FAILURE,  EXPECTED),
    (ECHOED, True):              Row(ORACLES_DISAGREE, FAILURE,    FAILURE,  EXPECTED),
    (CHANGES, False):            Row(CANDIDATE,        FLAKY,      FLAKY,    EXPECTED),
    (CHANGES, True):             Row(BOTH,             FLAKY,      FLAKY,    EXPECTED),
    (WRONG, False):              Row(CANDIDATE,        FAILURE,    FAILURE,  EXPECTED),
    (WRONG, True):               Row(BOTH,             FAILURE,    FAILURE,  EXPECTED),
}  # fmt: skip
"""(condition of the candidate, whether the baseline is wrong) -> blame and readings."""


def verdict(prepared: PreparedCase, target: Target, evidence: Evidence) -> Record:
    """The record of one case on one candidate."""
    evidence = variants.apply_variants(evidence)
    candidate, expectations = evidence.candidate, evidence.expectations
    is_claimable = claim.is_published(prepared, target) and not (
        target.calls_directml and candidate.status == terms.UNPLACED
    )
    gap = claim.find_unclaimed(prepared, target) if is_claimable else None
    claimed = gap is None if is_claimable else None
    row = TABLE[_condition(prepared, target, evidence, claimed), evidence.is_baseline_wrong]
    reading, expectation = row.unexpected, None
    if expectations:
        seen = _as_expected(prepared, candidate)
        expectation = find_covering(expectations, seen, variants.differing(evidence.variants))
        reading = row.expected if expectation else row.other_expected
        if reading == FIXED:
            expectation = expectations[0]
    return Record(
        case=variants.name_command(prepared.facts, target, evidence.variants),
        candidate=candidate,
        baseline=evidence.baseline,
        oracles=evidence.oracles,
        status=candidate.status,
        blame=row.blame,
        reading=reading,
        reason=wording.reason(evidence, prepared, gap),
        claimed=claimed,
        expectation=expectation.as_expected() if expectation else None,
        direct=evidence.direct,
        variants=tuple(evidence.variants),
    )


def _as_expected(prepared: PreparedCase, candidate: Opinion) -> Opinion:
    """What expectations are about: a refusal is one, also where the standard allows it."""
    is_refusal = prepared.may_be_refused and candidate.status == terms.PASS and candidate.message
    return replace(candidate, status=terms.REFUSED) if is_refusal else candidate


def _condition(prepared: PreparedCase, target: Target, evidence: Evidence, claimed: bool | None) -> str:
    """The condition of the candidate, one of those above. claimed: None where nothing is known of its claims."""
    candidate = evidence.candidate
    match candidate.status:
        case terms.PASS:
            if claimed is False and not prepared.must_be_refused:
                return RIGHT_UNCLAIMED
            return EXCUSED if candidate.excused else RIGHT
        case terms.SKIPPED:
            return NOT_ASKED
        case terms.UNPLACED:
            promised = claimed and claim.is_promised(prepared, target)
            refusable = prepared.must_be_refused or prepared.may_be_refused
            return NOT_TAKEN if promised and not refusable else HARMLESS
        case terms.REFUSED if lacking_feature(candidate):
            return NOT_ASKED
        case terms.REFUSED if claimed is False:
            return HARMLESS
        case terms.REFUSED if claimed is None and target.calls_directml and explain.REFUSES.search(candidate.message):
            return HARMLESS
        case terms.VARIANT_DEPENDENT | terms.USAGE_DEPENDENT:
            return WRONG
        case terms.FLAKY:
            return CHANGES
        case terms.REFUSED if claimed is None and target.provider is not None:
            return REFUSES
    return ECHOED if evidence.echoes else WRONG


def unbuilt(unbuilt_case: UnbuiltCase, target: Target) -> Record:
    """The record of a case whose generator failed: nobody ran it, so nobody is to blame, and it is no success."""
    return Record(
        case=case_facts.of_unbuilt(unbuilt_case.case),
        candidate=Opinion(target.name, terms.SKIPPED, message=unbuilt_case.why, log_tail=unbuilt_case.log),
        baseline=None,
        oracles={},
        status=terms.SKIPPED,
        blame=NOBODY,
        reading=FAILURE,
        reason=unbuilt_case.why,
        claimed=None,
    )
