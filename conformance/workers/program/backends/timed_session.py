"""A session whose runs are timed, with inputs and outputs in the memory of the provider's device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime

from . import timing
from .values import flatten_values

ON_CPU = "cpu"

SAMPLED = 1 << 20
"""Elements of an output that come back, at most: they are compared with those of another target, not judged."""


class TimedSession:
    """One session and its feeds. On a provider that has a memory of its own, and buffers there that can be bound, a run
    is apart from the copies. always_copies: each run copies inputs or outputs, since no buffer can be bound."""

    def __init__(self, session: Any, device: str | None, feeds: dict[str, Any]) -> None:
        """device: where buffers can be bound; None for nowhere."""
        self.session = session
        self.feeds = feeds
        self.names = [output.name for output in session.get_outputs()]
        self.binding: Any = None
        self.always_copies = device in (None, ON_CPU) and _has_own_memory(session)
        if device is not None and device != ON_CPU:
            self.binding = session.io_binding()
            for name, value in feeds.items():
                buffer = onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value), device, 0)
                self.binding.bind_ortvalue_input(name, buffer)
            for name in self.names:
                self.binding.bind_output(name, device)

    def run(self) -> None:
        """Run once, and wait until the device has ended."""
        if self.binding is None:
            self.run_with_copies()
        else:
            self.session.run_with_iobinding(self.binding)
            self.binding.synchronize_outputs()

    def run_with_copies(self) -> dict[str, Any]:
        """The outputs of a run, as an application without bound buffers has them."""
        return dict(zip(self.names, self.session.run(self.names, self.feeds)))

    @property
    def copies(self) -> Callable[[], Any] | None:
        """What runs with copies, where that is something else."""
        return None if self.binding is None else self.run_with_copies


def _has_own_memory(session: Any) -> bool:
    """Whether inputs or outputs lie in a memory of the provider's. ONNX Runtime says so from 1.23 on."""
    if not hasattr(session, "get_output_memory_infos"):
        return False
    infos = [*session.get_input_memory_infos(), *session.get_output_memory_infos()]
    return any(info is not None and not info.name.lower().startswith(ON_CPU) for info in infos)


class TimedSessions:
    """The session that is timed, and the model and the feeds that it is made of."""

    def __init__(self) -> None:
        self.last: TimedSession | None = None
        self.model: tuple[bytes, dict[str, Any]] = b"", {}

    def answer(
        self, backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The header of an answer, and the outputs where they are wanted. backend: OnnxRuntimeBackend, which makes
        sessions."""
        answer: dict[str, Any] = {"stage": "create", "assignment": None}
        try:
            if not request["kept"]:
                self.last = None
                self.model = self.model if request["known"] else (model, feeds)
                self.last = self.create(backend, request, answer)
            if self.last is None:
                raise ValueError("there is no session that could be timed again")
            answer["stage"] = "run"
            timed = timing.answer_block(request, self.last.run, self.last.copies)
            if self.last.always_copies:
                timed = {"runs_ns": [], "copied_ns": timed["runs_ns"]}
            answer["timing"] = timed
            outputs = self.last.run_with_copies() if request["wanted"] else {}
        except Exception as error:
            backend.settle(request)
            self.last = None
            backend.held.check()
            return {**answer, **backend.failure(error)}, {}
        return {**answer, "stage": "done"}, sample_values(flatten_values(outputs))

    def create(self, backend: Any, request: dict[str, Any], answer: dict[str, Any]) -> TimedSession:
        """A new session that has run once; the times of both go into the answer."""
        content, feeds = self.model
        started = time.perf_counter()
        session = backend.session(request, content)
        answer["create_s"] = time.perf_counter() - started
        answer["stage"] = "run"
        created = TimedSession(session, request["device"], feeds)
        started = time.perf_counter()
        created.run()
        answer["run_s"] = time.perf_counter() - started
        if backend.keeps_record(request):
            answer["assignment"] = backend.assignment(session, recorded=True)
        return created


def sample_values(values: dict[str, Any]) -> dict[str, Any]:
    """The values, of each as many elements as SAMPLED: every n-th."""
    return {
        name: value if value.size <= SAMPLED else value.reshape(-1)[:: -(-value.size // SAMPLED)].copy()
        for name, value in values.items()
    }
