"""The judge: an outcome against the truth makes an opinion; candidate, baseline and oracles together make a verdict."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence

from epcheck.conformance import compare, facts, record
from epcheck.conformance.expectation import Expectation, matching
from epcheck.conformance.outcome import CRASHED, FAILED, TIMED_OUT, Outcome
from epcheck.conformance.record import Difference, Opinion, Record
from epcheck.conformance.target import Target
from epcheck.generators.case import Array, BuiltCase, Case, Lowering, Outputs, Refusal, Selection
from epcheck.generators.claims import claims_of

UNPLACED = re.compile(
    r"fallback to CPU EP has been explicitly disabled"
    r"|NOT_IMPLEMENTED : Could not find an implementation"
    r"|IsNodeCompatibleWithProvider !node_provider_type\.empty\(\)"
)
"""How ONNX Runtime words that nobody takes a node: CPU alone would, CPU was asked and has no kernel, or neither the
provider nor CPU has one."""

NOISE = re.compile(
    r"[A-Z]:\\_work\\1\\s\\(?:\w+\\)*|\\?onnxruntime_pybind11_state\.pyd![0-9A-Fa-f]+: |\(caller: [0-9A-Fa-f]+\) "
    r"|Exception\(\d+\) tid\([0-9a-f]+\) "
)
"""What differs from run to run, or from build machine to build machine, in ONNX Runtime's messages."""


def condense(message: str) -> str:
    """A runtime's message without addresses, thread ids and build folders: the same fault reads the same every time."""
    return " ".join(NOISE.sub(" ", message).split())


def opinion(built: BuiltCase, target: Target, outcome: Outcome, attempts: int = 1) -> Opinion:
    """What the target said, judged against the truth of the case."""
    status, message, differences = _status(built, target, outcome)
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
    )


def _status(built: BuiltCase, target: Target, outcome: Outcome) -> tuple[str, str, tuple[Difference, ...]]:
    truth = built.truth
    if outcome.kind == CRASHED:
        return record.CRASH, outcome.message, ()
    if outcome.kind == TIMED_OUT:
        return record.TIMEOUT, outcome.message, ()
    if outcome.kind == FAILED:
        said = condense(outcome.message)
        if UNPLACED.search(said):
            return record.UNPLACED, said, ()
        return (record.PASS if isinstance(truth, Refusal) else record.REFUSED), said, ()
    if target.provider and (gap := _placement_gap(built, target.provider, outcome)):
        return record.UNPLACED, gap, ()
    if isinstance(truth, Refusal):
        return record.MISMATCH, f"accepted what must be refused: {truth.reason}", ()
    wrong = compare.differences(truth, outcome.outputs)
    if wrong:
        return record.MISMATCH, "; ".join(f"{d.output}: {d.reason}" for d in wrong), wrong
    if outcome.unwritten:
        names = ", ".join(outcome.unwritten)
        return record.MISMATCH, f"the provider does not write {names}: a buffer keeps what it held before", ()
    if outcome.repeat_differs:
        return record.FLAKY, f"a second run of the same session gives another {', '.join(outcome.repeat_differs)}", ()
    return record.PASS, "", ()


def _placement_gap(built: BuiltCase, provider: str, outcome: Outcome) -> str:
    """Why the session's record does not prove that the node ran on the provider; empty when it does."""
    assignment = outcome.assignment
    if not assignment:
        return "no proof of placement: the session's record of assigned nodes is empty"
    elsewhere = [(name, op) for name, op in assignment if name != provider and op == built.node.op_type]
    if elsewhere:
        return f"{elsewhere[0][1]} was assigned to {elsewhere[0][0]}"
    if not any(op == built.node.op_type or name == provider for name, op in assignment):
        return f"no proof of placement: the session's record names no {built.node.op_type}"
    return ""


def needs_confirmation(built: BuiltCase, target: Target, first: Opinion) -> bool:
    """Whether an opinion has to be repeated before it is reported: every failure, but not a refusal to take a node
    that the target never claimed."""
    if first.status == record.PASS:
        return False
    return first.status != record.UNPLACED or _unclaimed(built, target) is None


def likely_to_pass(built: BuiltCase, target: Target) -> bool:
    """Whether nothing speaks against a pass: the node is not unclaimed, and no deviation is expected."""
    return _unclaimed(built, target) is None and not matching(target.expectations, built.case.id)


def verdict(
    built: BuiltCase,
    target: Target,
    candidate: Opinion,
    baseline: Opinion | None,
    oracles: Mapping[str, str],
    echoes: Sequence[str],
    expectations: Sequence[Expectation],
) -> Record:
    """The record of one case on one candidate.

    oracles: what each further oracle says of the suite's own. echoes: the oracles whose answer is the candidate's, bit
    by bit. expectations: those whose glob matches the case.
    """
    failing = candidate.status != record.PASS
    declined = candidate.status == record.UNPLACED
    baseline_wrong = baseline is not None and baseline.status not in (record.PASS, record.UNPLACED, record.SKIPPED)
    unclaimed = _unclaimed(built, target)
    table = target.provider is not None and claims_of(target.provider) is not None
    claimed = unclaimed is None if table else None
    refusal = isinstance(built.truth, Refusal)

    harmless = (declined and (refusal or not claimed)) or (candidate.status == record.REFUSED and claimed is False)
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
    elif expectations and not failing:
        reading, shown = record.FIXED, expectations[0]
    elif baseline_wrong or (claimed is False and not failing and not refusal):
        reading = record.NOTED
    else:
        reading = record.OK
    return Record(
        case=facts.of(built),
        candidate=candidate,
        baseline=baseline,
        oracles=oracles,
        status=candidate.status,
        blame=blame,
        reading=reading,
        reason=_words(built, target, candidate, baseline, unclaimed if table else None, echoes, baseline_wrong),
        claimed=claimed,
        expectation=shown.as_expected() if shown else None,
    )


def unbuilt(case: Case, target: Target, error: Exception) -> Record:
    """The record of a case whose generator failed: nobody ran it, so nobody is to blame, and it is no success."""
    why = " ".join(f"the case cannot be built: {type(error).__name__}: {error}".split())
    log = "".join(traceback.format_exception(error)).rstrip()
    return Record(
        case=facts.of_unbuilt(case),
        candidate=Opinion(target.name, record.SKIPPED, message=why, log_tail=log),
        baseline=None,
        oracles={},
        status=record.SKIPPED,
        blame=record.NOBODY,
        reading=record.FAILURE,
        reason=why,
        claimed=None,
    )


def _unclaimed(built: BuiltCase, target: Target) -> str | None:
    """What the target's provider does not claim of this case; None when it claims it or publishes no table."""
    table = claims_of(target.provider) if target.provider else None
    case = built.case
    return table.why_not(case.domain, case.operator, case.since_version, built.types) if table else None


def _words(
    built: BuiltCase,
    target: Target,
    candidate: Opinion,
    baseline: Opinion | None,
    unclaimed: str | None,
    echoes: Sequence[str],
    baseline_wrong: bool,
) -> str:
    """The verdict in words."""
    refusal = isinstance(built.truth, Refusal)
    match candidate.status:
        case record.PASS:
            said = "refuses it, as it must" if refusal else "gives the true result"
        case record.UNPLACED:
            said = f"does not take the node: {unclaimed or candidate.message}"
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
    if unclaimed and candidate.status == record.PASS and not refusal:
        words.append(f"although {unclaimed}")
    return "; ".join(words)


def second_oracles(built: BuiltCase, reference: Outcome | None, reference_target: Target | None) -> dict[str, str]:
    """What the DirectML description and the reference evaluator say of the suite's own truth."""
    said: dict[str, str] = {}
    if built.lowering is not None:
        said[built.lowering.description.NAME] = _directml_opinion(built, built.lowering)
    if reference is not None and reference_target is not None:
        judged = opinion(built, reference_target, reference)
        if judged.status == record.PASS:
            said[reference_target.name] = "agrees"
        elif judged.status == record.MISMATCH:
            said[reference_target.name] = f"disagrees: {judged.message}"
        else:
            said[reference_target.name] = f"cannot: {judged.message}"
    return said


def echoes(built: BuiltCase, candidate: Outcome, reference: Outcome | None, reference_name: str) -> tuple[str, ...]:
    """The oracles whose outputs are the candidate's, bit by bit."""
    if not candidate.outputs:
        return ()
    found = []
    if built.lowering is not None and _directml_outputs(built, built.lowering) == _bits(candidate.outputs):
        found.append(built.lowering.description.NAME)
    if reference is not None and _bits(reference.outputs) == _bits(candidate.outputs):
        found.append(reference_name)
    return tuple(found)


def _bits(outputs: Mapping[str, Array]) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    return {name: (value.dtype.name, value.shape, value.tobytes()) for name, value in outputs.items()}


def _evaluate(built: BuiltCase, lowering: Lowering) -> dict[str, Array]:
    """The description's own answer in the shapes and dtypes of the node's outputs. Raises ValueError."""
    results = lowering.description.evaluate(*lowering.feeds)
    if isinstance(built.truth, Selection):
        expected: Sequence[Array] = built.truth.accepted[0]
    else:
        assert isinstance(built.truth, Outputs)
        expected = [output.value for output in built.truth.outputs]
    return {
        name: result.astype(truth.dtype).reshape(truth.shape)
        for name, result, truth in zip(built.node.outputs, results, expected, strict=True)
    }


def _directml_opinion(built: BuiltCase, lowering: Lowering) -> str:
    assert not isinstance(built.truth, Refusal)
    try:
        wrong = compare.differences(built.truth, _evaluate(built, lowering))
    except ValueError as error:  # a ConstraintViolation, or values for which the page defines nothing
        return f"cannot: {error}"
    return f"disagrees: {wrong[0].output}: {wrong[0].reason}" if wrong else "agrees"


def _directml_outputs(built: BuiltCase, lowering: Lowering) -> dict[str, tuple[str, tuple[int, ...], bytes]] | None:
    try:
        return _bits(_evaluate(built, lowering))
    except ValueError:
        return None
