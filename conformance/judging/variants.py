"""Variants of a case: whether one applies, how it compares with the ordinary way, and in which words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import msgspec

from epcheck.conformance.judging.evidence import Evidence
from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.case_facts import CaseFacts
from epcheck.conformance.records.opinion import Opinion
from epcheck.conformance.records.outcome import DONE, Outcome
from epcheck.conformance.records.record import VariantResult
from epcheck.conformance.records.repro_command import of_variant, on_target
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import Target
from epcheck.conformance.targets.variants import DAMAGED, DYNAMIC, FORBIDDEN, FROM, STALE, Axis, is_use
from epcheck.conformance.workers.program.backends.declined import DECLINED
from epcheck.conformance.workers.program.backends.uses import FOUND

COMPARED = (terms.PASS, terms.MISMATCH, terms.REFUSED)
"""Statuses of the ordinary way with which those of variants are compared."""

NOT_PLACED_EITHER = "the provider does not take the node"
ENDS = "the plain run has no stable result"
LEFT_OUT = "no node is left at this level"
NOT_RIGHT = "the plain run is not right"
BROKEN = tuple(f"{Axis.CONTEXT}={how}" for how in (STALE, DAMAGED))


UNCHECKED: Mapping[str, tuple[Sequence[str], str]] = {
    "Inverse": (DYNAMIC, "the CPU provider does not check that matrices are square"),
    "RotaryEmbedding": (DYNAMIC, "the CPU provider does not check that the size of a head is even"),
    **dict.fromkeys(
        ("ArgMax", "ArgMin", "ReduceMean"),
        ((f"{Axis.RERUNS}=shapes",), "of no element it is undefined"),
    ),
}
"""Operator -> the uses whose sizes may be invalid although the CPU provider takes them, and why. What is undefined is
as the ONNX operators say (https://onnx.ai/onnx/operators)."""


def why_not(prepared: PreparedCase, target: Target, ordinary: Opinion) -> str:
    """Why a variant of a case is not run; empty where it is. ordinary: what the ordinary way gives."""
    if ordinary.status == terms.UNPLACED and not target.packed:
        return NOT_PLACED_EITHER
    if ordinary.status not in (*COMPARED, terms.UNPLACED):
        return ENDS
    if is_use(target.variant) and (ordinary.status != terms.PASS or prepared.must_be_refused):
        return NOT_RIGHT
    uses, why = UNCHECKED.get(prepared.op_type, ((), ""))
    if target.variant in uses:
        return why
    if prepared.may_be_refused:
        return "the standard leaves a part of it undefined"
    if target.packed and (prepared.must_be_refused or not prepared.graph or not prepared.emptiness):
        return "its model cannot be put into a pack"
    is_refused = prepared.must_be_refused or ordinary.status == terms.REFUSED
    if target.variant in BROKEN and is_refused:
        return "it has no context that could be broken"
    if target.variant.startswith(FROM) and is_refused:
        return "it has no context that another could load"
    return ""


def judge(prepared: PreparedCase, target: Target, outcome: Outcome) -> Opinion:
    """The opinion of a variant.

    At other levels, and from a context, the session's nodes are no longer the model's: what proves that the provider
    ran them is that the session may not fall back to CPU.
    """
    if not target.variant.startswith((f"{Axis.LEVEL}=", f"{Axis.CONTEXT}=")):
        return opinion(prepared, target, outcome)
    judged = opinion(prepared, replace(target, provider=None), outcome)
    elsewhere = [f"{node} was assigned to {name}" for name, node in outcome.assignment or () if name != target.provider]
    return replace(judged, status=terms.UNPLACED, message=elsewhere[0]) if elsewhere else judged


def compare(
    target: Target, ordinary: Opinion, answer: str, outcome: Outcome, judged: Opinion, bits: str
) -> VariantResult:
    """How a variant compares with the ordinary way. answer, bits: those of the outputs of the two."""
    name, message = target.variant, judged.message
    if judged.status in (terms.REFUSED, terms.UNPLACED, terms.PASS) and message.startswith(DECLINED):
        return VariantResult(name, terms.NOT_RUN, message.removeprefix(DECLINED))
    if name.startswith(FROM) and judged.status in (terms.REFUSED, terms.UNPLACED):
        return VariantResult(name, terms.SAME, f"refused: {judged.message}")
    if name in BROKEN:
        return _of_broken(name, outcome, judged, judged.status == ordinary.status and answer == bits)
    is_forbidden = (target.provider, name) in FORBIDDEN and FOUND not in message
    if judged.status in (terms.REFUSED, terms.TIMEOUT) and is_forbidden:
        return VariantResult(name, terms.SAME, f"forbidden by its documentation, and refused: {message}")
    if outcome.assignment == () and judged.status == terms.PASS and outcome.kind == DONE:
        return VariantResult(name, terms.NOT_RUN, LEFT_OUT)
    if judged.status != ordinary.status:
        return VariantResult(name, terms.DIFFERS, _words(judged), judged)
    if judged.status in (terms.REFUSED, terms.UNPLACED) or answer == bits:
        return VariantResult(name, terms.SAME)
    if judged.status == terms.PASS:
        return VariantResult(name, terms.CLOSE, "different bits, also right")
    return VariantResult(name, terms.DIFFERS, f"wrong differently: {message}", judged)


def _of_broken(name: str, outcome: Outcome, judged: Opinion, as_ordinarily: bool) -> VariantResult:
    """A context that is stale or damaged must be refused; a refusal is what the session of a good one may not give.
    as_ordinarily: it gives what the ordinary way gives, bit by bit."""
    if judged.status in (terms.REFUSED, terms.UNPLACED):
        return VariantResult(name, terms.SAME, f"refused: {judged.message}")
    if judged.status == terms.PASS:
        return VariantResult(name, terms.CLOSE, "accepted, and the result is right")
    if as_ordinarily:
        return VariantResult(name, terms.CLOSE, "accepted, and the result is that of the plain run")
    accepted = "accepted, and " if outcome.kind == DONE else ""
    return VariantResult(name, terms.DIFFERS, accepted + _words(judged), judged)


def _words(judged: Opinion) -> str:
    """What a variant does, in words."""
    match judged.status:
        case terms.PASS:
            return "is right"
        case terms.REFUSED if FOUND in judged.message:
            return judged.message.partition(FOUND)[2]
        case terms.REFUSED:
            return f"refuses at {judged.stage}: {judged.message}"
        case terms.UNPLACED:
            return f"is not taken: {judged.message}"
        case terms.MISMATCH:
            return f"is wrong: {judged.message}"
    return f"{judged.status}: {judged.message}"


def apply_variants(evidence: Evidence) -> Evidence:
    """The evidence with what the variants mean for the candidate: one that is right, or does not take the node, and
    differs in another way, is variant-dependent. One that is wrong stays so, however its variants do."""
    candidate = evidence.candidate
    if candidate.status in terms.DEPENDENT:
        return evidence
    if candidate.status not in (terms.PASS, terms.UNPLACED) or not (how := in_words(evidence.variants)):
        known = ordinary(evidence.expectations)
        return evidence if known == evidence.expectations else msgspec.structs.replace(evidence, expectations=known)
    does = "right" if candidate.status == terms.PASS else "not taken"
    uses = all(is_use(result.variant) for result in differing(evidence.variants))
    way = "used as applications use it" if uses else "run another way"
    status = terms.USAGE_DEPENDENT if uses else terms.VARIANT_DEPENDENT
    message = f"{does} in the plain run, but differs when {way}: {how}"
    changed = replace(candidate, status=status, message=message)
    return msgspec.structs.replace(evidence, candidate=changed)


def ordinary(expectations: Sequence[Expectation]) -> Sequence[Expectation]:
    """The expectations of the ordinary way. One that expects a difference is no expectation of a failure, and is not
    fixed where it does not come: the run may have had other variants, or none."""
    return [e for e in expectations if e.status not in terms.DEPENDENT] if expectations else expectations


def differing(results: Iterable[VariantResult]) -> tuple[VariantResult, ...]:
    """The results that differ from the ordinary way, confirmed alone."""
    return tuple(result for result in results if result.state == terms.DIFFERS)


def in_words(results: Sequence[VariantResult]) -> str:
    """Which variants differ and how, those that do the same together: `level=basic, level=all: is wrong: ...`."""
    alike: dict[str, list[str]] = {}
    for result in differing(results):
        alike.setdefault(_LOCATION.sub("", result.reason), []).append(result.variant)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in alike.items())


def name_command(facts: CaseFacts, target: Target, results: Sequence[VariantResult]) -> CaseFacts:
    """The facts of a case with the command that reproduces it on the target, in the first variant that differs. What
    only other cases in its session bring about has none."""
    names = [result.variant for result in differing(results) if result.variant != SHARED]
    if names:
        return replace(facts, repro=of_variant(facts.repro, target.name, names[0]))
    if target.makes_sessions:
        return facts
    return replace(facts, repro=on_target(facts.repro, target.name))


SHARED = f"{Axis.PACKING}=shared"
"""The variant that a result is of which the ordinary way gives with other cases in its session, and not alone."""

_LOCATION = re.compile(r"/\S*epcheck-(context|weights)-\w+/")
"""The folder of a context, or of weights, which has another name each time."""
