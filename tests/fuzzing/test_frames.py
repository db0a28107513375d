"""What a worker sends that went mad: its frames are answers, a loss of the worker, or no frames; nothing else."""

from __future__ import annotations

import contextlib
import io
import math
import queue
from collections.abc import Mapping
from typing import Any, cast

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records import strict_json
from epcheck.conformance.records.outcome import Outcome
from epcheck.conformance.scheduling.pools import session_request
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.client import TargetDown, WorkerClient, WorkerLost
from epcheck.conformance.workers.process import Event, FrameReceived, WorkerProcess
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.session_result import session_result
from epcheck.generators import suite
from epcheck.models.execution import model_outcome
from tests.fuzzing.damage import damaged, examples, with_hostile_values

MALFORMED = (KeyError, TypeError, ValueError, OverflowError, MemoryError)
"""What a reader of an answer may raise: whoever waits for it takes the worker for lost then."""

CASE = prepared_case.of(suite.case_by_id("Slice-13/float32/inner_forward[symbolic]").build())
TARGET = Target("mad", (), ())
BODY = CASE.expected[1]
TENSORS = [[CASE.outputs[0], dtype, shape] for _, dtype, shape in CASE.expected[0]]
ANSWER = {
    "op": "done", "id": "a", "stage": "done", "error": "", "message": "", "create_s": 0.1, "run_s": 0.2, "busy_s": 0.3,
    "cpu_s": 0.2,
    "assignment": [["CPUExecutionProvider", "Slice", "node"]], "unwritten": ["x"], "repeat_differs": ["y"],
    "timing": {"runs_s": [0.1, 0.2], "nodes": [["n", "Slice", "CPUExecutionProvider", 0.1]]}, "tensors": TENSORS,
}  # fmt: skip
HELLO = {"op": "hello", "protocol": protocol.PROTOCOL, "facts": {"os": "none", "providers": "a, b"}, "trouble": ""}


class Process:
    """One that has been started and does nothing."""

    def __init__(self) -> None:
        self.started, self.killed_because = 0.0, ""

    def send(self, _frame: list[bytes]) -> None: ...
    def take_pid(self, _stated: object) -> None: ...
    def kill(self, because: str) -> None:
        self.killed_because = because

    def log_tail(self) -> str:
        return ""


class Processes:
    """Hands them out."""

    def take(self, _target: Target, _events: object) -> WorkerProcess:
        self.last = Process()
        return cast(WorkerProcess, self.last)

    def give(self, _process: object) -> None: ...
    def note_start(self, _target: Target, _facts: object) -> None: ...
    def facts(self, _target: Target) -> Mapping[str, str]:
        return {}


def answered(header: dict[str, Any]) -> FrameReceived:
    return FrameReceived(cast(WorkerProcess, None), header, BODY, 1.0)


def of_case(header: dict[str, Any]) -> list[Outcome]:
    """As the supervisor of a pool reads it."""
    return session_request.outcomes([CASE], session_result(header), answered(header), TARGET)


def test_the_answer_that_the_others_are_made_of_is_right() -> None:
    (outcome,) = of_case(ANSWER)
    assert (outcome.exact, outcome.run_s, outcome.unwritten) == (False, 0.2, ("x",))
    assert outcome.outputs[CASE.outputs[0]].tobytes() == BODY
    assert model_outcome.of_answer(answered(ANSWER), set(CASE.outputs)).assignment == (
        ("CPUExecutionProvider", "Slice", "node"),
    )


def test_an_answer_about_a_model_with_an_output_that_nobody_asked_for_is_malformed() -> None:
    with pytest.raises(ValueError, match="unknown output"):
        model_outcome.of_answer(answered(ANSWER), {"another"})
    (name,) = CASE.outputs
    described = [[f"{name}[0]", *each[1:]] for each in ANSWER["tensors"]]
    assert model_outcome.of_answer(answered({**ANSWER, "tensors": described}), {name}).is_done


@examples(300)
@hypothesis.given(data=st.data())
def test_damaged_bytes_are_a_frame_or_none(data: st.DataObject) -> None:
    frame = b"".join(protocol.encode(ANSWER, {"z": np.arange(6.0)}))
    stream = io.BytesIO(data.draw(damaged(frame)) + frame)
    with contextlib.suppress(protocol.NotAFrame, *MALFORMED):
        while (found := protocol.read_frame(stream)) is not None:
            assert all(isinstance(name, str) for name, _ in protocol.decode(*found))


@examples(300)
@hypothesis.given(header=with_hostile_values(ANSWER))
def test_a_mad_answer_about_a_case_is_malformed_or_an_outcome(header: dict[str, Any]) -> None:
    try:
        found = of_case(header)
    except MALFORMED:
        return
    for outcome in found:
        seconds = [value for value in (outcome.create_s, outcome.run_s) if value is not None]
        assert all(math.isfinite(value) and value >= 0 for value in seconds)
        strict_json.dumps([outcome.message, outcome.assignment, outcome.unwritten, outcome.repeat_differs])


@examples(300)
@hypothesis.given(header=with_hostile_values(ANSWER))
def test_a_mad_answer_about_a_model_is_malformed_or_an_outcome(header: dict[str, Any]) -> None:
    try:
        found = model_outcome.of_answer(answered(header), set(CASE.outputs))
    except MALFORMED:
        return
    timed = found.timing.runs_s if found.timing else ()
    assert all(math.isfinite(value) and value >= 0 for value in (found.run_s or 0.0, found.create_s or 0.0, *timed))
    assert found.stage in ("done", "create", "run")


def heard(client: WorkerClient, event: FrameReceived) -> FrameReceived | WorkerLost | str | None:
    """What the client makes of it; the sentence where the target is given up."""
    try:
        return client.handle(event)
    except TargetDown as error:
        return str(error)


@examples(150)
@hypothesis.given(headers=st.lists(st.one_of(with_hostile_values(HELLO), with_hostile_values(ANSWER)), max_size=3))
def test_what_a_mad_worker_says_is_an_answer_or_its_loss(headers: list[dict[str, Any]]) -> None:
    processes = Processes()
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    client = WorkerClient(TARGET, events, processes)
    client.start()
    for header in (*headers, HELLO, ANSWER):
        found = heard(client, FrameReceived(cast(WorkerProcess, processes.last), header, BODY, 1.0))
        assert isinstance(found, FrameReceived | WorkerLost | str | None)
        if isinstance(found, WorkerLost | str):
            assert not isinstance(found, str) or len(found.splitlines()) == 1
            return
        if client.is_ready:
            client.send("a", [])


@pytest.mark.parametrize("name", ["create_s", "run_s", "busy_s", "cpu_s"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, "1e999"])
def test_seconds_that_are_none_are_a_malformed_answer(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"is no number of seconds"):
        session_result({**ANSWER, name: value})
