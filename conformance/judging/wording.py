"""The reason of a verdict, in words."""

from __future__ import annotations

from epcheck.conformance.comparison.excused import in_words
from epcheck.conformance.judging import explain, variants
from epcheck.conformance.judging.device_limit import lacking_feature
from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion


def reason(evidence: Evidence, must_be_refused: bool, gap: str | None) -> str:
    """What the candidate does, what the others do, and whose fault it is.

    must_be_refused: whether the case is one that has to be refused. gap: what of it is not claimed; None where all is
    or nothing is published.
    """
    candidate, baseline, echoes = evidence.candidate, evidence.baseline, evidence.echoes
    passes = candidate.status == terms.PASS
    clauses = [f"{candidate.target}{_candidate(candidate, must_be_refused, gap)}"]
    if echoes:
        clauses.append(f"{' and '.join(echoes)} give{'s' if len(echoes) == 1 else ''} the very same answer")
    if baseline is not None and not passes and baseline.status == terms.PASS:
        clauses.append(f"{baseline.target} is right")
    elif baseline is not None and evidence.is_baseline_wrong:
        clauses.append(f"{baseline.target} is wrong{'' if passes else ' too'}: {baseline.message}")
    if gap and passes and not must_be_refused:
        clauses.append(f"although {gap}")
    if candidate.status != terms.VARIANT_DEPENDENT and (others := variants.in_words(evidence.variants)):
        clauses.append(f"run in another way it differs: {others}")
    if evidence.direct:
        clauses.append(explain.words(evidence.direct))
    return "; ".join(clauses)


def _candidate(candidate: Opinion, must_be_refused: bool, gap: str | None) -> str:
    """What the candidate does, after its name."""
    match candidate.status:
        case terms.PASS if candidate.excused:
            return f" gives a result that only a published floor accepts: {in_words(candidate.excused)}"
        case terms.PASS:
            if must_be_refused:
                return " refuses it, as it must"
            return " refuses it, as it may" if candidate.message else " gives the true result"
        case terms.UNPLACED:
            return f" does not take the node: {gap or candidate.message}"
        case terms.REFUSED if feature := lacking_feature(candidate):
            return f" is not asked of this device, which has no {feature}: {candidate.message}"
        case terms.REFUSED:
            return f" refuses a valid node at {candidate.stage}: {candidate.message}"
        case terms.CRASH:
            return f" brings its process down: {candidate.message}"
        case terms.TIMEOUT:
            return f" does not answer: {candidate.message}"
    return f": {candidate.message}"
