"""How a provider behaves as a part of a process: what it says of itself, writes, opens and leaves behind.

Each answer is made of what this process sees: the system tells nobody what a jail has refused.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnxruntime

from .canary import MODEL
from .kernel_registry import find_library
from .plugin import REGISTRATION, SUFFIXES, id_of, reason, words

CHUNK = 1 << 20
"""Bytes of a file that are hashed at a time."""

MOST_FILES, MOST_BYTES = 20, 400
"""Names of files, and bytes of what was written to stdout, that an answer has at most."""

RUNTIME = ("onnxruntime_pybind11_state", "libonnxruntime", "onnxruntime.dll", "DirectML.dll")
"""Beginnings of the names of the files that the runtime is in."""


def answer_contract(backend: Any, request: dict[str, Any], say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """The answer to a `contract` request, as `protocol.py` has it. say: sends an answer at once."""
    if request["part"] == "version":
        return ask_version(backend, say)
    if request["part"] == "registration":
        return register_again(backend, request)
    return describe(backend, request)


def describe(backend: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Devices, digests, and what a session of the canary leaves on stdout, in folders and among open files."""
    ((provider, _),) = request["providers"]
    answer: dict[str, Any] = {"devices": list_devices(provider), "libraries": list_libraries(provider, backend.plugin)}
    before, sockets = list_files(), list_sockets()
    with capture_stdout() as written:
        try:
            run_canary(backend, request)
            answer["session"] = ""
        except Exception as error:
            answer["session"] = reason(str(error)) or type(error).__name__
        gc.collect()
    left = list_sockets()
    return {
        "stage": "done",
        **answer,
        "stdout": written[0][:MOST_BYTES].decode("utf-8", "replace"),
        "stdout_bytes": len(written[0]),
        "files": sorted(list_files() - before)[:MOST_FILES],
        "sockets": None if left is None or sockets is None else len(left - sockets),
    }


def run_canary(backend: Any, request: dict[str, Any]) -> Any:
    """One session of the canary, run once; the answer."""
    import numpy as np

    session = backend.session(request, MODEL)
    feed = np.arange(4, dtype=np.float32).reshape(2, 2)
    return session.run(None, {"a": feed, "b": feed})[0]


def register_again(backend: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Use the library, unregister it, register it again and use it once more.

    offered: devices of the provider before, between and after. same: whether both sessions gave the same bits.
    """
    plugin = backend.plugin
    if plugin is None:
        return {"stage": "none"}
    first = run_canary(backend, request).tobytes()
    backend.held.session = None
    offered = [count_devices(plugin.provider)]
    plugin.unregister()
    offered.append(count_devices(plugin.provider))
    plugin.register()
    offered.append(count_devices(plugin.provider))
    return {"stage": "done", "offered": offered, "same": run_canary(backend, request).tobytes() == first}


def count_devices(provider: str) -> int:
    """How many devices a provider offers now."""
    return sum(device.ep_name == provider for device in onnxruntime.get_ep_devices())


class _ApiBase(ctypes.Structure):
    """OrtApiBase of onnxruntime_c_api.h."""

    _fields_ = [
        ("GetApi", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),
        ("GetVersionString", ctypes.CFUNCTYPE(ctypes.c_void_p)),
    ]


def ask_version(backend: Any, say: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Which version of the C API the library asks for first. It is unregistered before, since it may keep the API. The
    process ends where it asks: what it would do without an API is nobody's matter."""
    plugin = backend.plugin
    if plugin is None:
        return {"stage": "none"}
    backend.held.session = None
    plugin.unregister()
    text = ctypes.create_string_buffer(onnxruntime.__version__.encode())

    def get_api(version: int) -> None:
        say({"stage": "done", "api_version": int(version)})
        os._exit(0)

    base = _ApiBase(
        ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(get_api),
        ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.addressof(text)),
    )
    library = ctypes.CDLL(plugin.library)
    factories, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t()
    library.CreateEpFactories.restype = ctypes.c_void_p
    library.CreateEpFactories(
        REGISTRATION.encode(), ctypes.byref(base), None, factories, ctypes.c_size_t(4), ctypes.byref(count)
    )
    return {"stage": "done", "api_version": None}


def list_devices(provider: str) -> list[dict[str, Any]]:
    """What `get_ep_devices` says of the provider; nothing before ONNX Runtime 1.22."""
    if not hasattr(onnxruntime, "get_ep_devices"):
        return []
    found = {id_of(device): device for device in onnxruntime.get_ep_devices() if device.ep_name == provider}
    return [
        {
            "provider": str(device.ep_name),
            "vendor": str(device.ep_vendor),
            "hardware": words(device),
            "metadata": {str(name): str(value) for name, value in device.ep_metadata.items()},
            "options": {str(name): str(value) for name, value in device.ep_options.items()},
        }
        for device in found.values()
    ]


def list_libraries(provider: str, plugin: Any) -> list[dict[str, Any]]:
    """Name, size and SHA-256 of the provider's own library and of the files of the runtime."""
    own = find_library(provider, plugin)
    folder = Path(onnxruntime.__file__).parent / "capi"
    runtime = [path for path in sorted(folder.iterdir()) if path.name.startswith(RUNTIME) and is_library(path)]
    files = ([("library", own)] if own else []) + [("runtime", path) for path in runtime]
    return [{"role": role, "name": path.name, **hash_file(path)} for role, path in files]


def is_library(path: Path) -> bool:
    """Whether a file is one that is loaded, by its name: `libonnxruntime.so.1.32.0` is."""
    return path.is_file() and (path.suffix in (*SUFFIXES, ".pyd") or ".so" in path.suffixes)


def hash_file(path: Path) -> dict[str, Any]:
    """Its size and its SHA-256."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return {"size": size, "sha256": digest.hexdigest()}


@contextlib.contextmanager
def capture_stdout() -> Iterator[list[bytes]]:
    """What is written to file descriptor 1, libraries included."""
    captured: list[bytes] = []
    kept = os.dup(1)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 1)
        try:
            yield captured
        finally:
            with contextlib.suppress(Exception):  # what C's stdio has buffered
                ctypes.CDLL(None if sys.platform != "win32" else "ucrtbase").fflush(None)
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
            file.seek(0)
            captured.append(file.read())


def list_files() -> set[str]:
    """What is where this process stands, and where temporary files go."""
    folders = {folder.resolve() for folder in (Path.cwd(), Path(tempfile.gettempdir()))}
    return {str(entry) for folder in folders for entry in folder.iterdir()}


def list_sockets() -> Any:
    """The sockets that this process has open; None where the system does not say."""
    found = set()
    try:
        for entry in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(entry.readlink())
                if target.startswith("socket:"):
                    found.add(target)
    except OSError:
        return None
    return found
