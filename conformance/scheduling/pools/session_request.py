"""One session for several cases: the request that a worker gets, and the outcomes of the cases in its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from epcheck.conformance.preparation import directml_program, model_parts, pack, used_models
from epcheck.conformance.preparation.prepared_case import PreparedCase
from epcheck.conformance.records.outcome import DONE, FAILED, PLACED, Outcome
from epcheck.conformance.targets.target import DISABLE_FALLBACK, Target
from epcheck.conformance.targets.variants import DYNAMIC, MOVED, SHARED
from epcheck.conformance.workers import session_result
from epcheck.conformance.workers.process import FrameReceived
from epcheck.conformance.workers.program.protocol import CONTEXT, INITIALIZER, OTHER, WEIGHTS, WEIGHTS_FILE
from epcheck.conformance.workers.request import run_request
from epcheck.conformance.workers.session_result import SessionResult
from epcheck.generators import schema

KINDS = {session_result.DONE: DONE, session_result.PLACED: PLACED}
"""Stage of a session that succeeded -> kind of the outcomes."""


def name_of(cases: Sequence[PreparedCase]) -> str:
    """What a session is called in its request and its answer."""
    first = cases[0].case.id
    return first if len(cases) == 1 else f"{first} and {len(cases) - 1} more"


def encode(name: str, cases: Sequence[PreparedCase], target: Target, place: bool) -> list[bytes]:
    """The request to run the cases in one session. place: only ask on which provider their nodes go."""
    target = _target_of(cases[0], target)
    cases = in_session(cases, target.packed)
    named = list(zip(pack.prefixes(cases), cases, strict=True))
    if target.calls_directml:
        program = directml_program.of(cases[0])
        model, feeds = program.text, list(program.feeds)
    else:
        model = pack.model(cases)
        feeds = [
            (prefix + name, dtype, shape, data) for prefix, case in named for name, dtype, shape, data in case.feeds
        ]
        for number, other in enumerate(used_models.list_others(target.variant, model)):
            feeds.append((f"{OTHER}{number}", "uint8", (len(other),), other))
        if target.variant == SHARED:
            shared = used_models.list_initializers(model)
            feeds += [(INITIALIZER + name, dtype, shape, data) for name, dtype, shape, data in shared]
        if target.compiled:
            feeds.append((CONTEXT, "uint8", (len(target.compiled),), target.compiled))
        if target.variant in DYNAMIC:
            model = used_models.open_sizes(model)
        elif target.variant in MOVED:
            model, content = used_models.move_weights(model, WEIGHTS_FILE)
            feeds += [(WEIGHTS, "uint8", (len(content),), content)] if content else []
    outputs = [prefix + name for prefix, case in named for name in case.outputs]
    bodies = not place and target.config.get(DISABLE_FALLBACK) == "1" and any(map(_has_bodies, cases))
    return run_request(name, target, model, feeds, outputs, place, bodies)


def outcomes(
    cases: Sequence[PreparedCase], result: SessionResult, answer: FrameReceived, target: Target
) -> list[Outcome]:
    """The outcome of each case; none where a session of several failed, which says nothing of any of them.

    Raises KeyError, TypeError or ValueError where the answer's tensors do not describe its body.
    """
    if result.failed and len(cases) > 1:
        return []
    outcome = Outcome(
        KINDS.get(result.stage, FAILED),
        stage=result.stage if result.failed else "",
        message=result.message,
        unwritten=result.unwritten,
        repeat_differs=result.repeat_differs,
        create_s=result.create_s,
        run_s=result.run_s,
    )
    if result.failed and target.packed:
        return [replace(outcome, shared=2)]
    outputs = pack.SessionOutputs(answer.header["tensors"], answer.body, result.assignment)
    return list(pack.unpack(in_session(cases, target.packed), outcome, outputs))[: len(cases)]


def _target_of(case: PreparedCase, target: Target) -> Target:
    """The target as a session of the case needs it: of a graph, its level of optimisation unless the target has its
    own, and the CPU where nodes may be left to it."""
    if not case.level:
        return target
    config = {key: value for key, value in target.config.items() if not (case.elsewhere and key == DISABLE_FALLBACK)}
    return replace(target, request_defaults={"level": case.level, **target.request_defaults}, config=config)


def _has_bodies(case: PreparedCase) -> bool:
    return schema.has_bodies(case.op_type, case.domain)


def in_session(cases: Sequence[PreparedCase], packed: bool) -> Sequence[PreparedCase]:
    """All cases of a session: with one, its copy under another prefix where that is wanted."""
    return [cases[0], _copy(cases[0])] if packed else cases


def _copy(case: PreparedCase) -> PreparedCase:
    prefix = f"copy{case.prefix}"
    tensors, data = case.expected
    expected = [[prefix + name.removeprefix(case.prefix), dtype, shape] for name, dtype, shape in tensors], data
    return case._replace(prefix=prefix, graph=model_parts.parts(case.model, prefix)[1], expected=expected)
