"""The judge: an outcome against the truth makes an opinion; candidate, baseline and oracles together make a verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from epcheck.conformance.comparison import compare
from epcheck.conformance.comparison.accuracy import measured_accuracy
from epcheck.conformance.judging import explain
from epcheck.conformance.preparation import case_facts as facts
from epcheck.conformance.preparation import directml_program
from epcheck.conformance.preparation.prepared_case import Prepared, Unprepared
from epcheck.conformance.records import record
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, TIMED_OUT, Outcome
from epcheck.conformance.records.record import Accuracy, Difference, Direct, Opinion, Record
from epcheck.conformance.targets.expectation import Expectation
from epcheck.conformance.targets.target import DISABLE_FALLBACK, Target
from epcheck.generators.claims import claims_of
from epcheck.generators.directml.feature_level import is_documented
from epcheck.generators.truth import Refusal

UNPLACED = re.compile(
    r"fallback to CPU EP has been explicitly disabled"
    r"|NOT_IMPLEMENTED : (Could not find an implementation|Failed to find kernel)"
    r"|Unsupported model IR version|Current official support for domain \S+ is till opset"
    r"|is not a registered function/op"
    r"|IsNodeCompatibleWithProvider !node_provider_type\.empty\(\)"
    rf"|^{directml_program.DECLINED}"
)
"""How ONNX Runtime words that nobody takes a node: CPU alone would, CPU was asked and has no kernel, the opset is newer
than the runtime, it knows no such operator, or neither the provider nor CPU has a kernel; and how the target `directml`
says that a node is not one DirectML operator."""

NOISE = re.compile(
    r"[A-Z]:\\_work\\1\\s\\(?:\w+\\)*|\\?onnxruntime_pybind11_state\.pyd![0-9A-Fa-f]+: |\(caller: [0-9A-Fa-f]+\) "
    r"|Exception\(\d+\) tid\([0-9a-f]+\) "
)
"""What differs from run to run, or from build machine to build machine, in ONNX Runtime's messages."""


def condense(message: str) -> str:
    """A runtime's message without addresses, thread ids and build folders: the same fault reads the same every time."""
    return " ".join(NOISE.sub(" ", message).split())


def opinion(prepared: Prepared, target: Target, outcome: Outcome, attempts: int = 1) -> Opinion:
    """What the target said, judged against the truth of the case."""
    accuracy = _accuracy(prepared, outcome)
    status, message, differences = _status(prepared, target, outcome, accuracy)
    return Opinion(
        target=target.name,
        status=status,
        stage=outcome.stage,
        message=message,
        differences=differences,
        assignment=outcome.assignment,
        create_s=outcome.create_s,
        run_s=outcome.run_s,
        attempts=attempts,
        log_tail="" if status == record.PASS else outcome.log_tail,
        shared=outcome.shared,
        accuracy=accuracy,
    )


def _accuracy(prepared: Prepared, outcome: Outcome) -> Accuracy | None:
    """Of answers that are not the correctly rounded ones."""
    if outcome.kind != DONE or outcome.exact:
        return None
    truth = prepared.truth
    return None if isinstance(truth, Refusal) else measured_accuracy(truth, outcome.outputs)


def _status(
    prepared: Prepared, target: Target, outcome: Outcome, accuracy: Accuracy | None
) -> tuple[str, str, tuple[Difference, ...]]:
    if outcome.kind == CRASHED:
        return record.CRASH, outcome.message, ()
    if outcome.kind == TIMED_OUT:
        return record.TIMEOUT, outcome.message, ()
    if outcome.kind == FAILED:
        said = condense(outcome.message)
        if UNPLACED.search(said):
            return record.UNPLACED, said, ()
        return (record.PASS if prepared.must_be_refused else record.REFUSED), said, ()
    if target.provider and (gap := placement_gap(prepared, target.provider, outcome)):
        return record.UNPLACED, gap, ()
    if outcome.exact:
        return record.PASS, "", ()
    truth = prepared.truth
    if isinstance(truth, Refusal):
        return record.MISMATCH, f"accepted what must be refused: {truth.reason}", ()
    if wrong := compare.differences(truth, outcome.outputs, accuracy):
        return record.MISMATCH, "; ".join(f"{d.output}: {d.reason}" for d in wrong), wrong
    if outcome.unwritten:
        names = ", ".join(outcome.unwritten)
        return record.MISMATCH, f"the provider does not write {names}: a buffer keeps what it held before", ()
    if outcome.repeat_differs:
        return record.FLAKY, f"a second run of the same session gives another {', '.join(outcome.repeat_differs)}", ()
    return record.PASS, "", ()


def placement_gap(prepared: Prepared, provider: str, outcome: Outcome) -> str:
    """Why the session's record does not prove that the node ran on the provider; empty when it does."""
    assignment, op_type = outcome.assignment, prepared.op_type
    if not assignment:
        return "no proof of placement: the session's record of assigned nodes is empty"
    elsewhere = [(name, op) for name, op in assignment if name != provider and op == op_type]
    if elsewhere:
        return f"{elsewhere[0][1]} was assigned to {elsewhere[0][0]}"
    if not any(op == op_type or (name == provider and op not in prepared.beside) for name, op in assignment):
        return f"no proof of placement: the session's record names no {op_type}"
    return ""


def needs_confirmation(prepared: Prepared, target: Target, first: Opinion) -> bool:
    """Whether an opinion has to be repeated before it is reported: every failure, but not a refusal to take a node
    that the target never claimed."""
    if first.status == record.PASS or (target.direct and first.status == record.UNPLACED):
        return False
    return first.status != record.UNPLACED or unclaimed(prepared, target) is None


def predicted(prepared: Prepared, target: Target, expected: Sequence[Expectation]) -> str:
    """The status that a case will probably have, by what the target claims and by what is expected of the case."""
    if unclaimed(prepared, target) is not None:
        return record.UNPLACED
    return expected[0].status if expected else record.PASS


def may_be_placed_only(prepared: Prepared, target: Target, facts: Mapping[str, str]) -> bool:
    """Whether a session that is not run can say that the target declines the case: it claims others, not this one,
    and its sessions record where nodes go."""
    records = facts.get("assignment") == "recorded" and target.config.get(DISABLE_FALLBACK) == "1"
    return records and unclaimed(prepared, target) is not None


def verdict(
    prepared: Prepared,
    target: Target,
    candidate: Opinion,
    baseline: Opinion | None,
    oracles: Mapping[str, str],
    echoes: Sequence[str],
    expectations: Sequence[Expectation],
    direct: Direct | None = None,
) -> Record:
    """The record of one case on one candidate.

    oracles: what each further oracle says of the suite's own. echoes: the oracles whose answer is the candidate's, bit
    by bit. expectations: those whose glob matches the case. direct: what explains the failure.
    """
    failing = candidate.status != record.PASS
    declined = candidate.status == record.UNPLACED
    baseline_wrong = baseline is not None and baseline.status not in (record.PASS, record.UNPLACED, record.SKIPPED)
    gap = unclaimed(prepared, target)
    table = _has_claims(prepared, target) and not (target.direct and declined)
    claimed = gap is None if table else None
    refusal = prepared.must_be_refused

    undocumented = target.direct and claimed is None and explain.REFUSES.search(candidate.message) is not None
    harmless = (declined and (refusal or not claimed)) or (
        candidate.status == record.REFUSED and (claimed is False or undocumented)
    )
    if harmless:
        blame = record.BASELINE if baseline_wrong else record.NOBODY
    elif failing and not declined and echoes:
        blame = record.ORACLES_DISAGREE
    elif failing and not declined:
        blame = record.BOTH if baseline_wrong else record.CANDIDATE
    elif declined:
        blame = record.CANDIDATE
    else:
        blame = record.BASELINE if baseline_wrong else record.NOBODY

    covering = next((e for e in expectations if e.covers(candidate)), None)
    shown = covering
    if failing and covering and not harmless:
        reading = record.EXPECTED
    elif failing and not harmless:
        reading = record.FAILURE
    elif expectations and not failing and not covering:
        reading, shown = record.FIXED, expectations[0]
    elif baseline_wrong or (claimed is False and not failing and not refusal):
        reading = record.NOTED
    else:
        reading = record.OK
    return Record(
        case=prepared.facts,
        candidate=candidate,
        baseline=baseline,
        oracles=oracles,
        status=candidate.status,
        blame=blame,
        reading=reading,
        reason="; ".join(
            [_words(prepared, target, candidate, baseline, gap if table else None, echoes, baseline_wrong)]
            + ([explain.words(direct)] if direct else [])
        ),
        claimed=claimed,
        expectation=shown.as_expected() if shown else None,
        direct=direct,
    )


def unbuilt(unprepared: Unprepared, target: Target) -> Record:
    """The record of a case whose generator failed: nobody ran it, so nobody is to blame, and it is no success."""
    return Record(
        case=facts.of_unbuilt(unprepared.case),
        candidate=Opinion(target.name, record.SKIPPED, message=unprepared.why, log_tail=unprepared.log),
        baseline=None,
        oracles={},
        status=record.SKIPPED,
        blame=record.NOBODY,
        reading=record.FAILURE,
        reason=unprepared.why,
        claimed=None,
    )


def unclaimed(prepared: Prepared, target: Target) -> str | None:
    """What the target's provider does not claim of this case; None when it claims it or publishes no table.

    What DirectML itself claims are its pages: they say which descriptions it takes.
    """
    if target.direct:
        described = prepared.facts.directml
        return described.violations[0] if described and described.violations else None
    if target.provider is None or claims_of(target.provider) is None:
        return None
    case = prepared.case
    return _unclaimed(target.provider, case.domain, case.operator, case.since_version, tuple(prepared.types.items()))


def _has_claims(prepared: Prepared, target: Target) -> bool:
    """Whether it is published what the target supports; of DirectML's operators, whether their tensors' types are."""
    if target.direct:
        described = prepared.facts.directml
        return described is not None and is_documented(described.name)
    return target.provider is not None and claims_of(target.provider) is not None


@cache
def _unclaimed(
    provider: str, domain: str, operator: str, since_version: int, types: tuple[tuple[str, str], ...]
) -> str | None:
    table = claims_of(provider)
    assert table is not None
    return table.why_not(domain, operator, since_version, dict(types))


def _words(
    prepared: Prepared,
    target: Target,
    candidate: Opinion,
    baseline: Opinion | None,
    gap: str | None,
    echoes: Sequence[str],
    baseline_wrong: bool,
) -> str:
    """The verdict in words. gap: what is not claimed."""
    refusal = prepared.must_be_refused
    match candidate.status:
        case record.PASS:
            said = "refuses it, as it must" if refusal else "gives the true result"
        case record.UNPLACED:
            said = f"does not take the node: {gap or candidate.message}"
        case record.REFUSED:
            said = f"refuses a valid node at {candidate.stage}: {candidate.message}"
        case record.CRASH:
            said = f"brings its process down: {candidate.message}"
        case record.TIMEOUT:
            said = f"does not answer: {candidate.message}"
        case _:
            said = f": {candidate.message}"
    words = [f"{target.name}{'' if said.startswith(':') else ' '}{said}"]
    if echoes:
        words.append(f"{' and '.join(echoes)} give{'s' if len(echoes) == 1 else ''} the very same answer")
    if baseline is not None and candidate.status != record.PASS and baseline.status == record.PASS:
        words.append(f"{baseline.target} is right")
    elif baseline is not None and baseline_wrong:
        words.append(
            f"{baseline.target} is wrong{' too' if candidate.status != record.PASS else ''}: {baseline.message}"
        )
    if gap and candidate.status == record.PASS and not refusal:
        words.append(f"although {gap}")
    return "; ".join(words)


def second_oracles(prepared: Prepared, reference: Opinion | None) -> Mapping[str, str]:
    """What the DirectML description and the reference evaluator say of the suite's own truth."""
    if reference is None:
        return prepared.oracles
    match reference.status:
        case record.PASS:
            said = "agrees"
        case record.MISMATCH:
            said = f"disagrees: {reference.message}"
        case _:
            said = f"cannot: {reference.message}"
    return {**prepared.oracles, reference.target: said}


def echoes(prepared: Prepared, candidate: str, references: Mapping[str, str]) -> tuple[str, ...]:
    """The oracles whose outputs are the candidate's, bit by bit. candidate, references: what `outcome.bits` makes of
    outputs; empty where there are none."""
    answers = {**dict.fromkeys(prepared.oracles, prepared.answer), **references}
    return tuple(name for name, answer in answers.items() if answer and answer == candidate)
