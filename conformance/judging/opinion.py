"""Opinions: what one target did with one case, judged against the truth of the case."""

from __future__ import annotations

import re

from epcheck.conformance.comparison import compare, precision
from epcheck.conformance.comparison.accuracy import measure_accuracy
from epcheck.conformance.comparison.excused import find_excused
from epcheck.conformance.preparation import directml_program
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records import terms
from epcheck.conformance.records.accuracy import Accuracy
from epcheck.conformance.records.opinion import Difference, Excused, Opinion
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, TIMED_OUT, Outcome
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.session_result import FEED
from epcheck.generators import schema
from epcheck.generators.truth import Refusal, Truth

UNPLACED = re.compile(
    r"fallback to CPU EP has been explicitly disabled"
    r"|NOT_IMPLEMENTED : (Could not find an implementation|Failed to find kernel)"
    r"|Unsupported model IR version|Current official support for domain \S+ is till opset"
    r"|is not a registered function/op"
    r"|IsNodeCompatibleWithProvider(?:\([^()]*\) const)? !node_provider_type\.empty\(\)"
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


def opinion(prepared: PreparedCase, target: Target, outcome: Outcome, attempts: int = 1) -> Opinion:
    """The outcome judged against the truth. attempts: how often the case was run on the target for it."""
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
        log_tail="" if status == terms.PASS else outcome.log_tail,
        shared=outcome.shared,
        accuracy=accuracy,
        excused=_find_excused(prepared, target, outcome, accuracy) if status == terms.PASS and accuracy else (),
    )


class SharedOpinions:
    """Judges one outcome after the other; cases of a pack that share an outcome share the opinion as well."""

    def __init__(self) -> None:
        self._outcome: Outcome | None = None
        self._op_types: tuple[str, ...] = ()
        self._opinion: Opinion | None = None

    def opinion(self, prepared: PreparedCase, target: Target, outcome: Outcome) -> Opinion:
        """The same as the function `opinion`."""
        if not outcome.exact:
            return opinion(prepared, target, outcome)
        op_types = prepared.op_type, *prepared.beside
        if self._opinion is None or self._outcome is not outcome or self._op_types != op_types:
            self._outcome, self._op_types = outcome, op_types
            self._opinion = opinion(prepared, target, outcome)
        return self._opinion


def _accuracy(prepared: PreparedCase, outcome: Outcome) -> Accuracy | None:
    """Of outputs that are not the correctly rounded ones; None for all others."""
    if outcome.kind != DONE or outcome.exact:
        return None
    truth = prepared.truth
    return None if isinstance(truth, Refusal) else measure_accuracy(truth, outcome.outputs)


def _find_excused(prepared: PreparedCase, target: Target, outcome: Outcome, accuracy: Accuracy) -> tuple[Excused, ...]:
    """What of right outputs only published floors accept, of the floors that hold for the target."""
    truth = _apply_precision(prepared, target)
    return () if isinstance(truth, Refusal) else find_excused(truth, outcome.outputs, accuracy)


def _apply_precision(prepared: PreparedCase, target: Target) -> Truth:
    return precision.apply_precision(prepared.truth, target.float32_precision, target.on_cpu, target.is_ieee)


def _status(
    prepared: PreparedCase, target: Target, outcome: Outcome, accuracy: Accuracy | None
) -> tuple[str, str, tuple[Difference, ...]]:
    """The status, the message, and how the outputs differ from the truth."""
    if outcome.kind == CRASHED:
        return terms.CRASH, outcome.message, ()
    if outcome.kind == TIMED_OUT:
        return terms.TIMEOUT, outcome.message, ()
    if outcome.kind == FAILED:
        message = condense(outcome.message)
        if outcome.stage == FEED:
            return terms.SKIPPED, f"not run: a feed cannot be passed to the session: {message}", ()
        if UNPLACED.search(message):
            return terms.UNPLACED, message, ()
        return (terms.PASS if prepared.must_be_refused or prepared.may_be_refused else terms.REFUSED), message, ()
    if target.provider and (gap := placement_gap(prepared, target.provider, outcome)):
        return terms.UNPLACED, gap, ()
    if outcome.exact:
        return terms.PASS, "", ()
    truth = prepared.truth
    if isinstance(truth, Refusal):
        return terms.MISMATCH, f"accepted what must be refused: {truth.reason}", ()
    truth = _apply_precision(prepared, target)
    assert not isinstance(truth, Refusal)
    if wrong := compare.differences(truth, outcome.outputs, accuracy):
        return terms.MISMATCH, "; ".join(f"{d.output}: {d.reason}" for d in wrong), wrong
    if unasked := sorted(outcome.outputs.keys() - set(prepared.outputs)):
        return terms.MISMATCH, f"unknown outputs: {', '.join(unasked)}", ()
    if outcome.unwritten:
        names = ", ".join(outcome.unwritten)
        return terms.MISMATCH, f"the provider does not write {names}: the buffer keeps its old content", ()
    if outcome.repeat_differs:
        return terms.FLAKY, f"a second run of the same session changes {', '.join(outcome.repeat_differs)}", ()
    return terms.PASS, "", ()


def placement_gap(prepared: PreparedCase, provider: str, outcome: Outcome) -> str:
    """Why the session's record does not prove that the node ran on the provider; empty when it does."""
    assignment, op_type = outcome.assignment, prepared.op_type
    if not assignment:
        return "no proof of placement: the session's record of assigned nodes is empty"
    if prepared.level:  # of a graph that is optimised, the nodes are no longer the model's
        others = [(name, op) for name, op in assignment if name != provider and op not in prepared.elsewhere]
        if others:
            return f"{others[0][1]} was assigned to {others[0][0]}"
        is_there = any(name == provider for name, _ in assignment)
        return "" if is_there else f"no node of the graph was assigned to {provider}"
    elsewhere = [(name, op) for name, op in assignment if name != provider and op == op_type]
    if elsewhere:
        return f"{elsewhere[0][1]} was assigned to {elsewhere[0][0]}"
    if schema.has_bodies(op_type, prepared.domain):
        inside = [(name, op) for name, op in assignment if name != provider and op not in prepared.beside]
        if inside:
            return f"{inside[0][1]}, in a graph of {op_type}, was assigned to {inside[0][0]}"
    if not any(op == op_type or (name == provider and op not in prepared.beside) for name, op in assignment):
        return f"no proof of placement: the session's record names no {op_type or f'node on {provider}'}"
    return ""
