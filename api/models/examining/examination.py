"""A stranger's model is examined in a process of its own, within bounds of time, memory and output.

Parsing, ONNX's checker, shape inference, feeds, the oracle and the search for the wrong node all read what a stranger
wrote, most of it in native code. Whatever happens there, the caller gets a result or an EpcheckError.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import time
import typing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import psutil

from epcheck.api.models.examining import messages
from epcheck.api.models.examining.examiner_process import ExaminerProcess
from epcheck.api.models.examining.messages import Message, Received
from epcheck.api.models.examining.typed_data import ResultError
from epcheck.conformance import lab
from epcheck.conformance.preparation.preparer_pool import PREPARER
from epcheck.conformance.records.error import EpcheckError
from epcheck.conformance.targets.target import MEBIBYTE, Target
from epcheck.conformance.workers.client import TargetDown
from epcheck.models.execution.session import MEMORY
from epcheck.models.inspection.inspect import CHECKER

POLL_S = 0.1
ORACLE_S = 180.0
"""What the process may take beyond the deadline of a step of a session without a sign of life: the oracle's own time
for all trials, twice."""

STOPPED_S = 10.0
"""After what time a process that somebody stopped (SIGSTOP) is given up."""

LEAST_MEMORY = 4096 * MEBIBYTE
TIMES_THE_FILES = 8
"""The memory of the process: LEAST_MEMORY and so many times the files beside the model, as far as SHARE of what the
machine has free."""

SHARE = 0.75

GRACE_S = 2.0
"""For so long a step that is under way when the budget is spent may go on."""

T = TypeVar("T")
Options = TypeVar("Options")
Say = Callable[[str], None]


class ExaminationError(EpcheckError, ValueError):
    """A model cannot be examined: what it does to the process that reads it, in a sentence."""


class BudgetSpent(EpcheckError, RuntimeError):  # noqa: N818  (it is a state of the examination)
    """A step was under way when the budget was spent, and was ended."""


def examine(
    function: Callable[..., T],
    options: Options,
    model: Path,
    say: Say,
    deadline_s: float,
    targets: Sequence[Target] = (),
    keep: Callable[[T], None] | None = None,
    budget_s: float = math.inf,
) -> T:
    """`function(options, say)`, called in a process of its own. function: annotated with what it returns, which is all
    that is taken from that process: a dataclass of plain data (`typed_data`). model: the file or folder that it reads,
    for bounds and messages. deadline_s: of a step of a session. targets: whose workers it may have; our process starts
    them, for it may start nothing. keep: the third argument of the function, which takes what is known before the end.
    budget_s: seconds after which, and GRACE_S, the process is ended.

    Raises BudgetSpent then, EpcheckError, ExaminationError among them, and OSError, as the function does; nothing else.
    """
    size, kind = _bytes_beside(model), typing.get_type_hints(function)["return"]
    memory = int(min(LEAST_MEMORY + TIMES_THE_FILES * size, SHARE * psutil.virtual_memory().available))
    started = [(target, target.memory_bytes + MEMORY * size) for target in (*targets, CHECKER, PREPARER)]
    in_use = lab.in_use() if any(target.in_lab for target in targets) else contextlib.nullcontext()
    with in_use, ExaminerProcess(function, options, started, keep is not None) as process:
        began = heard = ran = time.monotonic()
        while True:
            if time.monotonic() - began > budget_s + GRACE_S:
                raise BudgetSpent("the budget is spent")
            try:
                received = process.messages.get(timeout=POLL_S)
            except queue.Empty:
                if not process.is_stopped():
                    ran = time.monotonic()
                elif time.monotonic() - ran > STOPPED_S:
                    raise _make_error(model, f"the process that read it was stopped for {STOPPED_S:g} s") from None
                if time.monotonic() - heard > deadline_s + ORACLE_S:
                    raise _make_error(model, f"it did not respond for {deadline_s + ORACLE_S:g} s") from None
                if process.resident_bytes() > memory:
                    raise _make_error(model, f"it takes more than {memory // MEBIBYTE:,} MiB of memory") from None
                continue
            heard = time.monotonic()
            if received is None:
                raise _make_error(model, f"the process that read it ended: {process.last_words()}")
            match received[0]:
                case messages.Alive():
                    continue
                case messages.Words(text):
                    say(text)
                case messages.Known():
                    if keep is not None:
                        keep(_result(received, kind, model))
                case messages.Done():
                    result: T = _result(received, kind, model)
                    return result
                case messages.Refused() as refusal:
                    raise _refusal(refusal, targets)
                case message:
                    raise _error(model, message)


def _result(received: Received, kind: Any, model: Path) -> Any:
    try:
        result = messages.result_of(received, kind)
    except ResultError as error:
        raise _make_error(model, f"the process that read it sent no result: {error}") from None
    return result


def _error(model: Path, message: Message) -> Exception:
    match message:
        case messages.SystemRefused(number, text, file):
            return OSError(number, text, file) if file else OSError(number, text)
        case messages.Failed(sentence):
            return _make_error(model, sentence)
    raise AssertionError(message)


def _refusal(refused: messages.Refused, targets: Sequence[Target]) -> Exception:
    """The error that was raised, where this process knows its class: none is imported for it. Of a target that does not
    start what hinders it, which programs of the system say that the other process may not start."""
    name, sentence = (refused.module, refused.name), refused.sentence
    kind = next((each for each in _subclasses(EpcheckError) if (each.__module__, each.__qualname__) == name), None)
    if kind is TargetDown:
        reasons = (
            target.unavailable_reason()
            for target in targets
            if target.unavailable_reason and f"'{target.name}'" in sentence
        )
        sentence = "; ".join(filter(None, (sentence, *reasons)))
    with contextlib.suppress(TypeError):
        return (kind or ExaminationError)(sentence)
    return ExaminationError(sentence)


def _subclasses(kind: type[EpcheckError]) -> Iterator[type[EpcheckError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


def _make_error(model: Path, why: str) -> ExaminationError:
    return ExaminationError(f"{model}: cannot be examined: {why}")


def _bytes_beside(model: Path) -> int:
    """Of the files in the folder of a model."""
    size = 0
    with contextlib.suppress(OSError):
        folder = model if model.is_dir() else model.parent
        with os.scandir(folder) as entries:
            size = sum(entry.stat().st_size for entry in entries if entry.is_file())
    return size
