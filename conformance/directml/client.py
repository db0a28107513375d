"""One DirectML operator after the other, called from Python without ONNX Runtime: descriptions in, arrays out.

    with DirectMLClient(target.resolve("directml")) as directml:
        (copied,) = directml.dispatch(Slice1(source, result, (1,), (4,), (2,)), array)

The calls happen in a worker of the target, on Linux in the lab. A worker that is lost, with its device or otherwise, is
replaced by the next call.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from epcheck.conformance import lab
from epcheck.conformance.preparation import directml_program
from epcheck.conformance.preparation.case_facts import DIRECTML_LEVEL
from epcheck.conformance.preparation.directml_program import Program, TensorOptions
from epcheck.conformance.scheduling.supervisor import DEVICE_LOST
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.device_claims import LEVEL, with_documented
from epcheck.conformance.workers.process import Event, FrameReceived, MalformedFrame, ProcessExited, WorkerProcess
from epcheck.conformance.workers.program import protocol
from epcheck.generators.array import Array
from epcheck.generators.directml import FeatureLevel, OperatorDesc
from epcheck.generators.directml.lowering import Lowering


class CallRefusedError(RuntimeError):
    """DirectML refuses a call: a clean error, at `stage` ("create" or "run"), with the HRESULT in the message."""

    def __init__(self, stage: str, message: str) -> None:
        self.stage = stage
        super().__init__(message)


class WorkerLostError(RuntimeError):
    """The worker is gone: it crashed, or its device was removed, or it did not answer in time."""


class DirectMLClient:
    """A worker of a direct target; the first call starts it."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.facts: Mapping[str, str] = {}
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._process: WorkerProcess | None = None
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        if not self.target.owns_group:
            self._resources.enter_context(lab.in_use())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._resources:
            if self._process is not None:
                self._process.close()
                self._process = None

    def level(self) -> FeatureLevel:
        """The feature level that the device claims, or that of DIRECTML_LEVEL where it claims one that is not known."""
        if not self.facts:
            self._started()
        return FeatureLevel.__members__.get(self.facts.get(LEVEL, ""), DIRECTML_LEVEL)

    def dispatch(
        self,
        description: OperatorDesc,
        *feeds: Array | None,
        flags: int = 0,
        options: Mapping[str, TensorOptions] | None = None,
    ) -> tuple[Array, ...]:
        """The outputs of an operator, each of the sizes of its tensor.

        feeds: an array for each input tensor, None for one that is left out. flags: DML_EXECUTION_FLAGS. options: the
        C name of a tensor's member -> how it is bound. Raises CallRefusedError, WorkerLostError, or NoProgram where
        the description cannot be put into C.
        """
        results = directml_program.results_of(description)
        outputs = self.run(directml_program.of_lowering(Lowering(description, feeds), results, flags, options or {}))
        return tuple(outputs[name].reshape(results[name].shape) for name in results)

    def accepts(self, description: OperatorDesc) -> str:
        """Why DirectML refuses to create and compile a description; empty where it takes it. Raises as `dispatch`."""
        try:
            self.run(directml_program.to_create(description))
        except CallRefusedError as error:
            return str(error)
        return ""

    def run(self, asked: Program) -> dict[str, Array]:
        """The outputs of a program by name. Raises CallRefusedError or WorkerLostError."""
        header: dict[str, Any] = {
            "op": "run",
            "id": "call",
            "providers": [],
            "config": {},
            "device": None,
            "outputs": [],
        }
        described = [("", "uint8", (len(asked.text),)), *(feed[:3] for feed in asked.feeds)]
        process = self._started()
        process.send(protocol.frame(header, described, [asked.text, *(data for *_, data in asked.feeds)]))
        process.flush()
        answer = self._answer(self.target.deadline_s)
        said = dict(answer.header)
        if said["stage"] == "done":
            return {name: array.copy() for name, array in protocol.decode(said, answer.body)}
        message = str(said.get("message"))
        if DEVICE_LOST.search(message):
            self._drop()
            raise WorkerLostError(f"the device was lost: {message}")
        raise CallRefusedError(str(said["stage"]), message)

    def _started(self) -> WorkerProcess:
        """The worker, greeted."""
        if self._process is None:
            self._process = WorkerProcess(self.target, self._events)
            greeting = self._answer(self.target.startup_s)
            told = {str(name): str(value) for name, value in greeting.header["facts"].items()}
            self.facts = with_documented(told)
        return self._process

    def _answer(self, seconds: float) -> FrameReceived:
        deadline = time.monotonic() + seconds
        while True:
            try:
                event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self._drop()
                raise WorkerLostError(f"no answer within {seconds:g} s") from None
            if event.source is not self._process and self._process is not None:
                continue  # what a worker that was dropped still said
            match event:
                case FrameReceived():
                    return event
                case ProcessExited(returncode=code):
                    self._process = None
                    raise WorkerLostError(f"the worker process ended with {code}: {event.source.log_tail()[-500:]}")
                case MalformedFrame(error=error):
                    self._drop()
                    raise WorkerLostError(str(error))

    def _drop(self) -> None:
        if self._process is not None:
            self._process.kill("it is given up")
            self._process = None
