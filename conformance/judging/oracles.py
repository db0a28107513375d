"""The further oracles of a case: what they say of the suite's own truth, and whose answer a candidate repeats."""

from __future__ import annotations

from collections.abc import Mapping

from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.opinion import Opinion


def second_oracles(prepared: PreparedCase, reference: Opinion | None) -> Mapping[str, str]:
    """Oracle name -> what the DirectML description and the reference evaluator say of the suite's own truth."""
    if reference is None:
        return prepared.oracles
    match reference.status:
        case terms.PASS:
            words = "agrees"
        case terms.MISMATCH:
            words = f"disagrees: {reference.message}"
        case _:
            words = f"cannot: {reference.message}"
    return {**prepared.oracles, reference.target: words}


def echoes(prepared: PreparedCase, candidate: str, references: Mapping[str, str]) -> tuple[str, ...]:
    """The oracles whose outputs are the candidate's, bit by bit.

    candidate: `outcome.bits` of its outputs; references: oracle name -> the same of its own; empty without outputs.
    """
    answers = {**dict.fromkeys(prepared.oracles, prepared.answer), **references}
    return tuple(name for name, answer in answers.items() if answer and answer == candidate)
