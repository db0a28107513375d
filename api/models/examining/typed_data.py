"""Results as plain data: a JSON document, and arrays and bytes beside it as numbered parts.

The reader says which type it expects (`decode`), and gets that type or ResultError. Nothing in the data names a class,
a module or a function: a stranger sends numbers, text and bytes, in the places that our own types have for them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from epcheck.generators.array import Array

PART, TEXTS = "part", "texts"
"""What stands in the document for an array of numbers or for bytes: the number of its part; for an array of text: the
text itself, and its shape."""

_WORDS = (str, int, float, bool, type(None))


class ResultError(ValueError):
    """The data are not of the type that is expected."""


def encode(value: object) -> tuple[bytes, list[Array]]:
    """The document of a value, JSON in UTF-8, and its parts. Raises TypeError for what is not plain data."""
    parts: list[Array] = []
    return json.dumps(_plain(value, parts), separators=(",", ":")).encode(), parts


def _plain(value: object, parts: list[Array]) -> object:
    """The value as JSON has it; arrays and bytes are added to the parts."""
    if isinstance(value, bytes):
        value = np.frombuffer(value, np.uint8)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OU":
            return {TEXTS: [str(element) for element in value.ravel()], "shape": value.shape}
        parts.append(value)
        return {PART: len(parts) - 1}
    if isinstance(value, np.generic | Enum):
        return _plain(value.item() if isinstance(value, np.generic) else value.value, parts)
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name), parts) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(each, parts) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each, parts) for each in value]
    if isinstance(value, _WORDS):
        return value
    raise TypeError(f"{type(value).__name__} is not plain data")


def decode(kind: Any, document: bytes, parts: Sequence[Array]) -> Any:
    """The value of a type: of builtin types, paths, arrays, enumerations, and dataclasses, tuples and mappings of
    them. Raises ResultError."""
    try:
        return _read(kind, json.loads(document), parts)
    except (ValueError, RecursionError) as error:  # of JSON, of UTF-8, and ours
        raise ResultError(str(error)[:200]) from None


def _read(kind: Any, value: Any, parts: Sequence[Array]) -> Any:
    if kind in _WORDS or kind is None:
        return _word(kind, value)
    origin = typing.get_origin(kind) or kind
    if reader := _READERS.get(origin):
        return reader(typing.get_args(kind), value, parts)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, parts)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(value)
    raise ResultError(f"{kind} is no type of a result")


def _word(kind: Any, value: Any) -> Any:
    kinds = (int, float) if kind is float else (type(None) if kind is None else kind,)
    if type(value) not in kinds:
        raise ResultError(f"{_short(value)} is no {getattr(kind, '__name__', kind)}")
    return value


def _dataclass(kind: Any, value: Any, parts: Sequence[Array]) -> Any:
    """Each field has to be there, and no other: an optional one, too, for we have sent it."""
    hints = _hints(kind)
    if not isinstance(value, dict) or value.keys() != hints.keys():
        raise ResultError(f"{_short(value)} is no {kind.__name__}")
    return kind(**{name: _read(hint, value[name], parts) for name, hint in hints.items()})


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _union(kinds: Sequence[Any], value: Any, parts: Sequence[Array]) -> Any:
    for kind in kinds:
        try:
            return _read(kind, value, parts)
        except ValueError:
            continue
    raise ResultError(f"{_short(value)} is none of {', '.join(map(str, kinds))}")


def _tuple(kinds: Sequence[Any], value: Any, parts: Sequence[Array]) -> Any:
    if not isinstance(value, list) or (kinds[-1] is not ... and len(value) != len(kinds)):
        raise ResultError(f"{_short(value)} is no tuple")
    each = (kinds[0],) * len(value) if kinds[-1] is ... else kinds
    return tuple(_read(kind, element, parts) for kind, element in zip(each, value, strict=True))


def _arrays(_kinds: Sequence[Any], value: Any, parts: Sequence[Array]) -> Any:
    """A list in a result is a sequence of ONNX: its elements are arrays."""
    if not isinstance(value, list):
        raise ResultError(f"{_short(value)} is no list")
    return [_array((), element, parts) for element in value]


def _mapping(kinds: Sequence[Any], value: Any, parts: Sequence[Array]) -> Any:
    if not isinstance(value, dict):
        raise ResultError(f"{_short(value)} is no mapping")
    return {name: _read(kinds[1], each, parts) for name, each in value.items()}


def _literal(kinds: Sequence[Any], value: Any, _parts: Sequence[Array]) -> Any:
    if not isinstance(value, str) or value not in kinds:
        raise ResultError(f"{_short(value)} is none of {kinds}")
    return value


def _array(_kinds: Sequence[Any], value: Any, parts: Sequence[Array]) -> Array:
    match value:
        case {"part": number} if len(value) == 1 and type(number) is int and 0 <= number < len(parts):
            return parts[number]
        case {"texts": list(texts), "shape": list(shape)} if len(value) == 2 and all(type(t) is str for t in texts):
            if all(type(dim) is int and dim >= 0 for dim in shape):
                return np.array([*texts, None], object)[:-1].reshape(shape)  # numpy would make a `U` of text alone
    raise ResultError(f"{_short(value)} is no array")


def _bytes(_kinds: Sequence[Any], value: Any, parts: Sequence[Array]) -> bytes:
    array = _array((), value, parts)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ResultError("an array is no bytes")
    return array.tobytes()


def _path(_kinds: Sequence[Any], value: Any, _parts: Sequence[Array]) -> Path:
    """A path is text to show: whoever opens a file has its name from our own side."""
    return Path(_word(str, value))


def _short(value: Any) -> str:
    return repr(value)[:60]


_READERS: Mapping[Any, Callable[[Sequence[Any], Any, Sequence[Array]], Any]] = {
    types.UnionType: _union, typing.Union: _union, tuple: _tuple, list: _arrays, Mapping: _mapping, dict: _mapping,
    typing.Literal: _literal, np.ndarray: _array, bytes: _bytes, Path: _path,
}  # fmt: skip
