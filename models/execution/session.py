"""Whole models in sessions of a target, in a worker process that may crash or hang without taking anybody along."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import onnx

from epcheck.conformance import lab
from epcheck.conformance.targets.target import DISABLE_FALLBACK, Target
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.conformance.workers.client import WorkerClient, WorkerLost
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import FrameReceived
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.program.backends.function import FOLDER_OPTION, TAKES_FOLDER
from epcheck.conformance.workers.request import request, wait_until_ready
from epcheck.conformance.workers.session_options import session_options
from epcheck.generators.array import Array
from epcheck.models.execution import model_outcome, model_source
from epcheck.models.execution.model_outcome import CREATE, ModelOutcome
from epcheck.models.execution.model_source import ModelSource
from epcheck.models.graph.feed import Feed

Level = Literal["disabled", "basic", "extended", "all"]
"""Graph optimisation levels of onnxruntime.GraphOptimizationLevel."""

MEASURED_S = 1.0
"""Seconds for which the first measurement of a worker's memory is waited for."""

DEADLINE_S = 300.0
"""Seconds that each step of a whole model may take."""

MEMORY = 4
"""A worker may take so many times the size of the model on top of what the target allows for a case."""


_shared: ContextVar[IdleWorkers | None] = ContextVar("_shared", default=None)


@contextlib.contextmanager
def share_workers(targets: Sequence[Target], keep: int = 4) -> Iterator[None]:
    """Within the block, sessions that are closed leave their worker to the next sessions of the same target: a worker
    takes a second to start, in the lab several. keep: idle workers at most."""
    with contextlib.ExitStack() as resources:
        if any(target.in_lab for target in targets):
            resources.enter_context(lab.in_use())
        workers = resources.enter_context(contextlib.closing(IdleWorkers(keep)))
        resources.callback(_shared.reset, _shared.set(workers))
        yield


class Wanted(NamedTuple):
    """How a model is run. outputs: the wanted ones, in any order. strict: no node may fall back to the CPU. seconds:
    for which its runs are timed; None for no timing. once: leave the second run out. shared: input -> the output that
    is written into its buffer."""

    outputs: Sequence[str]
    level: Level
    strict: bool
    seconds: float | None
    once: bool
    shared: Mapping[str, str] = {}


class ModelSessions:
    """Sessions of one target, one at a time, in one worker, which is replaced when it crashes or hangs.

    The last session is kept for further feeds of the same model. Use it as a context manager, or `close` it.
    """

    def __init__(self, target: Target, deadline_s: float = DEADLINE_S, threads: int = 0) -> None:
        """deadline_s: seconds for each step. threads: of the runtime within an operator, 0 for as many as it likes."""
        self.target = target
        self.created = 0
        self._threads = threads
        self._lender = _shared.get()
        self._idle = self._lender or IdleWorkers()
        self._client = WorkerClient(target, queue.SimpleQueue(), self._idle, deadline_s)
        self._kept: tuple[object, ...] | None = None
        self._resources = contextlib.ExitStack()
        if target.in_lab:
            self._resources.enter_context(lab.in_use())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def facts(self) -> Mapping[str, str]:
        """What the worker says of itself; empty until the first run."""
        return self._client.facts

    def start(self) -> Mapping[str, str]:
        """Start the worker, and return what it says of itself. Raises TargetDown."""
        wait_until_ready(self._client)
        return self.facts

    def begin_start(self) -> None:
        """Start the worker and do not wait: the first run does. Raises TargetDown."""
        self._client.start()

    @property
    def has_worker(self) -> bool:
        """Whether the last request left its worker alive."""
        return self._client.is_ready

    def resident_bytes(self) -> int:
        """Of the worker's memory; 0 where there is none. A worker that has run for milliseconds may not have been
        measured yet."""
        return self._client.resident_bytes(MEASURED_S)

    def end_worker(self) -> None:
        """End the worker and free its memory; the next run starts another."""
        self._client.retire()
        self._kept = None

    def close(self) -> None:
        """End the worker for good, or leave it to the next sessions within `share_workers`."""
        if self._lender is None:
            self.end_worker()
            self._idle.close()
        else:
            self._client.release()
        self._resources.close()

    def run(
        self,
        model: onnx.ModelProto | Path,
        feeds: Mapping[str, Feed],
        outputs: Sequence[str] | None = None,
        level: Level = "all",
        strict: bool = False,
        folder: Path | None = None,
        seconds: float | None = None,
        once: bool = False,
    ) -> ModelOutcome:
        """Create a session of the model, or use the last one if it is the same, and run it twice, or once.

        A path is opened by the runtime itself, which maps external data; that must be inside the model's folder.
        folder: where a ModelProto has its external data. outputs: the wanted ones, by default all of the model.
        strict: no node may fall back to the CPU. seconds: for which a new session's runs are timed as well. Raises
        ModelFileError, and TargetDown when no worker starts.
        """
        source = _make_source(model, folder)
        wanted = Wanted(list(outputs or source.outputs), level, strict, seconds, once)
        return self._ask(source, partial(self._embed_data, model, folder), feeds, wanted)

    def run_in_place(
        self,
        model: onnx.ModelProto | Path,
        feeds: Mapping[str, Feed],
        shared: Mapping[str, str],
        level: Level = "all",
        folder: Path | None = None,
    ) -> ModelOutcome:
        """Run the model once, all its outputs wanted, with inputs whose buffers outputs are written into, bound by
        ONNX Runtime's IOBinding on the provider's device. shared: input -> output; without any it is a plain run.

        Raises as `run`; a target without buffers ends the run with an error.
        """
        source = _make_source(model, folder)
        wanted = Wanted(list(source.outputs), level, False, None, True, shared)
        return self._ask(source, partial(self._embed_data, model, folder), feeds, wanted)

    def _ask(
        self, source: ModelSource, embed: Callable[[], ModelSource], feeds: Mapping[str, Feed], wanted: Wanted
    ) -> ModelOutcome:
        """Send the request, with the model unless the worker has it, and wait for the answer. embed: the source with
        all external data in it, for a worker that takes no folder."""
        self._client.memory_bytes = self.target.memory_bytes + MEMORY * source.size
        is_new = wait_until_ready(self._client)
        if self.target.provider is None and TAKES_FOLDER not in self.facts:
            source = embed()
        session = (source.key(), wanted.level, wanted.strict)
        kept, self._kept = not is_new and self._kept == session and wanted.seconds is None, None
        frame = self._encode(source, feeds, wanted, kept)
        outcome = self._outcome(request(self._client, source.key(), frame), set(wanted.outputs))
        self.created += not kept
        if self.has_worker and outcome.stage != CREATE and wanted.seconds is None:
            self._kept = session
        return outcome

    def _embed_data(self, model: onnx.ModelProto | Path, folder: Path | None) -> ModelSource:
        try:
            return _make_source(model, folder, embedded=True)
        except ModelFileError as error:
            raise ModelFileError(f"{error}, and target '{self.target.name}' takes it as bytes; give its function a "
                                 "parameter 'folder', and it reads the external data itself") from None  # fmt: skip

    def _outcome(self, answer: FrameReceived | WorkerLost, asked: set[str]) -> ModelOutcome:
        if isinstance(answer, WorkerLost):
            return model_outcome.of_loss(answer)
        try:
            return model_outcome.of_answer(answer, asked)
        except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
            lost = self._client.lose(f"its worker sent a malformed response: {error!r}")
            assert lost is not None
            return model_outcome.of_loss(lost)

    def _encode(self, source: ModelSource, feeds: Mapping[str, Feed], wanted: Wanted, kept: bool) -> list[bytes]:
        tensors: dict[str, Array] = {}
        if not kept and source.path is None:
            tensors[""] = np.frombuffer(source.content, np.uint8)
        sequences, texts = {}, {}
        absent = [name for name, value in feeds.items() if value is None]
        for name, value in feeds.items():
            if value is None:
                continue
            if isinstance(value, list):
                sequences[name] = len(value)
                tensors |= {f"{name}[{index}]": element for index, element in enumerate(value)}
            elif value.dtype.kind in "OSU":
                texts[name] = [list(value.shape), [str(element) for element in value.ravel()]]
            else:
                tensors[name] = value
        options = session_options(self.target)
        if source.folder is not None:
            options["config"][FOLDER_OPTION] = self.target.name_of(source.folder)
        if not wanted.strict:
            options["config"].pop(DISABLE_FALLBACK, None)
        header: dict[str, Any] = {
            "op": "model",
            "id": source.key(),
            **options,
            "level": wanted.level,
            "threads": self._threads,
            "seconds": wanted.seconds,
            "once": wanted.once,
            "shared": dict(wanted.shared),
            "less_memory": source.size > model_source.LARGE_BYTES,
            "path": self.target.name_of(source.path) if source.path else None,
            "kept": kept,
            "outputs": wanted.outputs,
            "all_outputs": list(source.outputs),
            "sequences": sequences,
            "texts": texts,
            "absent": absent,
        }
        return protocol.encode(header, tensors)


def _make_source(model: onnx.ModelProto | Path, folder: Path | None, embedded: bool = False) -> ModelSource:
    if isinstance(model, Path):
        return model_source.of_path(model, embedded)
    return model_source.of_model(model, folder, embedded)
