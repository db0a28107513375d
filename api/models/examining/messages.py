"""What the process that examines a model sends to the one that waits for it: pickled, and read as plain data only.

A message is a tuple: ALIVE; WORDS and what is being done; DONE and the result; REFUSED, the class of an EpcheckError
and its sentence; SYSTEM, errno, what the system says, and the file; FAILED and a sentence.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import pickle
import struct
from collections.abc import Callable
from enum import Enum
from pathlib import PurePath
from typing import IO, Any

import numpy as np
import onnx

ALIVE, WORDS, DONE, REFUSED, SYSTEM, FAILED = "alive", "words", "done", "refused", "system", "failed"

MOST_BYTES = 1 << 30
"""Of a message: a result has outputs and a small model, not the weights of a large one."""

_LENGTH = struct.Struct("<Q")
_OF_NUMPY = {"_reconstruct", "scalar", "ndarray", "dtype", "_frombuffer"}


class MessageError(Exception):
    """Bytes that are no message."""


def write(pipe: IO[bytes], message: tuple[Any, ...]) -> None:
    """Raises OSError, and what pickle raises for a result that cannot be sent."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(message)
    data = buffer.getvalue()
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def read(pipe: IO[bytes]) -> tuple[Any, ...] | None:
    """The next message; None at the end. Raises MessageError."""
    head = pipe.read(_LENGTH.size)
    if not head:
        return None
    length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else MOST_BYTES + 1
    if length > MOST_BYTES or len(data := pipe.read(length)) < length:
        raise MessageError(f"a message of {length:,} bytes")
    try:
        message = _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # pickle documents that it may raise anything
        raise MessageError(str(error)) from error
    if not isinstance(message, tuple) or not message:
        raise MessageError("no tuple")
    return message


def model_from(data: bytes) -> onnx.ModelProto:
    """A model, which pickle cannot send itself."""
    model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    return model


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, onnx.ModelProto):
            return model_from, (value.SerializeToString(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Takes our own data classes, enumerations and errors, arrays and paths; nothing that does anything."""

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        top = module.partition(".")[0]
        if (module, name) == (__name__, model_from.__name__):
            return model_from
        found = getattr(importlib.import_module(module), name, None) if top in ("epcheck", "numpy", "pathlib") else None
        if top == "numpy" and (name in _OF_NUMPY or (isinstance(found, type) and issubclass(found, np.generic))):
            return found  # type: ignore[return-value]
        if top == "ml_dtypes":
            return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]
        if isinstance(found, type) and (dataclasses.is_dataclass(found) or issubclass(found, _PLAIN)):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


_PLAIN = (Enum, PurePath, tuple)
