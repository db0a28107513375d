"""Requests in, answers out, one after the other."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from .failure import failure
from .protocol import PROTOCOL, align_all, decode, encode, read_frame, write_frame


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
        import signal

        signal.signal(signal.SIGBREAK, signal.SIG_IGN)  # a console sends it to all; the runner ends its workers
        msvcrt.setmode(answers.fileno(), os.O_BINARY)
        msvcrt.setmode(requests.fileno(), os.O_BINARY)
    return requests, answers


def serve(
    requests: IO[bytes],
    answers: IO[bytes],
    backend: Any,
    facts: Callable[[Sequence[tuple[str, Mapping[str, str]]]], Mapping[str, str]],
) -> None:
    """Answer requests until the stream ends or `exit` comes. backend: as `backends` describes it. facts: about the
    machine, the backend and the adapter that these providers use; finding them out takes a tenth of a worker's
    start."""
    while (frame := read_frame(requests)) is not None:
        header, body = frame
        if header["op"] == "exit":
            return
        if header["op"] == "hello":
            trouble = backend.trouble_with(header["canary"]) if header.get("canary") else ""
            stated = facts(header.get("providers", ())) if header.get("facts", True) else {}
            hello = {"op": "hello", "protocol": PROTOCOL, "pid": os.getpid(), "facts": stated, "trouble": trouble}
            write_frame(answers, encode(hello, {}))
            continue
        started, used = time.perf_counter(), time.process_time()
        answer, outputs = _answer(header, body, backend, answers)
        times = {"busy_s": time.perf_counter() - started, "cpu_s": time.process_time() - used}
        done = {"op": "done", "id": header["id"], **times, **answer}
        try:
            chunks = encode(done, outputs)
        except (AttributeError, TypeError) as error:  # an output that is no tensor
            chunks = encode({**done, "stage": "run", **failure(error)}, {})
        write_frame(answers, chunks)


def _answer(
    header: dict[str, Any], body: bytes, backend: Any, answers: IO[bytes]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the backend says: an answer's header and the outputs."""
    if header["op"] == "registry":
        try:
            return backend.registry(header), {}
        except Exception as error:  # a build without these calls; or a provider that finds no device
            return {"stage": "create", **failure(error)}, {}
    if header["op"] == "contract":

        def say(answer: dict[str, Any]) -> None:
            write_frame(answers, encode({"op": "done", "id": header["id"], **answer}, {}))

        try:
            return backend.contract(header, say), {}
        except Exception as error:
            return {"stage": "run", **failure(error)}, {}
    try:
        tensors = iter(list(decode(header, body)))
    except TypeError as error:  # numpy has no such dtype, as int4
        return {"stage": "feed", **failure(error)}, {}
    if header["op"] == "speed":
        sent = not header["kept"] and not header["known"]
        model = next(tensors)[1].tobytes() if sent else b""
        feeds = align_all(tensors, header["shapes"])
        timed: tuple[dict[str, Any], dict[str, Any]] = backend.speed(header, model, feeds)
        return timed
    if header["op"] != "model":
        model = next(tensors)[1].tobytes()
        result: tuple[dict[str, Any], dict[str, Any]] = backend.run(header, model, align_all(tensors))
        return result

    def begin(step: str) -> None:
        write_frame(answers, encode({"op": "at", "id": header["id"], "stage": step}, {}))

    model = b"" if header["kept"] or header["path"] else next(tensors)[1].tobytes()
    result = backend.model(header, model, align_all(tensors), begin)
    return result
