"""The canary: one tiny session before any other, which says why a provider cannot be used, and is then kept (`held`).

Without it a provider that does not start, or that does not know an option, would fail every case of a suite. What the
provider's answer to the node is does not matter here; where it leaves the node to the CPU provider, its options are
looked at once more (`option_values`).
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Any

import onnxruntime

from .option_names import find_unknown_option
from .option_values import unusable_option
from .plugin import reason

MODEL = (
    b'\x08\x07:_\n\x16\n\x01a\n\x01b\x12\x01c\x1a\x06canary"\x03Add\x12\x06canaryZ\x13\n\x01a\x12\x0e\n\x0c\x08\x01\x12'
    b"\x08\n\x02\x08\x02\n\x02\x08\x02Z\x13\n\x01b\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x02\n\x02\x08\x02b\x13\n\x01"
    b"c\x12\x0e\n\x0c\x08\x01\x12\x08\n\x02\x08\x02\n\x02\x08\x02B\x04\n\x00\x10\r"
)
"""ONNX: c = Add(a, b), float32 of shape [2, 2], opset 13."""

_ERROR = re.compile(r"\[[EF]:onnxruntime:[^\]]*\]\s*(.*?)(?:\x1b\[m)?$", re.MULTILINE)
"""A line of ONNX Runtime's log that reports an error."""

_HINT = re.compile(r"cannot open|cannot load|could ?n[o']t|not found|failed to|no such file", re.IGNORECASE)
"""What the cause of a failure is told with by libraries below the provider, which know no log of ONNX Runtime."""

LOG_ERRORS, LOG_NOTHING = 3, 4
"""Severities of ONNX Runtime's log."""


def trouble_with(backend: Any, sessions: dict[str, Any]) -> str:
    """Why sessions of this kind cannot be created, in one sentence; empty where they can. sessions: `providers`,
    `config` and `device` as each request has them. Finds out, too, whether the backend's sessions keep a record of
    assignments.
    """
    ((provider, options),) = sessions["providers"]
    if trouble := find_unknown_option(provider, options, sessions["config"], backend.plugin):
        return trouble
    request = {**sessions, "place": True}
    failure, nodes, started = "", None, False
    with _capture_log() as log:
        try:
            session = backend.session(request, MODEL)
            started = provider in session.get_providers()
            if backend.keeps_record(request):
                nodes = backend.assignment(session, recorded=True)
            else:
                backend.assignment(session, recorded=False)
        except Exception as error:
            failure = reason(str(error)) or type(error).__name__
    text = "".join(log)
    errors = [reason(message) for message in _ERROR.findall(text)]
    if failure or not started:
        why = failure or next(iter(errors), "onnxruntime left it out of the session without a message")
        return f"{provider} cannot start: {_with_hint(why, text)}{_told(options)}"
    if nodes == []:
        backend.can_record = False
    untaken = nodes and not any(name == provider for name, _, _ in nodes)
    blamed = [error for error in errors if untaken or _quotes(error, options)]
    if blamed:
        return f"{provider} cannot start: {blamed[0]}{_told(options)}"
    if untaken and (trouble := unusable_option(backend, sessions)):
        return trouble
    backend.held.hold(provider, session)
    return ""


@contextlib.contextmanager
def _capture_log() -> Iterator[list[str]]:
    """What is written to stderr, libraries included; it is written on afterwards. ONNX Runtime reports errors."""
    captured: list[str] = []
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        onnxruntime.set_default_logger_severity(LOG_ERRORS)
        try:
            yield captured
        finally:
            onnxruntime.set_default_logger_severity(LOG_NOTHING)
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            written = file.read()
            captured.append(written.decode("utf-8", "replace"))
            os.write(2, written)


def _with_hint(why: str, log: str) -> str:
    """The failure, and the first line of the log that tells a cause which the failure does not."""
    lines = [" ".join(line.split()) for line in log.splitlines() if not line.lstrip("\x1b").startswith("[")]
    hint = next((line for line in lines if _HINT.search(line) and line not in why), "")
    return f"{why.rstrip('. ')} ({hint})" if hint else why.rstrip(". ")


def _told(options: dict[str, str]) -> str:
    listed = ", ".join(f"{name} = {value}" for name, value in options.items())
    return f"; its options are {listed}" if listed else ""


def _quotes(message: str, options: dict[str, str]) -> bool:
    """Whether a message names an option or its value."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) for name in options)
