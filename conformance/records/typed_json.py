"""Frozen dataclasses from JSON's own types: checked, by readers that are put together once for each type.

A type is described by its annotations: dataclasses of str, int, float, bool, `X | None`, `tuple[X, ...]`,
`tuple[X, Y]`, `Mapping[str, X]` and Any. One that JSON has in a form of its own has a class method `from_fields`.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

R = TypeVar("R")

Reader = Callable[[Any], Any]
"""Gives what a value of JSON stands for. Raises TypeError, in words, when it cannot stand for that."""

IN_WORDS = {dict: "object", types.NoneType: "null"}


class Field(NamedTuple):
    """A field of a dataclass: what reads it, and whether it has to be there."""

    name: str
    read: Reader
    required: bool


def read(cls: type[R], data: Any) -> R:
    """The dataclass that `data` stands for. Raises TypeError, which names the field that is missing or wrong."""
    kind: Any = cls
    value: R = reader(kind)(data)
    return value


@cache
def reader(kind: Any) -> Reader:
    """What reads a `kind`."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if hasattr(kind, "from_fields"):
        return typing.cast(Reader, kind.from_fields)
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(kind)
    if origin is types.UnionType:
        return _optional_reader(next(argument for argument in arguments if argument is not types.NoneType))
    if origin is tuple:
        return _tuple_reader(arguments)
    if origin is Mapping:
        return _mapping_reader(arguments[1])
    return outline(kind)


@cache
def outline(kind: Any) -> Reader:
    """What takes what JSON may have for a `kind` as it is, without looking into a list or an object."""
    if kind is Any:
        return lambda value: value
    taken = _json_types(kind)

    def take(value: Any) -> Any:
        if type(value) not in taken:
            raise _wrong(value, " or ".join(sorted(IN_WORDS.get(one, one.__name__) for one in taken)))
        return value

    return take


@cache
def fields(cls: Any, read_by: Callable[[Any], Reader] = reader) -> tuple[Field, ...]:
    """The fields of a dataclass, each with the reader that `read_by` gives for its type."""
    hints = typing.get_type_hints(cls)
    return tuple(
        Field(field.name, read_by(hints[field.name]), field.default is dataclasses.MISSING)
        for field in dataclasses.fields(cls)
    )


def read_fields(known: Iterable[Field], data: Any) -> dict[str, Any]:
    """The values of the fields that are there; what else `data` has is passed over.

    Raises TypeError, which names the field, when one is missing or of another kind, or `data` is no object.
    """
    if type(data) is not dict:
        raise _wrong(data, "object")
    found = {}
    try:
        for name, read_field, required in known:
            if name in data:
                found[name] = read_field(data[name])
            elif required:
                raise TypeError("is missing")
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    return found


def _dataclass_reader(cls: Any) -> Reader:
    known = fields(cls)
    return lambda data: cls(**read_fields(known, data))


def _optional_reader(kind: Any) -> Reader:
    read_it = reader(kind)
    return lambda data: None if data is None else read_it(data)


def _tuple_reader(kinds: tuple[Any, ...]) -> Reader:
    """Reads a tuple of `kinds`, or one of any length when an ellipsis follows the first."""
    each, is_list = [reader(kind) for kind in kinds if kind is not ...], outline(list)
    plain = frozenset((kinds[0],)) & {str, int}

    def any_length(data: Any) -> tuple[Any, ...]:
        if plain.issuperset(map(type, is_list(data))):  # a heat map has hundreds of numbers
            return tuple(data)
        return tuple(map(each[0], data))

    def fixed_length(data: Any) -> tuple[Any, ...]:
        if len(is_list(data)) != len(each):
            raise _wrong(data, f"list of {len(each)}")
        return tuple([read_item(item) for read_item, item in zip(each, data, strict=True)])

    return any_length if kinds[-1] is ... else fixed_length


def _mapping_reader(kind: Any) -> Reader:
    read_item, is_object = reader(kind), outline(dict)
    return lambda data: {name: read_item(item) for name, item in is_object(data).items()}


def _json_types(kind: Any) -> frozenset[type]:
    """The types in which JSON has a `kind`."""
    origin = typing.get_origin(kind)
    if origin is types.UnionType:
        return frozenset().union(*map(_json_types, typing.get_args(kind)))
    if origin is tuple:
        return frozenset((list,))
    if origin is Mapping or dataclasses.is_dataclass(kind):
        return frozenset((dict,))
    return frozenset((float, int)) if kind is float else frozenset((kind,))


def _wrong(value: Any, words: str) -> TypeError:
    return TypeError(f"{str(value)[:80]!r} is no {words}")
