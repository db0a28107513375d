"""The worker: one stand-alone file that runs cases in a process of its own. Needs numpy, onnxruntime and Python 3.9.

It is started as `python worker.py BACKEND [--prelude FILE] [--path FOLDER]...`, where BACKEND is `onnxruntime`,
`reference` (onnx.reference.ReferenceEvaluator), `directml` (the package `direct` beside this file, which takes a
program in the place of a model) or `python:module:function` (any callable (model, feeds) -> outputs).
A prelude is executed before anything is imported; it may put facts about the machine into `sys._epcheck_facts`.
With `--template SOCKET`, a file descriptor, it forks a worker for each request there once everything is imported.

Protocol 3, over stdin and stdout. A frame is

    b"EPC1" | header length, uint32 LE | body length, uint64 LE | header, JSON in UTF-8 | body

The body is raw little-endian tensor bytes, one after the other, as the header's `tensors` list them:
[[name, numpy dtype name, shape], ...]. No pickle anywhere. The real stdin and stdout are kept for
frames; file descriptor 0 is pointed at nothing and 1 at stderr, so what a library reads or prints cannot break them.

Requests                                            Answers
{"op": "hello"}                                     {"op": "hello", "protocol": 3, "facts": {str: str}}
{"op": "run", "id", "providers": [[name, options]], {"op": "done", "id", "stage", "error", "message", "assignment",
 "config": {str: str}, "device", "place",            "create_s", "run_s", "busy_s", "unwritten",
 "outputs": [name], "tensors": model first,          "repeat_differs", "tensors"}
 then the feeds}
{"op": "model", "id", "providers", "config",        {"op": "at", "id", "stage"} as each step begins,
 "device", "level", "threads", "path", "kept",       then {"op": "done", ...} as for run
 "outputs": [name], "all_outputs": [name],
 "sequences", "texts", "absent", "tensors"}
{"op": "exit"}                                      none; the process ends

`stage` is "done", or where it failed: "create" or "run"; `error` is then the exception's type. `assignment` is the
session's own record [[provider, operator, node], ...], null where the runtime keeps none. With `place` true, the
session may fall back to CPU and is not run: "placed" is its stage, its assignment the answer.
Each session runs twice: the outputs of the first run are the answer; the second writes into buffers that hold a loud
pattern. An output that keeps the pattern is listed in `unwritten`; any other difference in `repeat_differs`.

`model` runs a whole model: the file at `path`, whose external data the runtime maps itself; where that is null, the
bytes of the first tensor; with `kept` true, once more in the session of the request before, which is always kept.
`level` is the graph optimisation: "disabled", "basic", "extended" or "all"; `threads` as the runtime has it, 0 for its
own choice; `outputs` are the wanted ones, in any order, `all_outputs` the model's in its own. Steps are "create", "run"
and "repeat": they say where a worker was that ends. A sequence `s` travels as tensors `s[0]`, `s[1]`, ..., a map `m` as
`m.keys` and `m.values`, text as UTF-8 bytes padded with zeros on a last axis; feeds that are sequences are named in
`sequences` {name: length}, text is given in `texts` {name: [shape, [str]]}, optionals that are not there in `absent`.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import json
import os
import platform
import select
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

PROTOCOL = 3
MAGIC = b"EPC1"
PREFIX = struct.Struct("<4sIQ")
NATIVE_ORDER = {"<": True, "|": True, "=": sys.byteorder == "little", ">": False}
"""Whether a numpy byte order is the frames' own."""

MAX_HEADER = 1 << 24
"""Bytes. A larger header is no header."""

MAX_BODY = 1 << 32
"""Bytes. Checked before anything is allocated."""

CHUNK = 1 << 24
"""Bytes. A body is read in such pieces: a length that lies costs no memory."""

LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""Graph optimisation: a request's word -> the name in onnxruntime.GraphOptimizationLevel."""

MAX_MESSAGE = 4000
"""Characters of an exception's message that are sent."""

INSTRUCTIONS = ("fma", "avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8")
"""Flags of /proc/cpuinfo on which floating-point and quantised results depend."""

PATTERN = 0xDB
"""Every byte of an output buffer before the second run."""

COLLECT_AFTER = 50_000
"""New objects after which Python looks for cycles of garbage: requests and answers leave none."""

TOLD = struct.Struct("<BQq")
"""A message between a template and the runner: what, the number of a worker, a value."""

FORK, BORN, OVER = 1, 2, 3
"""What a message says: fork this worker, whose stdin, stdout and stderr come along; it has this process id; it ended
with this exit code."""


class NotAFrame(Exception):  # noqa: N818  (named for the fault)
    """The peer wrote something that is no frame; `rubbish` is what it wrote."""

    def __init__(self, rubbish: bytes) -> None:
        super().__init__(f"{len(rubbish)} bytes that are no frame: {rubbish[:80]!r}")
        self.rubbish = rubbish


def encode(header: dict[str, Any], tensors: dict[str, Any]) -> list[bytes]:
    """The chunks of one frame. tensors: name -> numpy array.

    Raises TypeError for an array of Python objects, text or records: its bytes mean nothing to the peer.
    """
    described, chunks = [], []
    for name, array in tensors.items():
        if array.dtype.hasobject or array.dtype.names or array.dtype.kind in "SUMm":
            raise TypeError(f"'{name}' has the dtype {array.dtype}, which is no tensor of numbers")
        described.append((name, dtype_name(array.dtype), array.shape))
        chunks.append(
            (array if NATIVE_ORDER[array.dtype.byteorder] else array.astype(array.dtype.newbyteorder("<"))).tobytes()
        )
    return frame(header, described, chunks)


def frame(header: dict[str, Any], described: list[Any], chunks: list[bytes]) -> list[bytes]:
    """The chunks of one frame whose body is there already. described: (name, numpy dtype name, shape) of each chunk."""
    head = json.dumps({**header, "tensors": described}, separators=(",", ":")).encode()
    return [PREFIX.pack(MAGIC, len(head), sum(map(len, chunks))), head, *chunks]


@functools.lru_cache(maxsize=None)
def dtype_name(dtype: Any) -> str:
    """`dtype.name`, which numpy works out anew each time."""
    return str(dtype.name)


@functools.lru_cache(maxsize=None)
def as_dtype(name: str) -> Any:
    """The numpy dtype of that name."""
    import numpy as np

    return np.dtype(str(name))


def spans(tensors: Any, size: int, start: int = 0) -> Iterator[tuple[str, str, list[int], int, int]]:
    """(name, dtype, shape, start, elements) for each of a header's `tensors` that begin at `start` of a body of `size`
    bytes; the starts are in bytes.

    Raises KeyError, TypeError or ValueError where the header does not describe the body.
    """
    for name, dtype_name, shape in tensors:
        itemsize, count = as_dtype(dtype_name).itemsize, 1
        for dim in shape:
            if not isinstance(dim, int) or dim < 0:
                raise ValueError(f"'{name}' has the shape {shape}")
            count *= dim
        if start + count * itemsize > size:
            raise ValueError(f"'{name}' is larger than the body")
        yield str(name), dtype_name, shape, start, count
        start += count * itemsize


def decode(header: Mapping[str, Any], body: bytes) -> Iterator[tuple[str, Any]]:
    """(name, numpy array) for every tensor of a frame; the arrays are views of the body. Raises as `spans`."""
    import numpy as np

    end = 0
    for name, dtype, shape, start, count in spans(header["tensors"], len(body)):
        array = np.frombuffer(body, as_dtype(dtype), count, start).reshape(shape)
        end = start + array.nbytes
        yield name, array
    if end != len(body):
        raise ValueError(f"{len(body) - end} bytes of the body belong to no tensor")


def read_frame(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """The next frame's header and body; None at the end of the stream. Raises NotAFrame."""
    prefix = stream.read(PREFIX.size)
    if not prefix:
        return None
    if len(prefix) < PREFIX.size or prefix[:4] != MAGIC:
        raise NotAFrame(prefix)
    _, header_length, body_length = PREFIX.unpack(prefix)
    if header_length > MAX_HEADER or body_length > MAX_BODY:
        raise NotAFrame(prefix)
    head, body = read_exactly(stream, header_length), read_exactly(stream, body_length)
    if head is None or body is None:
        return None
    try:
        header = json.loads(head)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise NotAFrame(head)
    return header, body


def read_exactly(stream: IO[bytes], length: int) -> bytes | None:
    """So many bytes; None when the stream ends before."""
    pieces = []
    while length > 0:
        piece = stream.read(min(length, CHUNK))
        if not piece:
            return None
        pieces.append(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def write_frame(stream: IO[bytes], chunks: list[bytes]) -> None:
    """Write one encoded frame and flush."""
    stream.write(b"".join(chunks))
    stream.flush()


class OnnxRuntime:
    """Sessions on one provider."""

    def __init__(self) -> None:
        import onnxruntime

        self.ort = onnxruntime
        self.can_record = hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info")
        self.kept: Any = None
        self.placed: Any = None
        onnxruntime.set_default_logger_severity(4)

    def facts(self) -> dict[str, str]:
        """Versions of the runtime and of DirectML, and the providers it offers."""
        found = {
            "onnxruntime": self.ort.__version__,
            "onnxruntime_build": self.ort.get_build_info(),
            "providers": ", ".join(self.ort.get_available_providers()),
            "assignment": "recorded" if self.can_record else "profiled",
        }
        directml = Path(self.ort.__file__).parent / "capi" / "DirectML.dll"
        if directml.exists():
            found["DirectML.dll"] = file_version(directml)
        return found

    def run(
        self, request: dict[str, Any], model: bytes, feeds: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Create the session, run it twice; the answer's header and the outputs."""
        answer: dict[str, Any] = {"stage": "create", "assignment": None, "unwritten": [], "repeat_differs": []}
        started = time.perf_counter()
        try:
            session = self.session(request, model)
            answer["create_s"] = time.perf_counter() - started
            if request.get("place"):
                return {**answer, "stage": "placed", "assignment": self.assignment(session, recorded=True)}, {}
            answer["stage"] = "run"
            names = [output.name for output in session.get_outputs()]
            started = time.perf_counter()
            values = session.run(names, feeds)
            answer["run_s"] = time.perf_counter() - started
            outputs = dict(zip(names, values))
            answer["assignment"] = self.assignment(session, self.keeps_record(request))
            self.run_dirtied(session, request, feeds, outputs, answer)
        except Exception as error:
            return {**answer, **failure(error)}, {}
        return {**answer, "stage": "done"}, outputs

    def model(
        self, request: dict[str, Any], model: bytes, feeds: dict[str, Any], tell: Callable[[str], None]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run a whole model twice in one session, which is kept; the answer's header and the wanted outputs."""
        answer: dict[str, Any] = {"stage": "create", "assignment": None, "unwritten": [], "repeat_differs": []}
        try:
            if not request["kept"]:
                self.kept = self.placed = (
                    None  # the memory of the last session is free before the next one takes its own
                )
                tell("create")
                started = time.perf_counter()
                self.kept = self.session(request, request["path"] or model)
                answer["create_s"] = time.perf_counter() - started
            answer["stage"] = "run"
            tell("run")
            started = time.perf_counter()
            values = self.kept.run(request["outputs"], feeds)
            answer["run_s"] = time.perf_counter() - started
            if self.placed is None:
                self.placed = self.assignment(self.kept, self.keeps_record(request))
            answer["assignment"] = self.placed
            outputs = dict(zip(request["outputs"], values))
            tell("repeat")
            if can_be_bound(request, feeds, outputs):
                self.run_dirtied(self.kept, request, feeds, outputs, answer)
            else:
                again = dict(zip(request["outputs"], self.kept.run(request["outputs"], feeds)))
                answer["repeat_differs"] = differing(outputs, again)
        except Exception as error:
            return {**answer, **failure(error)}, {}
        return {**answer, "stage": "done"}, flattened(outputs)

    def session(self, request: dict[str, Any], model: bytes | str) -> Any:
        """A single-threaded session without graph optimisation, so that the node under test is the node that runs;
        a request for a whole model says otherwise."""
        options = self.ort.SessionOptions()
        level = LEVELS[request.get("level", "disabled")]
        options.graph_optimization_level = getattr(self.ort.GraphOptimizationLevel, level)
        options.intra_op_num_threads = options.inter_op_num_threads = request.get("threads", 1)
        options.enable_mem_pattern = False
        options.enable_cpu_mem_arena = False
        for key, value in request["config"].items():
            if request.get("place") and key == "session.disable_cpu_ep_fallback":
                continue
            options.add_session_config_entry(key, value)
        if not self.keeps_record(request):
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(tempfile.gettempdir()) / f"epcheck-{os.getpid()}")
        providers = [(name, dict(provider_options)) for name, provider_options in request["providers"]]
        return self.ort.InferenceSession(model, options, providers=providers, enable_fallback=0)

    def keeps_record(self, request: dict[str, Any]) -> bool:
        """Whether the session records assignments: newer releases do, when they are asked to."""
        return self.can_record and request["config"].get("session.record_ep_graph_assignment_info") == "1"

    def assignment(self, session: Any, recorded: bool) -> list[list[str]]:
        """[[provider, operator, node], ...] from the session's own record, or its profile where it keeps none."""
        if recorded:
            return [
                [subgraph.ep_name, node.op_type, node.name]
                for subgraph in session.get_provider_graph_assignment_info()
                for node in subgraph.get_nodes()
            ]
        profile = Path(session.end_profiling())
        events = json.loads(profile.read_text(encoding="utf-8"))
        profile.unlink()
        kernels = [event for event in events if event.get("name", "").endswith("_kernel_time")]
        return [
            [event["args"].get("provider", ""), event["args"].get("op_name", ""), event["name"][: -len("_kernel_time")]]
            for event in kernels
        ]

    def run_dirtied(
        self,
        session: Any,
        request: dict[str, Any],
        feeds: dict[str, Any],
        outputs: dict[str, Any],
        answer: dict[str, Any],
    ) -> None:
        """Run again into buffers full of PATTERN on the provider's own device and compare, byte by byte."""
        import numpy as np

        if not can_be_bound(request, feeds, outputs):
            return
        binding = session.io_binding()
        for name, value in feeds.items():
            binding.bind_cpu_input(name, value)
        buffers = {}
        for name, value in outputs.items():
            if value.size == 0:
                binding.bind_output(name, "cpu")
                continue
            dirty = np.full(value.nbytes, PATTERN, np.uint8).view(value.dtype).reshape(value.shape)
            buffers[name] = self.ort.OrtValue.ortvalue_from_numpy(dirty, request["device"], 0)
            binding.bind_ortvalue_output(name, buffers[name])
        session.run_with_iobinding(binding)
        for name, buffer in buffers.items():
            again, first = buffer.numpy().tobytes(), outputs[name].tobytes()
            if again != first:
                second = np.frombuffer(again, np.uint8)
                untouched = (second[second != np.frombuffer(first, np.uint8)] == PATTERN).all()
                answer["unwritten" if untouched else "repeat_differs"].append(name)


def can_be_bound(request: dict[str, Any], feeds: dict[str, Any], outputs: dict[str, Any]) -> bool:
    """Whether the outputs can be written into buffers of ours: tensors of numbers, on a device that has buffers."""
    import numpy as np

    values = [*feeds.values(), *outputs.values()]
    return request["device"] is not None and all(
        isinstance(v, np.ndarray) and v.dtype.kind not in "OSU" for v in values
    )


def flattened(values: dict[str, Any]) -> dict[str, Any]:
    """Every tensor in what a session gives: those of a sequence `s` as `s[0]`, ..., of a map `m` as `m.keys` and
    `m.values`, text as bytes; an optional that is empty has none."""
    import numpy as np

    found: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
            continue
        if isinstance(value, list):
            found.update(flattened({f"{name}[{index}]": each for index, each in enumerate(value)}))
            continue
        if isinstance(value, dict):
            parts = {f"{name}.keys": np.array(list(value)), f"{name}.values": np.array(list(value.values()))}
            found.update(flattened(parts))
            continue
        array = np.asarray(value)
        found[name] = as_bytes(array) if array.dtype.kind in "OSU" else array
    return found


def as_bytes(text: Any) -> Any:
    """An array of text as uint8 of one more axis: UTF-8, padded with zeros."""
    import numpy as np

    encoded = np.char.encode(text.astype(str), "utf-8")
    width = max(encoded.dtype.itemsize, 1)
    return np.ascontiguousarray(encoded).astype(f"S{width}").reshape(*text.shape, 1).view(np.uint8)


def fed(request: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """The feeds of a whole model: tensors, sequences and text."""
    import numpy as np

    texts = {name: np.array(values, dtype=object).reshape(shape) for name, (shape, values) in request["texts"].items()}
    sequences = {
        name: [tensors.pop(f"{name}[{index}]") for index in range(length)]
        for name, length in request["sequences"].items()
    }
    return {**tensors, **sequences, **texts, **dict.fromkeys(request["absent"])}


def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Names of what is not the same to the last bit in both."""
    one, other = flattened(first), flattened(second)
    return [
        name
        for name in sorted({*one, *other})
        if name not in one
        or name not in other
        or (one[name].shape, one[name].tobytes()) != (other[name].shape, other[name].tobytes())
    ]


class Function:
    """A callable (model_bytes, feeds) -> outputs: a mapping by name, or a sequence in the model's order."""

    def __init__(self, specification: str) -> None:
        module, _, function = specification.partition(":")
        self.call: Callable[[bytes, dict[str, Any]], Any] = getattr(importlib.import_module(module), function)
        self.specification = specification
        self.kept = b""

    def facts(self) -> dict[str, str]:
        return {"function": self.specification}

    def run(
        self, request: dict[str, Any], model: bytes, feeds: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        import numpy as np

        started = time.perf_counter()
        try:
            result = self.named(model, feeds, request["outputs"])
            outputs = {name: np.asarray(value) for name, value in result.items()}
        except Exception as error:
            return {"stage": "run", **failure(error)}, {}
        return {"stage": "done", "create_s": 0.0, "run_s": time.perf_counter() - started}, outputs

    def model(
        self, request: dict[str, Any], model: bytes, feeds: dict[str, Any], tell: Callable[[str], None]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Call it twice with a whole model; the answer's header and the wanted outputs."""
        if not request["kept"]:
            self.kept = Path(request["path"]).read_bytes() if request["path"] else model
        answer: dict[str, Any] = {"stage": "run", "create_s": 0.0}
        tell("run")
        try:
            started = time.perf_counter()
            outputs = self.named(self.kept, feeds, request["all_outputs"])
            answer["run_s"] = time.perf_counter() - started
            tell("repeat")
            differs = differing(outputs, self.named(self.kept, feeds, request["all_outputs"]))
            missing = [name for name in request["outputs"] if name not in outputs]
            if missing:
                raise ValueError(f"it gave no output '{missing[0]}'")
            wanted = {name: outputs[name] for name in request["outputs"]}
        except Exception as error:
            return {**answer, **failure(error)}, {}
        return {**answer, "stage": "done", "repeat_differs": differs}, flattened(wanted)

    def named(self, model: bytes, feeds: dict[str, Any], names: list[str]) -> dict[str, Any]:
        """Its outputs by name."""
        result = self.call(model, feeds)
        return result if isinstance(result, dict) else dict(zip(names, result))


class Reference(Function):
    """onnx.reference.ReferenceEvaluator."""

    def __init__(self) -> None:
        import warnings

        import onnx
        from onnx.reference import ReferenceEvaluator

        warnings.simplefilter("ignore")
        self.version = onnx.__version__
        self.kept = b""
        self.call = lambda model, feeds: ReferenceEvaluator(onnx.load_from_string(model)).run(None, feeds)

    def facts(self) -> dict[str, str]:
        return {"onnx": self.version}


def direct() -> Any:
    """The backend of the package `direct`, which stands beside this file and alone like it."""
    import importlib.util

    folder = Path(__file__).resolve().parent / "direct"
    spec = importlib.util.spec_from_file_location(
        "epcheck_direct", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    return package.Backend()


def failure(error: BaseException) -> dict[str, str]:
    """An exception as an answer has it."""
    message = str(error)
    cut = f" ... ({len(message)} characters)" if len(message) > MAX_MESSAGE else ""
    return {"error": type(error).__name__, "message": message[:MAX_MESSAGE] + cut}


def file_version(path: Path) -> str:
    """The version resource of a Windows DLL, as 1.2.3.4; an empty string when it has none."""
    content = path.read_bytes()
    at = content.find(b"\xbd\x04\xef\xfe")  # VS_FIXEDFILEINFO.dwSignature
    if at < 0:
        return ""
    high, low = struct.unpack_from("<II", content, at + 8)
    return f"{high >> 16}.{high & 0xFFFF}.{low >> 16}.{low & 0xFFFF}"


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name and those of its INSTRUCTIONS where Linux tells them: kernels are chosen by these."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    found = [name for name in INSTRUCTIONS if name in told.get("flags", "").split()]
    return ", ".join([told.get("model name") or platform.processor(), *found])


def serve(requests: IO[bytes], answers: IO[bytes], backend: Any, facts: dict[str, str]) -> None:
    """Answer requests until the stream ends or `exit` comes."""
    while (frame := read_frame(requests)) is not None:
        header, body = frame
        if header["op"] == "exit":
            return
        if header["op"] == "hello":
            write_frame(answers, encode({"op": "hello", "protocol": PROTOCOL, "facts": facts}, {}))
            continue
        started = time.perf_counter()
        tensors = decode(header, body)
        if header["op"] == "model":
            model = b"" if header["kept"] or header["path"] else next(tensors)[1].tobytes()

            def tell(stage: str, asked: str = header["id"]) -> None:
                write_frame(answers, encode({"op": "at", "id": asked, "stage": stage}, {}))

            answer, outputs = backend.model(header, model, fed(header, dict(tensors)), tell)
        else:
            model = next(tensors)[1].tobytes()
            answer, outputs = backend.run(header, model, dict(tensors))
        done = {"op": "done", "id": header["id"], "busy_s": time.perf_counter() - started, **answer}
        try:
            chunks = encode(done, outputs)
        except (AttributeError, TypeError) as error:  # an output that is no tensor
            chunks = encode({**done, "stage": "run", **failure(error)}, {})
        write_frame(answers, chunks)


class Watch:
    """Ends the process with its parent: a runner that was killed cannot end a worker that hangs, and a worker that
    hangs does not see its input end. Does nothing on Windows, where a process keeps the id of its parent for ever."""

    def __init__(self) -> None:
        self._over = threading.Event()
        if sys.platform != "win32":  # where Wine cannot tell the parent, either
            self._parent = os.getppid()
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the watch: a process that has threads must not fork."""
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while os.getppid() == self._parent:
            if self._over.wait(1):
                return
        os._exit(1)


def take_streams() -> tuple[IO[bytes], IO[bytes]]:
    """stdin and stdout, for frames alone: what a library reads or prints from now on cannot break them."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(answers.fileno(), os.O_BINARY)
        msvcrt.setmode(requests.fileno(), os.O_BINARY)
    return requests, answers


def fork_workers(control: Any) -> bool:
    """Fork a worker for each request on the socket. True in a worker, False when the requests have ended.

    Where something that was imported runs threads, which a fork loses, the process becomes its first worker itself.
    """
    alone = threading.active_count() == 1
    wake, awake = os.pipe()
    os.set_blocking(awake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(awake, warn_on_full_buffer=False)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 2)  # its first worker alone has that stderr
    workers: dict[int, int] = {}
    gc.freeze()
    while True:
        ready, _, _ = select.select([control, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            tell_of_the_dead(control, workers)
        if control not in ready:
            continue
        message, streams, _, _ = socket.recv_fds(control, TOLD.size, 3)
        if len(message) < TOLD.size or len(streams) < 3:
            return False
        _, number, _ = TOLD.unpack(message)
        pid = os.fork() if alone else 0
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if alone:
                os.setsid()
            else:
                control.sendall(TOLD.pack(BORN, number, os.getpid()))
            control.close()
            for place, stream in enumerate(streams):
                os.dup2(stream, place)
            for descriptor in (wake, awake, nothing, *streams):
                os.close(descriptor)
            return True
        workers[pid] = number
        control.sendall(TOLD.pack(BORN, number, pid))
        for stream in streams:
            os.close(stream)


def tell_of_the_dead(control: Any, workers: dict[int, int]) -> None:
    """Tell the runner which workers have ended, and how."""
    for pid in list(workers):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            control.sendall(TOLD.pack(OVER, workers.pop(pid), code))


def main(arguments: list[str]) -> None:
    """The process: keep stdin and stdout for frames, execute the prelude, make the backend, serve or fork who does."""
    parser = argparse.ArgumentParser()
    parser.add_argument("backend")
    parser.add_argument("--prelude")
    parser.add_argument("--path", action="append", default=[])
    parser.add_argument("--template", type=int)
    options = parser.parse_args(arguments)
    watch = Watch()
    is_template = options.template is not None
    streams = None if is_template else take_streams()
    beside = Path(__file__).parent.resolve()  # epcheck's own modules must not be found instead of others of their names
    sys.path[:] = [*options.path, *(entry for entry in sys.path if Path(entry).resolve() != beside)]
    if not options.backend.startswith("python:"):
        # The threads of numpy's BLAS have nothing to do here, and spin.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if options.prelude:
        import runpy

        runpy.run_path(options.prelude, run_name="epcheck_prelude")
    kind, _, specification = options.backend.partition(":")
    known: dict[str, Callable[[], Any]] = {"onnxruntime": OnnxRuntime, "reference": Reference, "directml": direct}
    backend = known.get(kind, lambda: Function(specification))()
    facts = {
        "python": platform.python_version(),
        "interpreter": sys.executable,
        "os": platform.platform(),
        "machine": platform.machine(),
        "processor": processor(),
        "numpy": importlib.import_module("numpy").__version__,
        **backend.facts(),
        **getattr(sys, "_epcheck_facts", {}),
    }
    if is_template:
        watch.stop()
        if not fork_workers(socket.socket(fileno=options.template)):
            return
        Watch()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    serve(*(streams or take_streams()), backend, facts)


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stderr.flush()
    os._exit(0)  # taking down interpreter and providers takes longer than a hundred sessions, and no case asks for it
