"""A large .onnx file is read without the weights that are inside it: they stay there, as external data of the model.

The parsed message has for each of them the place of its bytes in the file, as `TensorProto.external_data` says it, so
that no process but that of the session holds them. Source of the field numbers: onnx.proto; of their encoding: Protocol
Buffers, "Encoding".
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from epcheck.generators.serialization import wire
from epcheck.generators.serialization.wire import DELIMITED, EIGHT_BYTES, FOUR_BYTES, VARINT

LARGE_FILE = 256 << 20
"""Bytes of the smallest file whose weights stay in it."""

LARGE_TENSOR = 1 << 16
"""Bytes of the smallest tensor that stays in its file."""

GRAPH, INITIALIZER, DATA_LOCATION, EXTERNAL_DATA, RAW_DATA = 7, 5, 14, 13, 9
"""ModelProto.graph, GraphProto.initializer, and three fields of TensorProto."""


class NotPlainError(ValueError):
    """A file that this module does not read, though it may be a model: nothing is said of it."""


@dataclass(frozen=True)
class _Field:
    """A field of a message. start, value, end: where its key, its value and what follows it begin."""

    number: int
    kind: int
    start: int
    value: int
    end: int


def parse(path: Path) -> onnx.ModelProto:
    """The model of a file, whose large initializers have their data in that file. Raises NotPlainError, OSError."""
    if set(path.name) & set("\\:\0"):
        raise NotPlainError("its name cannot be that of external data")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        fields = list(_fields(content, 0, len(content)))
        graphs = [field for field in fields if field.number == GRAPH]
        if len(graphs) != 1 or graphs[0].kind != DELIMITED:
            raise NotPlainError("it has no graph, or several")
        places: dict[int, tuple[int, int]] = {}
        graph = _without_weights(content, graphs[0], places)
        rest = b"".join(content[field.start : field.end] for field in fields if field.number != GRAPH)
    try:
        model = onnx.load_model_from_string(rest)
        model.graph.ParseFromString(graph)
    except DecodeError:
        raise NotPlainError("its bytes cannot be parsed") from None
    for at, (offset, length) in places.items():
        tensor = model.graph.initializer[at]
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", path.name), ("offset", str(offset)), ("length", str(length))):
            tensor.external_data.add(key=key, value=value)
    return model


def _without_weights(content: mmap.mmap, graph: _Field, places: dict[int, tuple[int, int]]) -> bytes:
    """The bytes of a graph without those of large initializers. places: index of an initializer -> offset and length of
    its data; they are added."""
    parts: list[bytes] = []
    count = 0
    for field in _fields(content, graph.value, graph.end):
        if field.number != INITIALIZER or field.kind != DELIMITED:
            parts.append(content[field.start : field.end])
            continue
        inner = list(_fields(content, field.value, field.end)) if field.end - field.value > LARGE_TENSOR else []
        data = [each for each in inner if each.number == RAW_DATA]
        if len(data) == 1 and data[0].kind == DELIMITED and data[0].end - data[0].value >= LARGE_TENSOR:
            if any(each.number in (DATA_LOCATION, EXTERNAL_DATA) for each in inner):
                raise NotPlainError("a tensor says that its data is elsewhere, and has data")
            places[count] = data[0].value, data[0].end - data[0].value
            kept = b"".join(content[each.start : each.end] for each in inner if each.number != RAW_DATA)
            parts.append(content[field.start : field.start + 1] + wire.varint(len(kept)) + kept)
        else:
            parts.append(content[field.start : field.end])
        count += 1
    return b"".join(parts)


def _fields(content: mmap.mmap, start: int, end: int) -> Iterator[_Field]:
    """The fields of the message in these bytes."""
    at = start
    while at < end:
        key, value = _read_varint(content, at, end)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            after = _read_varint(content, value, end)[1]
        elif kind == DELIMITED:
            length, value = _read_varint(content, value, end)
            after = value + length
        elif kind in (EIGHT_BYTES, FOUR_BYTES):
            after = value + (8 if kind == EIGHT_BYTES else 4)
        else:
            raise NotPlainError(f"it has a field of wire type {kind}")
        if after > end or not number:
            raise NotPlainError("a field ends behind its message")
        yield _Field(number, kind, at, value, after)
        at = after


def _read_varint(content: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """A number of 64 bits at most, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise NotPlainError("a number has no end")
