"""Sessions that are run in another way: with I/O binding on the provider's device, from an EPContext model, with their
weights in another place, and used as applications use them."""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from ..protocol import CONTEXT, INITIALIZER, OTHER, WEIGHTS, WEIGHTS_FILE
from . import contexts, device_memory, uses
from .declined import NotApplicableError
from .values import name_outputs

RAN_S, END_S = 30, 8
"""Seconds that a process with one session may take until it has run, and then to end."""


def run(
    backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """Run a session in the way that the request names; the outputs.

    backend: makes the sessions, and says where their nodes are. answer: is filled in, also where this raises.
    """
    ways = {"bound": _bound, "context": _from_context, "weights": _with_weights, "use": _in_use}
    return ways[request["way"]](backend, request, model, feeds, answer)


def _bound(
    backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """Inputs and outputs in the memory of the provider's device; on the host where it has none of its own."""
    values = [*feeds.values()]
    if any(not isinstance(value, np.ndarray) or value.dtype.kind in "OSU" for value in values):
        raise NotApplicableError("an input has no memory on a device")
    session = _time_creation(backend, request, model, answer)
    if any(not re.fullmatch(r"tensor\((?!string)\w+\)", output.type) for output in session.get_outputs()):
        raise NotApplicableError("an output has no memory on a device")
    device = request["device"] or "cpu"
    answer["stage"] = "run"
    binding = session.io_binding()
    kept = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value, device, 0) for name, value in feeds.items()}
    for name, value in kept.items():
        binding.bind_ortvalue_input(name, value)
    names = [output.name for output in session.get_outputs()]
    for name in names:
        binding.bind_output(name, device)
    binding.synchronize_inputs()
    started = time.perf_counter()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    answer["run_s"] = time.perf_counter() - started
    answer["assignment"] = backend.assignment(session, backend.keeps_record(request))
    return {name: value.numpy() for name, value in zip(names, binding.get_outputs())}


def _from_context(
    backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """Compile to an EPContext model, load that, and run it.

    A stale or damaged context is loaded only where the one it is made of can be: otherwise its refusal proves nothing.
    """
    how = request["context"]
    if how == "from":
        return _run(
            backend, request, _time_creation(backend, request, feeds.pop(CONTEXT).tobytes(), answer), feeds, answer
        )
    try:
        if how == "compile":
            return _give_compiled(backend, request, model)
        return _run_compiled(backend, request, model, feeds, answer, how)
    except contexts.NoContextError as error:
        raise NotApplicableError(str(error)) from None


def _give_compiled(backend: Any, request: dict[str, Any], model: bytes) -> dict[str, Any]:
    """The EPContext model, with the context in it. Raises contexts.NoContextError."""
    with tempfile.TemporaryDirectory(prefix="epcheck-context-", ignore_cleanup_errors=True) as folder:
        compiled: Any
        compiled, _ = _compile(backend, request, model, Path(folder) / "context.onnx", embedded=True)
    return {CONTEXT: np.frombuffer(compiled, np.uint8)}


def _run_compiled(
    backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any], answer: dict[str, Any], how: str
) -> dict[str, Any]:
    """how: `file`, `bytes`, where the context is loaded, or how it is broken. Raises contexts.NoContextError."""
    with tempfile.TemporaryDirectory(prefix="epcheck-context-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "context.onnx"
        compiled, placed = _compile(backend, request, model, path, embedded=how == "bytes")
        if how in contexts.BREAK:
            try:
                backend.session(request, compiled)
            except Exception as error:
                raise NotApplicableError(f"the context is refused as it was made: {error}") from None
            contexts.BREAK[how](path)
        if how in contexts.PLACE:
            compiled = str(contexts.PLACE[how](path))
        outputs = _run(backend, request, _time_creation(backend, request, compiled, answer), feeds, answer)
        answer["assignment"] = placed or answer["assignment"]
        return outputs


def _time_creation(backend: Any, request: dict[str, Any], model: bytes | str, answer: dict[str, Any]) -> Any:
    started = time.perf_counter()
    session = backend.session(request, model)
    answer["create_s"] = time.perf_counter() - started
    return session


def _compile(
    backend: Any, request: dict[str, Any], model: bytes, path: Path, embedded: bool
) -> tuple[bytes | str, Any]:
    """The EPContext model, as bytes where the context is embedded, and else its path; and where the nodes of the ONNX
    model went, None where only the compiled model's session can say it. Raises contexts.NoContextError without one."""
    placed = None
    if hasattr(onnxruntime, "ModelCompiler"):
        compiler = backend.compiler(request, model, embedded)
        if embedded:
            return contexts.with_context(compiler.compile_to_bytes()), placed
        compiler.compile_to_file(str(path))
    else:
        placed = _compile_by_options(backend, request, model, path, embedded)
    compiled = contexts.with_context(path.read_bytes() if path.is_file() else b"")
    return compiled if embedded else str(path), placed


def _compile_by_options(backend: Any, request: dict[str, Any], model: bytes, path: Path, embedded: bool) -> Any:
    """Have a session write the EPContext model, as before ONNX Runtime had a compile API; where the nodes went."""
    made = {
        "ep.context_enable": "1",
        "ep.context_file_path": str(path),
        "ep.context_embed_mode": str(int(embedded)),
    }
    session = backend.session({**request, "config": {**request["config"], **made}}, model)
    return backend.assignment(session, backend.keeps_record(request))


def _with_weights(
    backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """The initializers come from a file beside the model, or from such a file in memory; the session has them when it
    is made, so the folder is removed before it runs, where the system removes what may be open."""
    if WEIGHTS not in feeds:
        raise NotApplicableError("it has no initializer whose data can be elsewhere")
    content = feeds.pop(WEIGHTS)
    with tempfile.TemporaryDirectory(prefix="epcheck-weights-", ignore_cleanup_errors=True) as folder:
        source: bytes | str = model
        if request["weights"] == "memory":
            if not hasattr(onnxruntime.SessionOptions, "add_external_initializers_from_files_in_memory"):
                raise NotApplicableError("this release takes no files in memory")
            request = {**request, "files": {WEIGHTS_FILE: content}}
        else:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model)
            (Path(folder) / WEIGHTS_FILE).write_bytes(content.tobytes())
            source = str(path)
        session = _time_creation(backend, request, source, answer)
        if sys.platform != "win32":
            shutil.rmtree(folder)
        outputs = _run(backend, request, session, feeds, answer)
        del session  # Windows deletes no file that is open
        return outputs


def _in_use(
    backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """The outputs of a use (`uses.USES`). A session after it says where the nodes are."""
    answer["stage"] = "run"
    unprofiled = {**request, "profile": False}
    models = [feeds.pop(name).tobytes() for name in sorted(feeds) if name.startswith(OTHER)]
    shared = {
        name.removeprefix(INITIALIZER): onnxruntime.OrtValue.ortvalue_from_numpy(feeds.pop(name))
        for name in [*feeds]
        if name.startswith(INITIALIZER)
    }

    def make_of(content: bytes, **changes: Any) -> uses.Session:
        session = backend.session({**unprofiled, **changes}, content)
        names = [output.name for output in session.get_outputs()]
        return lambda values: name_outputs(names, session.run(names, values))

    reference = models[0] if models else model
    sessions = uses.Sessions(
        functools.partial(make_of, model),
        lambda: backend.settle(request),
        functools.partial(uses.is_valid, onnxruntime, reference),
        tuple(functools.partial(make_of, other) for other in models),
        lambda: backend.session(unprofiled, model),
        functools.partial(onnxruntime.InferenceSession, reference, providers=["CPUExecutionProvider"]),
        backend.plugin.register_again if backend.plugin else None,
        functools.partial(_end_process, backend, unprofiled, model),
        functools.partial(make_of, model, initializers=shared) if shared else None,
        device_memory.read_device_bytes,
    )
    try:
        outputs = uses.USES[request["use"]](sessions, feeds, **request.get("extent", {}))
    except uses.NotUsableError as error:
        raise NotApplicableError(str(error)) from None
    _run(backend, request, _time_creation(backend, request, model, answer), feeds, answer)
    return outputs


ENDS = """
import ctypes, json, sys
import numpy as np
folder, sys.path[:0] = sys.argv[1], [sys.argv[2]]
from program.backends.onnxruntime import OnnxRuntimeBackend
with open(folder + "/request.json", encoding="utf-8") as file:
    request = json.load(file)
backend = OnnxRuntimeBackend(request["plugin"])
with open(folder + "/model.onnx", "rb") as file:
    session = backend.session(request, file.read())
feeds = np.load(folder + "/feeds.npz")
session.run(None, {name: feeds[str(number)] for number, name in enumerate(request["feeds"])})
for each in (session, session._sess):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
print("ran", flush=True)
"""
"""Makes a session, runs it, and ends while somebody has it. What is at fault before that is the matter of others."""


def _end_process(backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any]) -> int:
    """The exit code of a process that ends while a session is there; 0 where none got so far."""
    if any(not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub" for value in feeds.values()):
        raise uses.NotUsableError("an input is no tensor of numbers that numpy has")
    with tempfile.TemporaryDirectory(prefix="epcheck-exit-", ignore_cleanup_errors=True) as folder:
        wanted = backend.plugin.wanted if backend.plugin else None
        text = json.dumps({**request, "plugin": wanted, "feeds": list(feeds), "tensors": []})
        (Path(folder) / "request.json").write_text(text, encoding="utf-8")
        (Path(folder) / "model.onnx").write_bytes(model)
        np.savez(Path(folder) / "feeds.npz", **{str(number): value for number, value in enumerate(feeds.values())})
        command = [sys.executable, "-P", "-c", ENDS, folder, str(Path(__file__).parents[2])]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise uses.NotUsableError(f"no process can be started: {error}") from None
        with process:
            overdue = threading.Timer(RAN_S, process.kill)
            overdue.start()
            has_run = any(line.strip() == b"ran" for line in process.stdout or ())
            overdue.cancel()
            try:
                returncode = process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise uses.UseError(f"a process with a session does not end within {END_S} s") from None
        return returncode if has_run else 0


def _run(
    backend: Any, request: dict[str, Any], session: Any, feeds: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    answer["stage"] = "run"
    names = [output.name for output in session.get_outputs()]
    started = time.perf_counter()
    values = session.run(names, feeds)
    answer["run_s"] = time.perf_counter() - started
    answer["assignment"] = backend.assignment(session, backend.keeps_record(request))
    return name_outputs(names, values)
