"""Frozen dataclasses from JSON and as JSON, checked by msgspec.

Fields that a dataclass does not have are passed over: a later version of epcheck may have written them. A dataclass
that JSON has in a form of its own has a method `to_fields`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from epcheck.conformance.records import strict_json
from epcheck.conformance.records.error import RecordError

T = TypeVar("T")

_PLAIN = frozenset((str, int, float, bool, type(None)))


def loads(kind: type[T], text: bytes | str) -> T:
    """The `kind` that a text of strict JSON stands for.

    Raises RecordError when a field is missing or of another type, ValueError when the text is no JSON (RecursionError
    for absurd nesting).
    """
    any_kind: Any = kind
    if not strict_json.has_special_floats(text):
        try:
            value: T = _decoder(any_kind).decode(text)
        except (msgspec.DecodeError, UnicodeError):
            pass  # what strict_json takes and msgspec does not, or an error that `read` words
        else:
            return value
    return read(kind, strict_json.loads(text))


def read(kind: type[T], data: Any) -> T:
    """The `kind` that JSON's own types stand for. Raises RecordError, which names what is missing or wrong."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise RecordError(f"not a {kind.__name__}: {in_words(error)}") from error


def in_words(error: msgspec.ValidationError) -> str:
    """What is wrong with some data, and in which field: `candidate.attempts: expected int, got str`."""
    message, _, path = str(error).replace("`", "").partition(" - at $")
    where = path.removeprefix(".")
    return f"{where}: {message[0].lower()}{message[1:]}" if where else f"{message[0].lower()}{message[1:]}"


def to_json(value: Any) -> Any:
    """A dataclass as JSON's own types; fields that hold their default are left out."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if kind is list or kind is tuple:
        return [item if type(item) in _PLAIN else to_json(item) for item in value]
    if kind is dict:
        return {key: item if type(item) in _PLAIN else to_json(item) for key, item in value.items()}
    if named := _defaults(kind):
        if hasattr(value, "to_fields"):
            return value.to_fields()
        return {
            name: item if type(item) in _PLAIN else to_json(item)
            for name, default in named
            if (item := getattr(value, name)) != default or name == "schema"
        }
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


@cache
def _defaults(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """Name and default of each field of a dataclass; nothing of another type."""
    return tuple((field.name, field.default) for field in fields(kind)) if dataclasses.is_dataclass(kind) else ()


@cache
def fields(kind: type[Any]) -> tuple[dataclasses.Field[Any], ...]:
    """`dataclasses.fields`, kept."""
    return dataclasses.fields(kind)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)
