"""What the process that examines a model sends to the one that waits for it: the frames of the worker protocol.

The header of a frame is one of the messages below; a result is a body with its document and its numbered parts
(`typed_data`). The reader takes nothing else, and unpickles nothing.
"""

from __future__ import annotations

from typing import IO, Any

import msgspec
import numpy as np

from epcheck.api.models.examining import typed_data
from epcheck.api.models.examining.typed_data import ResultError
from epcheck.conformance.workers.program import protocol
from epcheck.generators.array import Array

MOST_BYTES = 1 << 30
"""Of a message: a result has outputs and a small model, not the weights of a large one."""

MOST_DOCUMENT = 1 << 26
"""Bytes of the document of a result: some 200,000 nodes, each with its placement."""

DOCUMENT = "document"


class MessageError(Exception):
    """Bytes that are no message."""


class Message(msgspec.Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """Anything that is sent."""


class Alive(Message, frozen=True, tag="alive"):
    """Something goes on."""


class Words(Message, frozen=True, tag="words"):
    """What is being done."""

    text: str


class Refused(Message, frozen=True, tag="refused"):
    """An EpcheckError was raised. module, name: of its class. sentence: what it says."""

    module: str
    name: str
    sentence: str


class SystemRefused(Message, frozen=True, tag="system"):
    """An OSError was raised. number: its errno. text: what the system says. file: its name, or nothing."""

    number: int
    text: str
    file: str


class Failed(Message, frozen=True, tag="failed"):
    """The model cannot be examined, for the reason in the sentence."""

    sentence: str


class Known(Message, frozen=True, tag="known"):
    """What is known before the end: a result of the same type, which `result_of` reads from the same frame."""


class Done(Message, frozen=True, tag="done"):
    """The result, which `result_of` reads from the same frame."""


Received = tuple[Message, bytes, list[Array]]
"""A message, the document and the parts of its result."""

_Any = Alive | Words | Refused | SystemRefused | Failed | Known | Done


def write(pipe: IO[bytes], message: Message, result: object = None) -> None:
    """result: of Known or Done. Raises OSError, and TypeError for a result that is not plain data."""
    tensors: dict[str, Array] = {}
    if isinstance(message, Known | Done):
        document, parts = typed_data.encode(result)
        tensors = {DOCUMENT: np.frombuffer(document, np.uint8), **{str(n): part for n, part in enumerate(parts)}}
    protocol.write_frame(pipe, protocol.encode(msgspec.to_builtins(message), tensors))


def read(pipe: IO[bytes]) -> Received | None:
    """The next message; None at the end. Raises MessageError, OSError and MemoryError."""
    try:
        frame = protocol.read_frame(pipe, MOST_BYTES)
        if frame is None:
            return None
        header, body = frame
        tensors = dict(protocol.decode(header, body))
        del header["tensors"]
        message = msgspec.convert(header, _Any)
    except (protocol.NotAFrame, msgspec.ValidationError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise MessageError(str(error)[:200]) from None
    document = tensors.pop(DOCUMENT, np.zeros(0, np.uint8))
    if document.nbytes > MOST_DOCUMENT or [*tensors] != [str(n) for n in range(len(tensors))]:
        raise MessageError("a result whose document is too large, or whose parts are not numbered")
    return message, document.tobytes(), [*tensors.values()]


def result_of(received: Received, kind: Any) -> Any:
    """The result of Known or Done, of this type. Raises ResultError."""
    message, document, parts = received
    if not isinstance(message, Known | Done):
        raise ResultError(f"{type(message).__name__} has no result")
    return typed_data.decode(kind, document, parts)
