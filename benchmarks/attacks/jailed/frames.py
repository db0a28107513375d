"""Forged frames of a worker, through `epcheck run`: no case passes by one, nothing of a frame acts in a page or a
terminal, and the run ends as it should.

The worker is a jailed callable. It finds the stream of its answers in the frames of its callers, and writes there what
a forgery says, in the place of an answer, before it, or behind it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.attacks.jailed import forgeries

HOSTILE = forgeries.HOSTILE
DEADLINE_S = 5.0
TRUE_RESULT = "the true result"
"""What a record says that its case expects, where a refusal is no pass."""

HANG_S = 150.0
CASES = ("--op", "Relu", "--dtype", "float32", "--thin")

RAW = ("garbage", "nothing", "huge header", "huge body", "a body that does not come", "a header that is no mapping",
       "a deep header")  # fmt: skip
"""Those of an examining process' raw forgeries that are frames of nobody's."""

FIELDS: dict[str, Mapping[str, Any]] = {
    "the id of another": {"id": "Abs-13/float32/ordinary[runtime]"},
    "an id that is a number": {"id": 7},
    "an id that is a list": {"id": [HOSTILE]},
    "no id": {"id": None},
    "an unknown op": {"op": "eval"},
    "an op that is a list": {"op": []},
    "a hello": {"op": "hello", "protocol": 3, "facts": {"onnxruntime": HOSTILE}, "trouble": ""},
    "a hello of another protocol": {"op": "hello", "protocol": HOSTILE, "facts": {}, "trouble": HOSTILE},
    "a hello with trouble": {"op": "hello", "protocol": 3, "facts": {"a": "b"}, "trouble": HOSTILE},
    "an unknown stage": {"stage": HOSTILE},
    "a stage that is a number": {"stage": 1},
    "a failure in hostile words": {"stage": "run", "error": HOSTILE, "message": HOSTILE},
    "a failure that is no text": {"stage": "run", "error": [1], "message": {"a": None}},
    "a failure of 8 MB": {"stage": "create", "error": "E", "message": "x" * (8 << 20)},
    "an assignment in hostile words": {"assignment": [[HOSTILE, HOSTILE, HOSTILE]]},
    "an assignment of numbers": {"assignment": [1, 2]},
    "an assignment that is text": {"assignment": HOSTILE},
    "an assignment of 100,000 nodes": {"assignment": [["P", "Relu", "n"]] * 100_000},
    "seconds that are text": {"create_s": HOSTILE, "run_s": "1", "busy_s": "x", "cpu_s": None},
    "seconds that are no number": {"create_s": float("nan"), "run_s": float("inf"), "busy_s": float("nan")},
    "seconds below zero": {"create_s": -1e300, "run_s": -1, "busy_s": -1e300, "cpu_s": -1},
    "unwritten that is a number": {"unwritten": 3},
    "unwritten outputs of others": {"unwritten": [HOSTILE], "repeat_differs": [HOSTILE]},
    "differing outputs that are a mapping": {"repeat_differs": {"y": 1}},
    "timing that nobody asked for": {"timing": {"runs_s": [HOSTILE], "nodes": [[HOSTILE] * 4]}},
}
"""What is changed in the header of an answer."""

TENSORS: dict[str, Callable[[str], tuple[Any, bytes]]] = {
    "no output": lambda _name: ([], b""),
    "tensors that are text": lambda _name: (HOSTILE, b""),
    "tensors that are null": lambda _name: (None, b""),
    "an output twice": lambda name: ([[name, "float32", [1]]] * 2, b"\0" * 8),
    "further outputs": lambda name: ([[name, "float32", [1]], [HOSTILE, "float32", [1]]], b"\0" * 8),
    "an output in hostile words": lambda _name: ([[HOSTILE, "float32", [1]]], b"\0" * 4),
    "half a surrogate as a name": lambda _name: ([["\ud800", "float32", [1]]], b"\0" * 4),
    "a negative shape": lambda name: ([[name, "float32", [-2]]], b"\0" * 8),
    "a huge shape": lambda name: ([[name, "float32", [1 << 62, 1 << 62]]], b"\0" * 8),
    "a huge shape of nothing": lambda name: ([[name, "float32", [0, 1 << 62, 1 << 62]]], b""),
    "a shape of 10,000 dimensions": lambda name: ([[name, "float32", [1] * 10_000]], b"\0" * 4),
    "a shape of fractions": lambda name: ([[name, "float32", [1.5]]], b"\0" * 4),
    "a shape of truths": lambda name: ([[name, "float32", [True]]], b"\0" * 4),
    "a type of objects": lambda name: ([[name, "object", [1]]], b"\0" * 8),
    "a type of records": lambda name: ([[name, "void64", [1]]], b"\0" * 8),
    "a type in hostile words": lambda name: ([[name, HOSTILE, [1]]], b"\0" * 4),
    "a body that belongs to nothing": lambda name: ([[name, "float32", [1]]], b"\0" * 400),
    "a body of 1 GiB": lambda name: ([[name, "uint8", [1 << 30]]], b"\0" * (1 << 30)),
}
"""Output -> the tensors of an answer, and its body."""

BESIDE = ("a doubled answer", "a thousand answers", "an answer to what was not asked yet")
NEVER, FOREVER = "no answer", "signs of life for ever"
FORGERIES = (*RAW, *FIELDS, *TENSORS, *BESIDE, NEVER, FOREVER)


def __getattr__(name: str) -> Any:
    """`forgery_7`: the callable that sends the seventh of FORGERIES."""
    if not name.startswith("forgery_"):
        raise AttributeError(name)
    return lambda _model, feeds: _forge(FORGERIES[int(name.removeprefix("forgery_"))], feeds)


def _forge(name: str, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Inside: send the forgery. The answer that the worker gives afterwards, if it does, is wrong in every element."""
    header, stream = _request()
    (output,) = header["outputs"]
    honest = {
        "op": "done", "id": header["id"], "stage": "done", "error": "", "message": "", "assignment": None,
        "create_s": 0.0, "run_s": 0.0, "busy_s": 0.0, "cpu_s": 0.0, "unwritten": [], "repeat_differs": [],
        "tensors": [],
    }  # fmt: skip
    if name in RAW:
        stream.write(forgeries.RAW[name])
        stream.flush()
        os._exit(0)
    for frame in _frames(name, honest, output):
        stream.write(frame)
        stream.flush()
    return {output: np.full_like(next(iter(feeds.values())), -1)}


def _frames(name: str, honest: dict[str, Any], output: str) -> Iterator[bytes]:
    minus_one = np.full(1, -1, np.float32).tobytes()
    wrong = {**honest, "tensors": [[output, "float32", [1]]]}
    if name in FIELDS:
        yield forgeries.make_frame({**wrong, **FIELDS[name]}, minus_one)
    elif name in TENSORS:
        tensors, body = TENSORS[name](output)
        yield forgeries.make_frame({**honest, "tensors": tensors}, body)
    elif name == BESIDE[0]:
        yield forgeries.make_frame(wrong, minus_one)
    elif name == BESIDE[1]:
        yield forgeries.make_frame(wrong, minus_one) * 1000
    elif name == BESIDE[2]:
        yield forgeries.make_frame(
            {**wrong, "id": str(int(honest["id"]) + 1) if honest["id"].isdigit() else "2"}, minus_one
        )
    elif name == NEVER:
        time.sleep(10 * HANG_S)
    else:
        while True:
            yield forgeries.make_frame({"op": "at", "id": honest["id"], "stage": "run", "tensors": []})


def _request() -> tuple[dict[str, Any], Any]:
    """The header of the request, and the stream of the answers, out of the callers' variables."""
    header, stream, frame = None, None, sys._getframe()
    while frame is not None and (header is None or stream is None):
        values = frame.f_locals
        if header is None and isinstance(values.get("header"), dict) and "outputs" in values["header"]:
            header = values["header"]
        stream = stream or values.get("answers")
        frame = frame.f_back  # type: ignore[assignment]
    assert header is not None
    assert stream is not None
    return header, stream


def forge(name: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a few cases on a worker that sends a forgery; what is wrong, empty for nothing. folder: of its own."""
    work = folder / "work"
    work.mkdir()
    (work / "epcheck.toml").write_text(
        f'[targets.forged]\nfunction = "benchmarks.attacks.jailed.frames:forgery_{FORGERIES.index(name)}"\n'
        f"jail = true\ndeadline_s = {DEADLINE_S}\n"
    )
    before = forgeries.files(folder)
    line = [*forgeries.EPCHECK, "run", *CASES, "--target", "forged", "--baseline", "none", "--no-reference"]
    try:
        done = subprocess.run(
            line, cwd=work, env=environment, capture_output=True, timeout=HANG_S, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    new = {path for path in forgeries.files(folder) - before if path.parts[0] != "home"}
    written = [str(path) for path in new if path.parts[:2] != ("work", "epcheck-runs")]
    if wrong := forgeries.fault(done.returncode, done.stdout + done.stderr, written, forgeries.pages(work)):
        return wrong
    return _passes(work, done)


def _passes(work: Path, done: subprocess.CompletedProcess[bytes]) -> str:
    """Whether a case passed, or none was judged at all."""
    journals = [path.read_text(encoding="utf-8") for path in work.rglob("journal.jsonl")]
    records = [json.loads(line) for journal in journals for line in journal.splitlines()]
    statuses = [record["status"] for record in records if record.get("expects") == TRUE_RESULT]
    if "pass" in statuses:
        return f"{statuses.count('pass')} cases pass"
    stops = done.returncode == 2 and b"target 'forged'" in done.stderr
    return "" if any(statuses) or stops else f"nothing was judged: {(done.stdout + done.stderr)[-300:]!r}"
