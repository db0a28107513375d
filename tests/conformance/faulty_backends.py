"""Backends that misbehave, each as the target `python:faulty_backends:NAME`. The process of the worker is theirs.

`faulty` takes the first element of its input `x` as the number of a fault in FAULTS; a negative number is no fault, and
the answer is then right: y = x.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]


_lost: list[str] = []


def faulty(_model: bytes, feeds: Feeds) -> Any:
    number = int(feeds["x"][0])
    if _lost:
        raise RuntimeError(_lost[0])
    return FAULTS[list(FAULTS)[number]](feeds["x"]) if number >= 0 else {"y": feeds["x"]}


def right(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    return {"y": feeds["x"]}


def opens_a_socket(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    with socket.socket(socket.AF_INET):
        return {"y": feeds["x"]}


def leaves_processes(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    """In a session of its own and without a parent; its last argument is told by the environment."""
    command = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)", os.environ["NAME_OF_A_TEST"]]
    for _ in range(2):
        subprocess.run(["sh", "-c", 'setsid "$@" </dev/null >/dev/null 2>&1 &', "sh", *command], check=True)
    return {"y": feeds["x"]}


def writes_a_file(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    Path(os.environ["FILE_OF_A_TEST"]).write_text("x")
    return {"y": feeds["x"]}


def always_wrong(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    return {"y": feeds["x"] + 1}


def never_the_same(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    changing = time.perf_counter_ns() % 10**6 + 1  # other clocks of Windows tick in milliseconds
    return {"y": feeds["x"] + np.float32(changing)}


_ran: list[int] = []


def wrong_after_case_2(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    """The state that one case leaves behind spoils case 5."""
    number = int(feeds["x"][1])
    spoilt = number == 5 and 2 in _ran
    _ran.append(number)
    return {"y": feeds["x"] + spoilt}


def fails_from_case_0(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    """Every call fails after that of case 0."""
    if int(feeds["x"][1]) == 0:
        _lost.append("no slot is free")
    if _lost:
        raise RuntimeError(_lost[0])
    return {"y": feeds["x"]}


def slow(_model: bytes, feeds: Feeds) -> dict[str, Array]:
    time.sleep(0.05)
    return {"y": feeds["x"]}


def hangs_always(_model: bytes, _feeds: Feeds) -> None:
    time.sleep(600)


def aborts_always(_model: bytes, _feeds: Feeds) -> None:
    os.abort()


def frames_pipe() -> int:
    """The descriptor of the worker's real stdout: the only pipe beside the standard streams that can be written."""
    import fcntl
    import stat

    for descriptor in range(3, 64):
        try:
            mode, flags = os.fstat(descriptor).st_mode, fcntl.fcntl(descriptor, fcntl.F_GETFL)
        except OSError:
            continue
        if stat.S_ISFIFO(mode) and flags & os.O_ACCMODE == os.O_WRONLY:
            return descriptor
    raise AssertionError("no pipe")


def write_frames(data: bytes) -> None:
    os.write(frames_pipe(), data)


def prefix(header: int, body: int) -> bytes:
    return b"EPC1" + header.to_bytes(4, "little") + body.to_bytes(8, "little")


def frame(header: str, body: bytes = b"") -> bytes:
    return prefix(len(header.encode()), len(body)) + header.encode() + body


def segfault(_x: Array) -> None:
    ctypes.string_at(0)


def hang(_x: Array) -> None:
    while True:
        time.sleep(60)


def hang_with_a_child(_x: Array) -> None:
    if os.fork() == 0:
        time.sleep(600)
    hang(_x)


def abort_with_a_child_that_holds_the_pipes(_x: Array) -> None:
    if os.fork() == 0:
        time.sleep(600)
    os.abort()


def eat_memory(_x: Array) -> None:
    eaten = []
    for _ in range(80):
        eaten.append(np.ones(25_000_000, np.uint8))
        time.sleep(0.01)
    hang(_x)


def close_stdout(_x: Array) -> None:
    os.close(frames_pipe())
    hang(_x)


def half_a_frame_then_exit(_x: Array) -> None:
    write_frames(prefix(100, 1000) + b'{"op": "done"')
    os._exit(0)


def system_exit(_x: Array) -> None:
    sys.exit(3)


def stderr_of_no_encoding_then_abort(_x: Array) -> None:
    os.write(2, b"driver \xff\xfe lost the device\n")
    os.abort()


def stderr_without_a_newline_then_abort(_x: Array) -> None:
    os.write(2, b"x" * 500_000)
    os.abort()


def answer(text: str) -> Callable[[Array], None]:
    def write(x: Array) -> None:
        write_frames(frame(text))
        hang(x)

    return write


def bytes_on_the_pipe(data: bytes) -> Callable[[Array], None]:
    def write(x: Array) -> None:
        write_frames(data)
        hang(x)

    return write


def raising(error: Exception) -> Callable[[Array], None]:
    def fail(_x: Array) -> None:
        raise error

    return fail


def printing(x: Array) -> dict[str, Array]:
    print("a library that talks", flush=True)
    os.write(1, b"EPC1 and a native one \x00\xff\n")
    os.system("echo and a program that it starts")
    return {"y": x}


def reading_stdin(x: Array) -> dict[str, Array]:
    assert sys.stdin.buffer.read() == b""
    assert os.read(0, 100) == b""
    return {"y": x}


def lose_the_device(_x: Array) -> None:
    """As DirectML does: this session fails, and so does whatever comes after it in the process."""
    _lost.append("Non-zero status code returned: 887A0005 The GPU device instance has been suspended.")
    raise RuntimeError(_lost[0])


FAULTS: dict[str, Callable[[Array], Any]] = {
    "abort": lambda _x: os.abort(),
    "segfault": segfault,
    "exit": lambda _x: os._exit(7),
    "system_exit": system_exit,
    "hang": hang,
    "hang_with_a_child": hang_with_a_child,
    "abort_with_a_child": abort_with_a_child_that_holds_the_pipes,
    "eat_memory": eat_memory,
    "close_stdout": close_stdout,
    "half_a_frame": half_a_frame_then_exit,
    "rubbish": bytes_on_the_pipe(b"Segmentation fault (core dumped)\n"),
    "huge_header": bytes_on_the_pipe(prefix(0xFFFFFFFF, 0)),
    "huge_body": bytes_on_the_pipe(prefix(2, 1 << 60)),
    "header_no_json": bytes_on_the_pipe(frame("{" * 50)),
    "header_deeply_nested": bytes_on_the_pipe(frame("[" * 200_000)),
    "header_no_object": bytes_on_the_pipe(frame("[1, 2]")),
    "wrong_id": answer('{"op": "done", "id": "another case", "stage": "done", "tensors": []}'),
    "no_id": answer('{"op": "done"}'),
    "second_handshake": answer('{"op": "hello", "protocol": 3, "facts": {"a": "b"}}'),
    "lose_the_device": lose_the_device,
    "stderr_of_no_encoding": stderr_of_no_encoding_then_abort,
    "stderr_without_a_newline": stderr_without_a_newline_then_abort,
    "raise": raising(ValueError("bad [red]node[/red] \x00<script>")),
    "raise_without_words": raising(MemoryError()),
    "raise_a_book": raising(RuntimeError("word " * 4_000_000)),
    "raise_a_surrogate": raising(RuntimeError("lone \udc80 half")),
    "return_none": lambda _x: None,
    "return_nothing": lambda _x: {},
    "return_too_few": lambda _x: [],
    "return_text": lambda _x: {"y": np.array(["a"])},
    "return_objects": lambda _x: {"y": np.array([{}, None])},
    "return_ragged": lambda _x: {"y": [[1, 2], [3]]},
    "return_a_date": lambda _x: {"y": np.array(["2025-01-01"], "datetime64[D]")},
    "return_wider": lambda x: {"y": x.astype(np.float64)},
    "return_reshaped": lambda x: {"y": x.reshape(1, -1)},
    "return_big_endian": lambda x: {"y": x.astype(">f4")},
    "return_strided": lambda x: {"y": np.repeat(x, 2)[::2]},
    "return_more_than_asked": lambda x: {"y": x, "z": x},
    "return_a_sequence": lambda x: (x,),
    "print": printing,
    "read_stdin": reading_stdin,
}
