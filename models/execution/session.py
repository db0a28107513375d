"""Whole models in sessions of a target, in a worker process that may crash or hang without taking anybody along."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import onnx

from epcheck.conformance import lab
from epcheck.conformance.scheduling.supervisor import DEVICE_LOST, TargetDown
from epcheck.conformance.targets.target import DISABLE_FALLBACK, MEBIBYTE, Target
from epcheck.conformance.test_data import model_file
from epcheck.conformance.test_data.model_file import ModelFileError
from epcheck.conformance.workers import process as processes
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import MalformedFrame, ProcessExited, WorkerProcess, describe_exit
from epcheck.conformance.workers.program import protocol
from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed

DONE, CREATE, RUN, CRASH, TIMEOUT = "done", "create", "run", "crash", "timeout"
Level = Literal["all", "extended", "basic", "disabled"]
"""Graph optimisation levels of onnxruntime.GraphOptimizationLevel."""

STEPS = {"": "starting", CREATE: "session creation", RUN: "the run", "repeat": "the second run"}
"""A worker's word for a step -> ours."""

DEADLINE_S = 300.0
"""Seconds that each step of a whole model may take."""

MEMORY = 4
"""A worker may take so many times the size of the model on top of what the target allows for a case."""

POLL_S = 0.2
"""Deadline and memory are looked at so often, in seconds."""

STARTS = 3
"""Workers in a row that may fail to start."""

EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
"""The session option that says where the external data of a model without a path is, from release 1.19 on
(onnxruntime_session_options_config_keys.h)."""


@dataclass(frozen=True)
class ModelOutcome:
    """What a target did with a model.

    stage: `done`, or how it failed: `create` or `run` with a clean error, `crash` (the process ended, ran out of
    memory or lost the device) or `timeout`. during: the step in words, for all but `done`.
    outputs: by name; those of a sequence `s` are `s[0]`, ..., of a map `m` `m.keys` and `m.values`; text is UTF-8
    bytes. assignment: (provider, operator, node) from the session's own record; None where it keeps none.
    create_s: seconds, None in a session that was there already. unwritten: outputs that left a dirtied buffer as it
    was in the second run; repeat_differs: outputs that changed in it.
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

    @property
    def is_done(self) -> bool:
        """Whether there are outputs."""
        return self.stage == DONE


@dataclass(frozen=True)
class Source:
    """A model as a worker gets it: a path, or bytes. folder: where the external data of bytes is, if they have any.
    size: in bytes, with external data."""

    path: Path | None
    content: bytes
    outputs: tuple[str, ...]
    folder: Path | None
    size: int

    def key(self) -> str:
        """Equal for the same model."""
        return str(self.path) if self.path else hashlib.sha256(self.content).hexdigest()


class ModelSessions:
    """Sessions of one target, one at a time, in one worker, which is replaced when it crashes or hangs.

    The last session is kept for further feeds of the same model. Use it as a context manager, or `close` it.
    """

    def __init__(self, target: Target, deadline_s: float = DEADLINE_S, threads: int = 0) -> None:
        """deadline_s: seconds for each step. threads: of the runtime within an operator, 0 for as many as it likes."""
        self.target = target
        self.facts: Mapping[str, str] = {}
        self.created = 0
        self._deadline_s = deadline_s
        self._threads = threads
        self._events: queue.SimpleQueue[processes.Event] = queue.SimpleQueue()
        self._idle = IdleWorkers()
        self._worker: WorkerProcess | None = None
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
    def has_worker(self) -> bool:
        """Whether the last request left its worker alive."""
        return self._worker is not None

    def resident_bytes(self) -> int:
        """Of the worker's memory; 0 where there is none."""
        return 0 if self._worker is None else self._worker.resident_bytes()

    def end_worker(self) -> None:
        """End the worker and free its memory; the next run starts another."""
        if self._worker is not None:
            self._worker.close()
        self._worker = self._kept = None

    def close(self) -> None:
        """End the worker for good."""
        self.end_worker()
        self._idle.close()
        self._resources.close()

    def run(
        self,
        model: onnx.ModelProto | Path,
        feeds: Mapping[str, Feed],
        outputs: Sequence[str] | None = None,
        level: Level = "all",
        strict: bool = False,
        folder: Path | None = None,
    ) -> ModelOutcome:
        """Create a session of the model, or use the last one if it is the same, and run it twice.

        A path is opened by the runtime itself, which maps external data; that must be inside the model's folder.
        folder: where a ModelProto has its external data. outputs: the wanted ones, by default all of the model.
        strict: no node may fall back to the CPU. Raises ModelFileError, and TargetDown when no worker starts.
        """
        source = self._source(model, folder)
        session = (source.key(), level, strict)
        process = self._started()
        kept, self._kept = self._kept == session, None
        process.send(self._request(source, feeds, list(outputs or source.outputs), level, strict, kept))
        process.flush()
        answer = self._await(process, source)
        self.created += not kept
        if self._worker is not None and answer.stage != CREATE:
            self._kept = session
        return answer

    def _source(self, model: onnx.ModelProto | Path, folder: Path | None) -> Source:
        if isinstance(model, Path):
            stat = _stat(model)
            source = _of_path(model.absolute(), stat.st_mtime_ns, stat.st_size)
            return source if self.target.provider else _embedded(source)
        if folder is not None:
            model_file.external_data(model, folder / "model")
            if not self.target.provider:
                whole = onnx.ModelProto()
                whole.CopyFrom(model)
                model, folder = model_file.embedded(whole, folder / "model"), None
        elif any(True for _ in model_file.external_tensors(model)):
            raise ModelFileError("the model has external data, and no folder is given where it is")
        try:
            content = model.SerializeToString()
        except Exception as error:  # protobuf's own type depends on its version
            raise ModelFileError(f"the model cannot be serialized, probably because it is too large: {error}") from None
        return Source(None, content, tuple(value.name for value in model.graph.output), folder, len(content))

    def _request(
        self, source: Source, feeds: Mapping[str, Feed], outputs: list[str], level: Level, strict: bool, kept: bool
    ) -> list[bytes]:
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
                tensors |= {f"{name}[{index}]": each for index, each in enumerate(value)}
            elif value.dtype.kind in "OSU":
                texts[name] = [list(value.shape), [str(each) for each in value.ravel()]]
            else:
                tensors[name] = value
        target = self.target
        config = {**target.config, **({EXTERNAL_FOLDER: target.name_of(source.folder)} if source.folder else {})}
        if not strict:
            config.pop(DISABLE_FALLBACK, None)
        header: dict[str, Any] = {
            "op": "model",
            "id": source.key(),
            "providers": [[target.provider, dict(target.options)]] if target.provider else [],
            "config": config,
            "device": target.device,
            "level": level,
            "threads": self._threads,
            "path": target.name_of(source.path) if source.path else None,
            "kept": kept,
            "outputs": outputs,
            "all_outputs": list(source.outputs),
            "sequences": sequences,
            "texts": texts,
            "absent": absent,
        }
        return protocol.encode(header, tensors)

    def _started(self) -> WorkerProcess:
        """The worker, greeted. Raises TargetDown."""
        why = ""
        for _ in range(STARTS):
            if self._worker is not None and self._worker.process.poll() is None:
                return self._worker
            self._kept = None
            try:
                self._worker = self._idle.take(self.target, self._events)
            except (OSError, ValueError) as error:
                raise TargetDown(f"target '{self.target.name}': its interpreter cannot be started: {error}") from error
            if not (why := self._greet(self._worker)):
                return self._worker
        raise TargetDown(f"target '{self.target.name}': its worker does not start: {why}")

    def _greet(self, process: WorkerProcess) -> str:
        """Wait for the worker's greeting; why there is none, after which the worker is gone."""
        event = self._next(process, time.monotonic() + self.target.startup_s)
        match event:
            case processes.FrameReceived(header={"op": "hello", "facts": facts}):
                self.facts = {str(k): str(v) for k, v in facts.items()} if isinstance(facts, dict) else {}
                offered = self.facts.get("providers", "")
                if self.target.provider and offered and self.target.provider not in offered.split(", "):
                    raise TargetDown(
                        f"target '{self.target.name}': its onnxruntime has no {self.target.provider}; it has {offered}"
                    )
                return ""
            case ProcessExited(returncode=returncode):
                why = f"the worker process ended: {describe_exit(returncode)}"
            case None:
                why = f"no answer within {self.target.startup_s:g} s of starting"
            case _:
                why = "its worker sent a malformed handshake"
        log = self._drop(process, why).splitlines()
        return f"{why}{f'; it said: {log[-1]}' if log else ''}"

    def _await(self, process: WorkerProcess, source: Source) -> ModelOutcome:
        """What becomes of a request that was sent."""
        step = ""
        bound = self.target.memory_bytes + MEMORY * source.size
        while True:
            event = self._next(process, time.monotonic() + self._deadline_s, bound)
            match event:
                case None:
                    why = process.killed_because or f"no answer within {self._deadline_s:g} s"
                    return self._lost(process, TIMEOUT if not process.killed_because else CRASH, step, why)
                case ProcessExited(returncode=returncode):
                    why = process.killed_because or f"the worker process ended: {describe_exit(returncode)}"
                    return self._lost(process, CRASH, step, why)
                case MalformedFrame(error=error):
                    return self._lost(process, CRASH, step, f"its worker wrote {error} to stdout")
                case answered if answered.header.get("op") == "at":
                    step = str(answered.header.get("stage"))
                case answered:
                    return self._answered(process, step, answered.header, answered.body)

    def _answered(self, process: WorkerProcess, step: str, header: Mapping[str, Any], body: bytes) -> ModelOutcome:
        try:
            answer = _decoded(header, body)
        except (KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
            return self._lost(process, CRASH, step, f"its worker sent a malformed answer: {error!r}")
        if not answer.is_done and DEVICE_LOST.search(answer.message):
            return self._lost(process, CRASH, step, f"the device was lost: {answer.message}")
        return answer

    def _lost(self, process: WorkerProcess, stage: str, step: str, why: str) -> ModelOutcome:
        log = self._drop(process, why)
        return ModelOutcome(stage, during=STEPS.get(step, step), message=why, log_tail=log)

    def _drop(self, process: WorkerProcess, why: str) -> str:
        """End the worker; the end of what it said."""
        process.kill(why)
        self._worker = self._kept = None
        return process.log_tail()

    def _next(self, process: WorkerProcess, until: float, memory_bytes: int = 0) -> processes.Event | None:
        """The next event of this worker; None when the time is over or it took too much memory and was killed."""
        while (left := until - time.monotonic()) > 0:
            try:
                event = self._events.get(timeout=min(left, POLL_S))
            except queue.Empty:
                resident = process.resident_bytes()
                if memory_bytes and resident > memory_bytes:
                    took, bound = resident // MEBIBYTE, memory_bytes // MEBIBYTE
                    process.kill(f"the worker took {took} MiB of memory; the bound is {bound} MiB")
                    return None
                continue
            if event.source is process:
                return event
        return None


def _stat(path: Path) -> Any:
    try:
        return path.stat()
    except (OSError, ValueError) as error:
        raise ModelFileError(f"'{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from None


@lru_cache(maxsize=8)
def _of_path(path: Path, _modified_ns: int, size: int) -> Source:
    """The file, its external data checked. Raises ModelFileError."""
    model = model_file.parse(path)
    size += sum(place.length for place in model_file.external_data(model, path))
    return Source(path, b"", tuple(value.name for value in model.graph.output), None, size)


@lru_cache(maxsize=1)
def _embedded(source: Source) -> Source:
    """For a callable, which takes bytes: the same with its external data in it."""
    assert source.path is not None
    model = model_file.load(source.path)
    return Source(None, model.SerializeToString(), source.outputs, None, source.size)


def _decoded(header: Mapping[str, Any], body: bytes) -> ModelOutcome:
    """Raises KeyError, TypeError or ValueError where the frame is no answer."""
    stage = {DONE: DONE, CREATE: CREATE}.get(header["stage"], RUN)
    assignment = header.get("assignment")
    done = stage == DONE
    return ModelOutcome(
        stage,
        during="" if done else STEPS[stage],
        message="" if done else " ".join(str(header["message"]).split()) or str(header["error"]),
        outputs=dict(protocol.decode(header, body)),
        assignment=None if assignment is None else tuple((str(p), str(op), str(node)) for p, op, node in assignment),
        create_s=_seconds(header.get("create_s")),
        run_s=_seconds(header.get("run_s")),
        unwritten=tuple(map(str, header.get("unwritten") or ())),
        repeat_differs=tuple(map(str, header.get("repeat_differs") or ())),
    )


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)
