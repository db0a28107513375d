"""Any callable as a backend."""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..failure import failure
from . import device_memory, timing, uses
from .declined import NotApplicableError
from .values import differing, flatten_values, model_feeds

TAKES_FOLDER = "external data"
"""The fact of a callable that reads external data itself."""

FOLDER_OPTION = "session.model_external_initializers_file_folder_path"
"""The session option that says where the external data of a model without a path is, from release 1.19 on
(onnxruntime_session_options_config_keys.h)."""


class FunctionBackend:
    """A callable (model_bytes, feeds) -> outputs: a mapping by name, or a sequence in the model's order. One that has a
    parameter `folder` gets the model without its external data, and the path of the folder where that is, or None."""

    def __init__(self, specification: str, call: Callable[..., Any] | None = None) -> None:
        """specification: `module:function`, which is imported unless `call` is there."""
        if call is None:
            module, _, function = specification.partition(":")
            call = getattr(importlib.import_module(module), function)
        self.call: Callable[..., Any] = call
        self.specification = specification
        self.kept = b""
        self.timed_model: Any = None
        self.folder: str | None = None
        self.takes_folder = _takes_folder(call)

    def facts(self) -> dict[str, str]:
        return {"function": self.specification, **({TAKES_FOLDER: "read by the function"} if self.takes_folder else {})}

    def run(
        self, request: dict[str, Any], model: bytes, feeds: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Call it once with a case, or twice where that is asked for; the answer's header and the outputs."""
        answer: dict[str, Any] = {"stage": "run", "create_s": 0.0, "repeat_differs": []}
        started = time.perf_counter()
        try:
            result = self.call_in_use(request, model, feeds)
            outputs = {name: np.asarray(value) for name, value in result.items()}
            answer["run_s"] = time.perf_counter() - started
            if request.get("repeat"):
                answer["repeat_differs"] = differing(outputs, self.call_by_name(model, feeds, request["outputs"]))
        except Exception as error:
            return {**answer, **failure(error)}, {}
        return {**answer, "stage": "done"}, outputs

    def model(
        self, request: dict[str, Any], model: bytes, tensors: dict[str, Any], begin: Callable[[str], None]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Call it twice, or once, with a whole model; the answer's header and the wanted outputs."""
        feeds = model_feeds(request, tensors)
        if not request["kept"]:
            path = Path(request["path"]) if request["path"] else None
            self.kept = path.read_bytes() if path else model
            self.folder = str(path.parent) if path else request.get("config", {}).get(FOLDER_OPTION)
        answer: dict[str, Any] = {"stage": "run", "create_s": 0.0}
        begin("run")
        try:
            if request.get("shared"):
                raise ValueError("a callable has no buffers that inputs and outputs could share")
            started = time.perf_counter()
            outputs = self.call_by_name(self.kept, feeds, request["all_outputs"])
            answer["run_s"] = time.perf_counter() - started
            differs: list[str] = []
            if not request.get("once"):
                begin("repeat")
                differs = differing(outputs, self.call_by_name(self.kept, feeds, request["all_outputs"]))
            if request.get("seconds"):
                begin("timing")
                taken = timing.runs(
                    lambda: self.call_by_name(self.kept, feeds, request["all_outputs"]), request["seconds"]
                )
                answer["timing"] = {"runs_s": taken, "nodes": []}
            unasked = [name for name in outputs if name not in (*request["all_outputs"], *request["outputs"])]
            if unasked:
                raise ValueError(f"it returned an unknown output '{unasked[0]}' that the model does not have")
            missing = [name for name in request["outputs"] if name not in outputs]
            if missing:
                raise ValueError(f"it gave no output '{missing[0]}'")
            wanted = {name: outputs[name] for name in request["outputs"]}
        except Exception as error:
            return {**answer, **failure(error)}, {}
        return {**answer, "stage": "done", "repeat_differs": differs}, flatten_values(wanted)

    def speed(
        self, request: dict[str, Any], model: bytes, feeds: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Time a block of calls; the header, and the outputs where they are wanted. There is no session to create."""
        answer: dict[str, Any] = {"stage": "run", "assignment": None}
        if not request["kept"] and not request["known"]:
            self.timed_model = model, feeds

        def call() -> dict[str, Any]:
            timed_model, timed_feeds = self.timed_model
            return self.call_by_name(timed_model, timed_feeds, request["outputs"])

        outputs: dict[str, Any] = {}
        try:
            if not request["kept"]:
                started = time.perf_counter()
                outputs = call()
                answer["run_s"] = time.perf_counter() - started
            answer["timing"] = timing.answer_block(request, call, None)
            outputs = {name: np.asarray(outputs[name]) for name in request["outputs"]} if request["wanted"] else {}
        except Exception as error:
            return {**answer, **failure(error)}, {}
        return {**answer, "stage": "done"}, outputs

    def call_in_use(self, request: dict[str, Any], model: bytes, feeds: dict[str, Any]) -> dict[str, Any]:
        """Its outputs, called once or as a use calls it: a session is a call of the same model."""

        def create() -> uses.Session:
            return lambda values: self.call_by_name(model, values, request["outputs"])

        if "use" not in request:
            return create()(feeds)
        try:
            sessions = uses.Sessions(create, read_device_bytes=device_memory.read_device_bytes)
            return uses.USES[request["use"]](sessions, feeds, **request.get("extent", {}))
        except uses.NotUsableError as error:
            raise NotApplicableError(str(error)) from None

    def call_by_name(self, model: bytes, feeds: dict[str, Any], names: list[str]) -> dict[str, Any]:
        """Its outputs by name; of what follows the model's own in a sequence, which may have no end, the first."""
        result = self.call(model, feeds, **({"folder": self.folder} if self.takes_folder else {}))
        if isinstance(result, dict):
            return {str(name): value for name, value in result.items()}
        return dict(zip([*names, f"output {len(names) + 1}"], result))


def _takes_folder(call: Callable[..., Any]) -> bool:
    try:
        return "folder" in inspect.signature(call).parameters
    except (TypeError, ValueError):  # of what has no signature
        return False
