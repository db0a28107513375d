"""Forged answers of an examining process, through real commands: only what was asked for may be written, nothing of a
forgery may act in a page or a terminal, and the command ends as it should.

The process that examines is another program inside alone: a `sitecustomize` that its environment names replaces the
function by which it answers.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORGERY = "EPCHECK_HOOK_FORGERY"
"""Environment variable: which forgery the examining process sends."""

HOSTILE = "../../peer-escaped<script>alert(1)</script>\x1b]0;peer\x07\x1b[31m\u202e{}"
ABSOLUTE = "{}/peer-escaped"
HANG_S = 60.0
EPCHECK = (sys.executable, "-P", "-c", "from epcheck.cli.start import main; main()")

SITE = """\
import os, sys
if "epcheck.api.models.examining.examiner" in sys.orig_argv and os.environ.get("EPCHECK_HOOK_FORGERY"):
    from benchmarks.attacks.jailed import forgeries
    forgeries.install(os.environ["EPCHECK_HOOK_FORGERY"])
"""

MODEL = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 2] x) => (float[2, 2] z) <float[2] w = {1, 2}> '
    "{ a = Add (x, w)  b = MatMul (a, x)  z = Relu (b) }"
)

COMMANDS: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {
    "validate": (("validate", "m.onnx", "--target", "cpu", "--json", "v.json", "--html", "v.html", "--markdown", "v.md",
                  "--junit", "v.xml", "--sarif", "v.sarif", "--annotations", "v.txt"),
                 frozenset({"v.json", "v.html", "v.md", "v.xml", "v.sarif", "v.txt"})),
    "doctor": (("doctor", "m.onnx", "--target", "cpu", "--json", "d.json", "--html", "d.html", "--write", "d.onnx"),
               frozenset({"d.json", "d.html", "d.onnx"})),
    "reduce": (("reduce", "m.onnx", "--target", "cpu", "--out", "r"), frozenset({"r"})),
    "harvest": (("harvest", "m.onnx", "--target", "cpu", "--out", "h"), frozenset({"h"})),
    "replay": (("replay", "repro", "--target", "cpu"), frozenset()),
}  # fmt: skip
"""Command -> its arguments, and what it may write beside the model: a file, or a folder with all that is in it."""


def make_frame(header: object, body: bytes = b"", head: int | None = None, size: int | None = None) -> bytes:
    """A frame as `protocol.py` has it. head, size: the lengths that it claims, those of its parts where None."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    lengths = struct.pack("<4sIQ", b"EPC1", len(text) if head is None else head, len(body) if size is None else size)
    return lengths + text + body


def _done(document: bytes, tensors: list[Any] | None = None) -> bytes:
    return make_frame({"kind": "done", "tensors": tensors or [["document", "uint8", [len(document)]]]}, document)


def _refused(module: str, name: str, sentence: str = HOSTILE) -> bytes:
    return make_frame({"kind": "refused", "module": module, "name": name, "sentence": sentence, "tensors": []})


def _words(text: object) -> bytes:
    return make_frame({"kind": "words", "text": text, "tensors": []})


RAW: dict[str, bytes] = {
    "garbage": b"\x00garbage" * 100,
    "nothing": b"",
    "huge header": make_frame({}, head=0xFFFFFFFF),
    "huge body": make_frame({"kind": "done", "tensors": []}, size=1 << 63),
    "a body that does not come": make_frame({"kind": "done", "tensors": []}, size=1 << 29),
    "a header that is no mapping": make_frame([1, 2]),
    "a deep header": make_frame(b"[" * 200_000),
    "an unknown kind": make_frame({"kind": "eval", "tensors": []}),
    "further fields": make_frame({"kind": "alive", "tensors": [], "code": "x"}),
    "words that are no text": _words([1]),
    "negative shape": _done(b"{}", [["document", "uint8", [-2]]]),
    "huge shape": _done(b"{}", [["document", "uint8", [1 << 62, 1 << 62]]]),
    "a type of objects": _done(b"{}" * 4, [["document", "object", [1]]]),
    "a type of records": _done(b"{}" * 4, [["document", "void64", [1]]]),
    "parts that are not numbered": _done(b"{}", [["document", "uint8", [2]], ["../x", "uint8", [0]]]),
    "a pickle": _done(pickle.dumps({"a": 1})),
    "a module of the system": _refused("os", "system", "touch peer-escaped"),
    "a class of ours": _refused("epcheck.api.models.examining.examination", "ExaminationError"),
    "a class that takes more": _refused("epcheck.generators.error", "EpcheckError"),
    "an error of the system": make_frame(
        {"kind": "system", "number": -7, "text": HOSTILE, "file": HOSTILE, "tensors": []}
    ),
    "a hostile sentence": make_frame({"kind": "failed", "sentence": HOSTILE * 3, "tensors": []}),
    "hostile words, and an end": _words(HOSTILE) + make_frame({"kind": "failed", "sentence": "x", "tensors": []}),
    "many messages": _words(HOSTILE) * 10_000,
    "many signs of life": make_frame({"kind": "alive", "tensors": []}) * 10_000,
}
"""What is sent in the place of an answer; then the process ends."""


def _strings(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {key: _strings(each, text) for key, each in value.items()}
    if isinstance(value, list):
        return [_strings(each, text) for each in value]
    return text if isinstance(value, str) else value


def _numbers(value: Any, number: float) -> Any:
    if isinstance(value, dict):
        return {key: each if key == "part" else _numbers(each, number) for key, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each, number) for each in value]
    return number if isinstance(value, int | float) and not isinstance(value, bool) else value


def _nth(value: Any, wanted: int, other: Any) -> Any:
    """The document with another value in the place of its `wanted`-th."""
    seen = -1

    def change(each: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == wanted:
            return other
        if isinstance(each, dict):
            return {key: change(inner) for key, inner in each.items()}
        return [change(inner) for inner in each] if isinstance(each, list) else each

    return change(value)


def _one_string(value: Any, wanted: int, text: str) -> Any:
    """The document with a hostile text in the place of each string from `wanted` on, every fourth."""
    seen = -1

    def change(each: Any) -> Any:
        nonlocal seen
        if isinstance(each, dict):
            return {key: change(inner) for key, inner in each.items()}
        if isinstance(each, list):
            return [change(inner) for inner in each]
        if isinstance(each, str):
            seen += 1
            return text if seen % 4 == wanted else each
        return each

    return change(value)


CHANGED: dict[str, Callable[[Any], Any]] = {
    "hostile texts": lambda document: _strings(document, HOSTILE),
    "absolute paths": lambda document: _strings(document, ABSOLUTE.format(Path.cwd())),
    "paths upwards": lambda document: _strings(document, "../../peer-escaped"),
    **{f"hostile texts, each fourth from {n}": lambda document, n=n: _one_string(document, n, HOSTILE)
       for n in range(4)},  # type: ignore[misc]
    "huge numbers": lambda document: _numbers(document, 10**300),
    "negative numbers": lambda document: _numbers(document, -1),
    "no numbers": lambda document: _numbers(document, float("nan")),
    **{f"a wrong type at {n}": lambda document, n=n: _nth(document, n, [[{"x": None}]])
       for n in (0, 1, 2, 3, 5, 8, 13)},  # type: ignore[misc]
}  # fmt: skip
"""How the document of a true result is changed."""

TWICE = "a doubled answer"
FORGERIES = (*RAW, *CHANGED, TWICE)


def install(name: str) -> None:
    """Inside: have the answers of this process be a forgery."""
    from epcheck.api.models.examining import messages, typed_data
    from epcheck.conformance.workers.program import protocol

    true_write, true_encode = messages.write, typed_data.encode

    def encode(value: object) -> tuple[bytes, Any]:
        document, parts = true_encode(value)
        return json.dumps(CHANGED[name](json.loads(document))).encode(), parts

    def write(pipe: Any, message: Any, result: object = None) -> None:
        if isinstance(message, messages.Alive | messages.Words):
            return true_write(pipe, message, result)
        if name in RAW:
            protocol.write_frame(pipe, [RAW[name]])
            os._exit(0)
        true_write(pipe, message, result)
        true_write(pipe, message, result)
        time.sleep(0.2)
        return true_write(pipe, message, result)

    if name in CHANGED:
        typed_data.encode = encode
    else:
        messages.write = write


def forge(command: str, name: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a command whose examining process sends a forgery; what is wrong, empty for nothing. folder: of its own."""
    arguments, asked = COMMANDS[command]
    prepare(command, folder / "work", environment)
    before = files(folder)
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(SITE)
    path = os.pathsep.join([str(folder / "site"), environment["PYTHONPATH"]])
    line = [*EPCHECK, *arguments]
    try:
        done = subprocess.run(
            line, cwd=folder / "work", env={**environment, "PYTHONPATH": path, FORGERY: name}, capture_output=True,
            timeout=HANG_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "hangs"
    new = {each for each in files(folder) - before if each.parts[0] not in ("site", "home")}
    found = [str(each) for each in new if each.parts[:1] != ("work",) or each.parts[1] not in asked]
    return fault(done.returncode, done.stdout + done.stderr, found, pages(folder / "work"))


def fault(code: int, printed: bytes, written: list[str], pages: list[str]) -> str:
    """What is wrong with how a command ended on a forgery. written: what nobody asked for; pages: of HTML."""
    if b"Traceback" in printed:
        return f"traceback: {printed[-400:].decode('utf-8', 'replace')}"
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if b"\x1b]0;" in printed or "\u202e".encode() in printed:
        return "the terminal gets control sequences"
    if written:
        return f"written: {sorted(written)[:4]}"
    return "a page has a script" if any("<script>alert(1)" in page for page in pages) else ""


def pages(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*.html")]


def files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()}


def prepare(command: str, work: Path, environment: dict[str, str]) -> None:
    """What a command reads."""
    import onnx
    import onnx.parser

    kind = "float16" if command == "doctor" else "float"
    work.mkdir(parents=True)
    onnx.save(onnx.parser.parse_model(MODEL.replace("float[", f"{kind}[")), work / "m.onnx")
    if command == "replay":
        line = [*EPCHECK, "repro", "Relu-6/float32/ordinary[runtime]", "--out", "repro"]
        subprocess.run(line, cwd=work, env=environment, check=False, capture_output=True)
