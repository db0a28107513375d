"""DirectML called from Python without ONNX Runtime, one operator after the other: descriptions in, arrays out.

    with DirectMLClient(target.resolve("directml")) as directml:
        (copied,) = directml.dispatch(Slice1(source, result, (1,), (4,), (2,)), array)

The calls happen in a worker of the target, on Linux in the lab. A worker that is lost, with its device or otherwise, is
replaced by the next call.
"""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from epcheck.conformance import lab
from epcheck.conformance.preparation import directml_program
from epcheck.conformance.preparation.case_facts import DIRECTML_LEVEL
from epcheck.conformance.preparation.directml_program import Program, TensorOptions
from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.client import WorkerClient, WorkerLost
from epcheck.conformance.workers.device_claims import LEVEL
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.request import request, run_request, wait_until_ready
from epcheck.conformance.workers.session_result import session_result
from epcheck.generators.array import Array
from epcheck.generators.directml import FeatureLevel, OperatorDesc
from epcheck.generators.directml.lowering import Lowering

CALL = "call"
"""The `id` of every request: there is one at a time."""


class CallRefusedError(RuntimeError):
    """DirectML refuses a call: a clean error, at `stage` ("create" or "run"), with the HRESULT in the message."""

    def __init__(self, stage: str, message: str) -> None:
        self.stage = stage
        super().__init__(message)


class WorkerLostError(RuntimeError):
    """The worker is gone: it crashed, or its device was removed, or it did not answer in time."""


class DirectMLClient:
    """A worker of a direct target; the first call starts it. A context manager: leaving it ends the worker."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._idle_workers = IdleWorkers()
        self.worker = WorkerClient(target, queue.SimpleQueue(), self._idle_workers)
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        if not self.target.owns_group:
            self._resources.enter_context(lab.in_use())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._resources, contextlib.closing(self._idle_workers):
            self.worker.retire()

    @property
    def facts(self) -> Mapping[str, str]:
        """What the worker says of itself and its device; empty until the first call."""
        return self.worker.facts

    def level(self) -> FeatureLevel:
        """The feature level that the device claims, or DIRECTML_LEVEL where it claims one that is not known.

        Raises TargetDown when no worker starts.
        """
        if not self.facts:
            wait_until_ready(self.worker)
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
        C name of a tensor's member -> how it is bound. Raises CallRefusedError, WorkerLostError, TargetDown when no
        worker starts, or NoProgram where the description cannot be put into C.
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

    def run(self, program: Program) -> dict[str, Array]:
        """The outputs of a program by name. Raises CallRefusedError, WorkerLostError, or TargetDown."""
        wait_until_ready(self.worker)
        answer = request(self.worker, CALL, run_request(CALL, self.target, program.text, program.feeds))
        if isinstance(answer, WorkerLost):
            raise WorkerLostError(answer.why + (f": {answer.log_tail[-500:]}" if answer.log_tail else ""))
        try:
            result = session_result(answer.header)
            outputs = {name: array.copy() for name, array in protocol.decode(answer.header, answer.body)}
        except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
            malformed = f"its worker sent a malformed response: {error!r}"
            self.worker.lose(malformed)
            raise WorkerLostError(malformed) from error
        if result.failed:
            raise CallRefusedError(result.stage, result.message)
        return outputs
