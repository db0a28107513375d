"""What a target did with a whole model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from epcheck.conformance.records.outcome import TIMED_OUT
from epcheck.conformance.workers.client import WorkerLost
from epcheck.conformance.workers.process import FrameReceived
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.session_result import seconds, session_result
from epcheck.generators.array import Array

DONE, CREATE, RUN, CRASH, TIMEOUT = "done", "create", "run", "crash", "timeout"

STEPS = {
    "": "starting", CREATE: "session creation", RUN: "the run", "repeat": "the second run", "timing": "the timed runs",
}  # fmt: skip
"""A worker's word for a step -> ours."""


@dataclass(frozen=True)
class Timing:
    """runs_s: seconds of each run after the first two. nodes: (name, operator, provider, seconds in a run), the slowest
    first; empty where the target does not say."""

    runs_s: tuple[float, ...]
    nodes: tuple[tuple[str, str, str, float], ...] = ()


@dataclass(frozen=True)
class ModelOutcome:
    """What a target did with a model.

    stage: `done`, or how it failed: `create` or `run` with a clean error, `crash` (the process ended, ran out of
    memory or lost the device) or `timeout`. during: the step in words, for all but `done`.
    outputs: by name; those of a sequence `s` are `s[0]`, ..., of a map `m` `m.keys` and `m.values`; text is UTF-8
    bytes. assignment: (provider, operator, node) from the session's own record; None where it keeps none.
    create_s: seconds, None in a session that was there already. run_s: seconds of the first run. unwritten: outputs
    that left a dirtied buffer as it was in the second run; repeat_differs: outputs that changed in it. timing: where it
    was asked for.
    """

    stage: str
    during: str = ""
    message: str = ""
    outputs: Mapping[str, Array] = field(default_factory=dict)
    assignment: tuple[tuple[str, str, str], ...] | None = None
    create_s: float | None = None
    run_s: float | None = None
    unwritten: tuple[str, ...] = ()
    repeat_differs: tuple[str, ...] = ()
    log_tail: str = ""
    timing: Timing | None = None

    @property
    def is_done(self) -> bool:
        """Whether there are outputs."""
        return self.stage == DONE


def of_answer(answer: FrameReceived, wanted: Set[str]) -> ModelOutcome:
    """The outcome that a worker reports. wanted: the outputs that it was asked for. Raises KeyError, TypeError or
    ValueError where the frame is no answer to that."""
    result = session_result(answer.header)
    outputs = dict(protocol.decode(answer.header, answer.body))
    if unasked := next((name for name in outputs if not wanted & _values_that_may_have(name)), None):
        raise ValueError(f"it returned an unknown output '{unasked}'")
    stage = {DONE: DONE, CREATE: CREATE}.get(result.stage, RUN)
    return ModelOutcome(
        stage,
        during="" if stage == DONE else STEPS[stage],
        message=result.message,
        outputs=outputs,
        assignment=_assignment(result.assignment),
        create_s=result.create_s,
        run_s=result.run_s,
        unwritten=result.unwritten,
        repeat_differs=result.repeat_differs,
        timing=_timing(answer.header.get("timing")),
    )


def of_loss(lost: WorkerLost) -> ModelOutcome:
    """The outcome of a model whose worker was lost."""
    stage = TIMEOUT if lost.kind == TIMED_OUT else CRASH
    return ModelOutcome(stage, STEPS.get(lost.step, lost.step), lost.why, log_tail=lost.log_tail)


def _timing(found: Any) -> Timing | None:
    if found is None:
        return None
    nodes = ((str(name), str(operator), str(provider), seconds(s)) for name, operator, provider, s in found["nodes"])
    return Timing(tuple(map(seconds, found["runs_s"])), tuple(nodes))


def _assignment(nodes: Any) -> tuple[tuple[str, str, str], ...] | None:
    if nodes is None:
        return None
    return tuple((str(provider), str(operator), str(node)) for provider, operator, node in nodes)


def _values_that_may_have(name: str) -> set[str]:
    """The values whose tensors may have that name: of `s[0].keys` they are `s[0].keys`, `s[0]` and `s`."""
    found = {name}
    while (shorter := re.sub(r"(\[\d+\]|\.keys|\.values)$", "", name)) != name:
        name = shorter
        found.add(name)
    return found
