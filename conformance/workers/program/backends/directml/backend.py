"""Programs for DirectML: what a worker of a direct target is sent in the place of a model. One JSON object:

    {"call": a call as epcheck.generators.directml.call makes it, "flags": DML_EXECUTION_FLAGS,
     "inputs": [tensor or null, ...], "outputs": [tensor or null, ...]}
    {"declined": "why there is no program"}

A tensor has `data_type`, `sizes` and `strides` of its DML_BUFFER_TENSOR_DESC, and may have `flags`, `alignment`,
`total_bytes`, `bound_bytes` (of its binding) and `offset` (of its binding), in bytes. The feeds are named by the number
of their input: the elements of its buffer, gaps included. An output has a `name`, the `dtype` and `shape` in which it
is answered, and with `as_stored` the order of its buffer where that has no gaps. With `create_only` the operator is
compiled and not run.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from ...machine import file_version
from .com import CallFailed
from .device import PATTERNS, DirectML
from .structures import elements

LIBRARY = "EPCHECK_DIRECTML"
"""Environment variable: another DirectML.dll than the one in this interpreter's onnxruntime."""

NUMPY = (
    "", "float32", "float16", "uint32", "uint16", "uint8", "int32", "int16", "int8", "float64", "uint64", "int64",
)  # fmt: skip
"""DML_TENSOR_DATA_TYPE -> numpy's name of it."""


class Declined(Exception):  # noqa: N818  (named for what was done)
    """There is no program for the case."""


class DirectMLBackend:
    """Runs programs on the DirectML of this interpreter's onnxruntime, or of LIBRARY."""

    def __init__(self, adapter: int = 0) -> None:
        """adapter: its place in DXGI's list. Raises OSError where there is no Direct3D 12, or no DirectML, or no such
        adapter."""
        self._library = library()
        self._directml = DirectML(self._library, adapter)

    def facts(self) -> dict[str, str]:
        """What the device claims of itself: CheckFeatureSupport, for feature levels and for tensor data types."""
        level = self._directml.level()
        return {
            "DirectML.dll": file_version(self._library),
            "feature_level": f"DML_FEATURE_LEVEL_{level >> 12}_{level >> 8 & 0xF}",
            "tensor_data_types": ", ".join(self._directml.data_types()),
        }

    def run(
        self, request: dict[str, Any], model: bytes, feeds: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run a program; the answer's header and the outputs."""
        del request
        answer: dict[str, Any] = {"stage": "create", "assignment": None, "unwritten": [], "repeat_differs": []}
        program = json.loads(model)
        started = time.perf_counter()
        try:
            if "declined" in program:
                raise Declined(program["declined"])
            inputs, outputs = program["inputs"], program["outputs"]
            if program.get("create_only"):
                self._directml.compile(program["call"], inputs, outputs, program.get("flags", 0)).release()
                return {**answer, "stage": "done"}, {}
            data = [feeds[str(number)].tobytes() if tensor else b"" for number, tensor in enumerate(inputs)]
            with self._directml.compile(program["call"], inputs, outputs, program.get("flags", 0)) as operator:
                answer.update(stage="run", create_s=time.perf_counter() - started)
                started = time.perf_counter()
                dispatched = self._directml.dispatch(operator, inputs, data, outputs)
            answer["run_s"] = time.perf_counter() - started
            found = {}
            for tensor, first, second in zip(outputs, dispatched.first, dispatched.second):
                if tensor is not None:
                    found[tensor["name"]] = value(tensor, first)
                    compare(tensor, first, second, answer)
        except (CallFailed, Declined, MemoryError, OSError, ValueError, KeyError) as error:
            return {**answer, "error": type(error).__name__, "message": str(error)}, {}
        return {**answer, "stage": "done"}, found


def value(tensor: dict[str, Any], buffer: bytes) -> Any:
    """The output that lies in a buffer, in the dtype and shape that the model gives it."""
    return (
        view_elements(tensor, np.frombuffer(buffer, NUMPY[tensor["data_type"]]))
        .astype(tensor["dtype"])
        .reshape(tensor["shape"])
    )


def view_elements(tensor: dict[str, Any], buffer: Any) -> Any:
    """The elements of a tensor among those of its buffer."""
    buffer = buffer[: elements(tensor)]
    if tensor["strides"] is None or (tensor.get("as_stored") and elements(tensor) == math.prod(tensor["sizes"])):
        return buffer.reshape(tensor["sizes"])
    step = buffer.dtype.itemsize
    return np.lib.stride_tricks.as_strided(buffer, tensor["sizes"], [stride * step for stride in tensor["strides"]])


def compare(tensor: dict[str, Any], first: bytes, second: bytes, answer: dict[str, Any]) -> None:
    """Note an output that kept what was in its buffer before, or changed from one dispatch to the next."""
    before, after = (
        view_elements(tensor, np.frombuffer(b, NUMPY[tensor["data_type"]])).tobytes() for b in (first, second)
    )
    if before != after:
        a, b = np.frombuffer(before, np.uint8), np.frombuffer(after, np.uint8)
        untouched = ((a == PATTERNS[0]) & (b == PATTERNS[1]))[a != b].all()
        answer["unwritten" if untouched else "repeat_differs"].append(tensor["name"])


def library() -> Path:
    """DirectML.dll: of LIBRARY, or of this interpreter's onnxruntime, which is not imported. Raises OSError."""
    if LIBRARY in os.environ:
        return Path(os.environ[LIBRARY])
    runtime = importlib.util.find_spec("onnxruntime")
    folder = Path(runtime.origin).parent / "capi" if runtime is not None and runtime.origin else None
    if folder is None or not (folder / "DirectML.dll").is_file():
        raise OSError(f"this interpreter has no DirectML.dll; install onnxruntime-directml, or name one in {LIBRARY}")
    return folder / "DirectML.dll"
