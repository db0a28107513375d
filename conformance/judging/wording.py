"""The reason of a verdict, in words."""

from __future__ import annotations

from epcheck.conformance.comparison.excused import in_words
from epcheck.conformance.judging import explain, variants
from epcheck.conformance.judging.device_limit import lacking_feature
from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion


def reason(evidence: Evidence, prepared: PreparedCase, gap: str | None) -> str:
    """What the candidate does, what the others do, and whose fault it is.

    gap: what of the case is not claimed; None where all is or nothing is published.
    """
    candidate, baseline, echoes = evidence.candidate, evidence.baseline, evidence.echoes
    passes = candidate.status == terms.PASS
    clauses = [f"{candidate.target}{_candidate(candidate, prepared, gap)}"]
    if echoes:
        clauses.append(f"{' and '.join(echoes)} give{'s' if len(echoes) == 1 else ''} the same result bit by bit")
    if baseline is not None and not passes and baseline.status == terms.PASS:
        clauses.append(f"{baseline.target} is right")
    elif baseline is not None and evidence.is_baseline_wrong:
        clauses.append(f"{baseline.target} is wrong{'' if passes else ' too'}: {baseline.message}")
    if gap and passes and not prepared.must_be_refused:
        clauses.append(f"but it is not claimed: {gap}")
    if candidate.status not in terms.DEPENDENT and (others := variants.in_words(evidence.variants)):
        clauses.append(f"differs when run another way: {others}")
    if evidence.direct:
        clauses.append(explain.words(evidence.direct))
    return "; ".join(clauses)


def _candidate(candidate: Opinion, prepared: PreparedCase, gap: str | None) -> str:
    """What the candidate does, after its name."""
    match candidate.status:
        case terms.PASS if candidate.excused:
            return f" is right only within a published absolute tolerance: {in_words(candidate.excused)}"
        case terms.PASS:
            if prepared.must_be_refused:
                return " refuses it, as required"
            return " refuses it, as allowed" if candidate.message else " is right"
        case terms.UNPLACED:
            return f" does not take the node: {gap or candidate.message}"
        case terms.REFUSED if feature := lacking_feature(candidate):
            return f": not applicable, the device has no {feature}: {candidate.message}"
        case terms.REFUSED:
            return f" refuses a valid node at {candidate.stage}: {candidate.message}"
        case terms.CRASH:
            return f" crashes: {candidate.message}"
        case terms.TIMEOUT:
            return f" does not answer: {candidate.message}"
    return f": {candidate.message}"
