"""The frames between a worker and its client, protocol 3, over stdin and stdout. Both sides import this module.

A frame is

    b"EPC1" | header length, uint32 LE | body length, uint64 LE | header, JSON in UTF-8 | body

The body is raw little-endian tensor bytes, one after the other, as the header's `tensors` list them:
[[name, numpy dtype name, shape], ...]. No pickle anywhere. The real stdin and stdout are kept for
frames; file descriptor 0 is pointed at nothing and 1 at stderr, so what a library reads or prints cannot break them.

Requests                                            Answers
{"op": "hello", "canary", "facts",                  {"op": "hello", "protocol": 3, "pid": int,
 "providers": [[name, options]]}                     "facts": {str: str}, "trouble": str}
{"op": "run", "id", "providers": [[name, options]], {"op": "done", "id", "stage", "error", "message", "assignment",
 "config": {str: str}, "device", "place", "bodies",  "create_s", "run_s", "busy_s", "cpu_s",
 "outputs": [name], "tensors": model first,          "unwritten", "repeat_differs", "tensors"}
 then the feeds}
{"op": "model", "id", "providers", "config",        {"op": "at", "id", "stage"} as each step begins,
 "device", "level", "threads", "path", "kept",       then {"op": "done", ...} as for run
 "less_memory": bool, "once": bool,
 "shared": {name: name}, "outputs": [name],
 "all_outputs": [name], "sequences", "texts",
 "absent", "tensors"}
{"op": "speed", "id", "providers", "config",        {"op": "done", "id", "stage", "error", "message", "assignment",
 "device", "level", "threads", "kept": bool,         "create_s", "run_s", "busy_s", "cpu_s", "tensors",
 "known": bool, "runs": int, "seconds": float,       "timing": {"runs_ns": [int], "copied_ns": [int]}}
 "outputs": [name], "wanted": bool,
 "shapes": {name: [size]},
 "tensors": model first, then the feeds}
{"op": "registry", "id", "provider": str,           {"op": "done", "id", "stage", "error", "message",
 "kernels": bool}                                    "schemas", "kernels", "library", "words", "beginnings"}
{"op": "contract", "id", "part": str, "providers",   {"op": "done", "id", "stage", "error", "message", ...}
 "config", "device"}
{"op": "exit"}                                      none; the process ends

`canary` is null or has `providers`, `config` and `device` as a `run` does: one session is tried, and `trouble` says in
one sentence why the provider cannot be used; it is empty where it can. Where `facts` is false, the answer's are empty.
They are about the adapter that `providers` use. `pid` is the worker's process id, in the namespace that it is in.
`stage` is "done", or where it failed: "feed" (numpy has no such dtype; nothing ran), "create" or
"run"; `error` is then the exception's type. `assignment` is the
session's own record [[provider, operator, node], ...], null where the runtime keeps none. With `place` true, the
session may fall back to CPU and is not run: "placed" is its stage, its assignment the answer. With `bodies` true, the
assignment also has the kernels of other providers that the profile of the first run names: the record lacks some of
those that run in graphs which are attributes.
Each session runs twice: the outputs of the first run are the answer; the second writes into buffers that hold a loud
pattern. An output that keeps the pattern is listed in `unwritten`; any other difference in `repeat_differs`. A callable
has no sessions: `run` calls it once, and twice where `repeat` is true. Where its facts have "external data", `model`
gets no data of other files: their folder is in `config`, as a session has it. `model` runs twice, and once where
`once` is true.

`run` also has `level`, as below, and `way`, where the session is run in another way, and once: "bound" binds inputs and
outputs in the memory of the provider's device; "context" compiles the model to an EPContext model and loads that, as
`context` says: from its "file" or its "bytes", or after it was "moved" or made "read_only", "stale" or "damaged"; to
"compile" gives the EPContext model as the tensor CONTEXT, and "from" loads that of another worker; "weights" has the
initializers' data, the tensor WEIGHTS, from a file beside the model or, as `weights` says, from one in "memory"; "use"
runs sessions as the `use` of `backends/uses.py` does, of the model and of those in the tensors OTHER and a number;
they share the tensors INITIALIZER and the name of an initializer. Its `extent` has what of the use's own is changed.
`threads`, `arena`, `parallel` and `deterministic` are options.

`speed` times a block of `runs` runs: in a new session, of which `create_s` and `run_s` tell the creation and the first
run; with `kept` true, in the session of the request before. With `known` true the model and the feeds are those of the
last one. Where `runs` is 0, as many are timed as fit into `seconds`. `outputs` are those of the model, which come back
where `wanted` is true, of large ones every n-th element. `shapes` has those of feeds whose elements are repeated. Where
the provider's device has buffers that can be bound, inputs and outputs stay there, and a new session has in `copied_ns`
the times of runs with copies. Where the device has a memory of its own and no such buffers, `runs_ns` is empty.

`registry` asks for what the build of the runtime has: its `schemas` [[domain, operator]]; where `kernels` is true the
provider's `kernels` [[domain, operator, first version, last version, {type constraint: [type]}]], a call that ends the
process of some builds; otherwise the name of the provider's own `library`, the C strings in it as `words`, and the
`beginnings` of strings that stand in instructions.

`contract` asks how the provider behaves in a process. Its `part` "describe" gives `devices` (get_ep_devices),
`libraries` (name, size and SHA-256 of the files it runs on), and of one session why it failed (`session`), what it
wrote to stdout (`stdout`, `stdout_bytes`), the `files` and the number of `sockets` that it leaves. "registration" uses,
unregisters, registers and uses the library of a plugin: `offered` are its devices before, between and after, `same`
whether both answers were. "version" gives the `api_version` that the library asks for first, and ends the process.
The stage is "none" where there is no such library.

`model` runs a whole model: the file at `path`, whose external data the runtime maps itself; where that is null, the
bytes of the first tensor; with `kept` true, once more in the session of the request before, which is always kept.
`level` is the graph optimisation: "disabled", "basic", "extended" or "all"; `threads` as the runtime has it, 0 for its
own choice; `outputs` are the wanted ones, in any order, `all_outputs` the model's in its own. Where `seconds` is a
number and not null, the session, a new one, is then run for so long, and `timing` is {"runs_s": [seconds of each run],
"nodes": [[name, operator, provider, seconds in a run]]}. Steps are "create", "run", "repeat" and "timing": they say
where a worker was that ends. With `less_memory` true and without timing, a session on CPU keeps no float32 copies of
float16 weights. A sequence `s` travels as tensors `s[0]`, `s[1]`, ..., a map `m` as
`m.keys` and `m.values`, text as UTF-8 bytes padded with zeros on a last axis; feeds that are sequences are named in
`sequences` {name: length}, text is given in `texts` {name: [shape, [str]]}, optionals that are not there in `absent`.
`shared` {input: output} names outputs that are written into the buffers of inputs, bound on the provider's device.
"""

from __future__ import annotations

import functools
import json
import math
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import IO, Any

WEIGHTS, WEIGHTS_FILE = "\0weights", "weights.bin"
"""The tensor of a request that has the data of the initializers, and the file where the model says that it is."""

OTHER, OTHER_FILE = "\0other ", "other{}.onnx"
"""What the tensors of a request begin with that are the other models of a use, and the files of a reproduction."""

INITIALIZER, INITIALIZERS_FILE = "\0initializer ", "initializers.npz"
"""What the tensors of a request begin with that sessions share as initializers, and the file of a reproduction."""

CONTEXT, CONTEXT_FILE, CONTEXT_BYTES = "\0context", "compiled.onnx", 1 << 28
"""The tensor that is an EPContext model, the file of a reproduction, and how large either may be."""

LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""Graph optimisation: the `level` of a request -> its name in onnxruntime.GraphOptimizationLevel. Each does what
the one before it does, and more."""

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

_TO_JSON = json.JSONEncoder(separators=(",", ":")).encode
"""`json.dumps` makes an encoder for each call."""


class NotAFrame(Exception):  # noqa: N818  (named for the fault)
    """The peer wrote something that is no frame; `received` holds the bytes."""

    def __init__(self, received: bytes) -> None:
        super().__init__(f"{len(received)} bytes that are no frame: {received[:80]!r}")
        self.received = received


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
    """The chunks of one frame whose body exists already. described: (name, numpy dtype name, shape) of each chunk."""
    head = _TO_JSON({**header, "tensors": described}).encode()
    return [PREFIX.pack(MAGIC, len(head), sum(map(len, chunks))), head, *chunks]


@functools.lru_cache(maxsize=None)
def dtype_name(dtype: Any) -> str:
    """`dtype.name`, which numpy works out anew each time."""
    return str(dtype.name)


@functools.lru_cache(maxsize=None)
def as_dtype(name: str) -> Any:
    """The numpy dtype of that name, which is one of numbers. Raises TypeError for any other, and for codes as `f4`."""
    import numpy as np

    found = np.dtype(str(name)) if len(name) > 3 and name.isidentifier() else None
    if found is None or found.hasobject or found.kind in "SUMm" or not found.itemsize:
        raise TypeError(f"{name[:80]!r} is no type of numbers")
    return found


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
        yield _encodable(str(name)), dtype_name, shape, start, count
        start += count * itemsize


def _encodable(name: str) -> str:
    """The name, with halves of surrogate pairs written out: whatever is kept of it later is UTF-8."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode("utf-8")


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


ALIGNMENT = 64
"""Bytes. ONNX Runtime's own allocator gives such addresses."""


def align_all(
    tensors: Iterable[tuple[str, Any]], shapes: Mapping[str, list[int]] = MappingProxyType({})
) -> dict[str, Any]:
    """The arrays by name, each at an address that is a multiple of ALIGNMENT: kernels sum up to such an address one by
    one, so that what came before a tensor in its frame would decide how its sum is rounded. shapes: of arrays whose
    elements are repeated."""
    import numpy as np

    found: dict[str, Any] = {}
    for name, array in tensors:
        if name in shapes or array.ctypes.data % ALIGNMENT:
            shape = shapes.get(name, array.shape)
            size = math.prod(shape)
            buffer = np.empty(size * array.itemsize + ALIGNMENT, np.uint8)
            start = -buffer.ctypes.data % ALIGNMENT
            copy = buffer[start : start + size * array.itemsize].view(array.dtype)
            for place in range(0, size, max(array.size, 1)):
                copy[place : place + array.size] = array.reshape(-1)[: size - place]
            array = copy.reshape(shape)
        found[name] = array
    return found


def read_frame(stream: IO[bytes], most_body: int = MAX_BODY) -> tuple[dict[str, Any], bytes] | None:
    """The next frame's header and body; None at the end of the stream. most_body: bytes of the body at most. Raises
    NotAFrame."""
    prefix = stream.read(PREFIX.size)
    if not prefix:
        return None
    if len(prefix) < PREFIX.size or prefix[:4] != MAGIC:
        raise NotAFrame(prefix)
    _, header_length, body_length = PREFIX.unpack(prefix)
    if header_length > MAX_HEADER or body_length > most_body:
        raise NotAFrame(prefix)
    head, body = _read_exactly(stream, header_length), _read_exactly(stream, body_length)
    if head is None or body is None:
        return None
    try:
        header = json.loads(head)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise NotAFrame(head)
    return header, body


def _read_exactly(stream: IO[bytes], length: int) -> bytes | None:
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
