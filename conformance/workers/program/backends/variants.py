"""Sessions that are run in another way: with I/O binding on the provider's device, and from an EPContext model."""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from .declined import NotApplicableError

CONTEXT_NODE = b"EPContext"
"""The operator of a node that stands for what a provider has compiled, as it stands in a serialized model."""

VERSION = re.compile(rb"ep_sdk_version.{2,6}?(\d[\d.]*)", re.DOTALL)
"""The attribute of an EPContext node that says with which release of the provider's software it was made."""


def run(
    backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """Run a session in the way that the request names; the outputs.

    backend: makes the sessions, and says where their nodes are. answer: is filled in, also where this raises.
    """
    way = _bound if request["way"] == "bound" else _from_context
    return way(backend, request, model, feeds, answer)


def _bound(
    backend: Any, request: dict[str, Any], model: bytes, feeds: dict[str, Any], answer: dict[str, Any]
) -> dict[str, Any]:
    """Inputs and outputs in the memory of the provider's device; on the host where it has none of its own."""
    values = [*feeds.values()]
    if any(not isinstance(value, np.ndarray) or value.dtype.kind in "OSU" for value in values):
        raise NotApplicableError("an input has no memory on a device")
    session = _timed(backend, request, model, answer)
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
    with tempfile.TemporaryDirectory(prefix="epcheck-context-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "context.onnx"
        placed = _compile(backend, request, model, path, embedded=how == "bytes")
        if how in ("stale", "damaged"):
            try:
                backend.session(request, str(path))
            except Exception as error:
                raise NotApplicableError(f"the context is refused as it was made: {error}") from None
            (_make_stale if how == "stale" else _damage)(path)
        session = _timed(backend, request, path.read_bytes() if how == "bytes" else str(path), answer)
        answer["stage"] = "run"
        names = [output.name for output in session.get_outputs()]
        started = time.perf_counter()
        values = session.run(names, feeds)
        answer["run_s"] = time.perf_counter() - started
        answer["assignment"] = placed
        del session  # Windows deletes no file that is open
        return dict(zip(names, values))


def _timed(backend: Any, request: dict[str, Any], model: bytes | str, answer: dict[str, Any]) -> Any:
    started = time.perf_counter()
    session = backend.session(request, model)
    answer["create_s"] = time.perf_counter() - started
    return session


def _compile(backend: Any, request: dict[str, Any], model: bytes, path: Path, embedded: bool) -> Any:
    """Write the EPContext model; where the nodes of the ONNX model went. Raises NotApplicableError without one."""
    made = {
        "ep.context_enable": "1",
        "ep.context_file_path": str(path),
        "ep.context_embed_mode": str(int(embedded)),
    }
    compiling = {**request, "config": {**request["config"], **made}}
    session = backend.session(compiling, model)
    if not path.is_file() or CONTEXT_NODE not in path.read_bytes():
        raise NotApplicableError("the provider makes no EPContext node of it")
    return backend.assignment(session, backend.keeps_record(request))


def _make_stale(path: Path) -> None:
    """Have the context say that another release made it: the numbers of the version are others, and as long."""
    content = path.read_bytes()
    found = VERSION.search(content)
    if found is None:
        raise NotApplicableError("the context does not say which release made it")
    start, end = found.span(1)
    other = re.sub(rb"\d", lambda digit: b"%d" % (9 - int(digit[0])), content[start:end])
    path.write_bytes(content[:start] + other + content[end:])


def _damage(path: Path) -> None:
    """Cut off the second half of what the provider compiled, in the file beside the model; fill it up with zeros, as a
    download does that was interrupted."""
    beside = [other for other in path.parent.iterdir() if other != path and other.stat().st_size]
    if not beside:
        raise NotApplicableError("the provider keeps nothing beside the context model")
    for other in beside:
        content = other.read_bytes()
        other.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))
