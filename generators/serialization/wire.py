"""Protobuf's wire format, for messages that are put together of parts which are serialized already.

Each field of a message is a key (its number and how it is written) and its value
(https://protobuf.dev/programming-guides/encoding/). Making and copying a message object for each part of a model takes
most of the time that a small model takes to be made; many of these parts are the same from case to case.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, EIGHT_BYTES, DELIMITED, FOUR_BYTES = 0, 1, 2, 5
"""How a value is written: as a number, or as bytes; DELIMITED ones begin with their length."""


def varint(number: int) -> bytes:
    """A number that is not negative: seven bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def field(number: int, content: bytes) -> bytes:
    """A field below 16 that is a message, a text or bytes."""
    length = len(content)
    if length <= 0x7F:
        return bytes((number << 3 | DELIMITED, length)) + content
    return bytes((number << 3 | DELIMITED,)) + varint(length) + content


def fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """(number, the field as it is written, its content) of each field; a content is empty unless it is DELIMITED.

    Raises IndexError or ValueError for what is no message.
    """
    at, end = 0, len(message)
    while at < end:
        start = at
        key, at = _varint_at(message, at)
        kind, content = key & 7, b""
        if kind == DELIMITED:
            length, at = _varint_at(message, at)
            content, at = message[at : at + length], at + length
        elif kind == VARINT:
            _, at = _varint_at(message, at)
        elif kind in (FOUR_BYTES, EIGHT_BYTES):
            at += 4 if kind == FOUR_BYTES else 8
        else:
            raise ValueError(f"a field is written in the way {kind}, which protobuf does not have")
        if at > end:
            raise ValueError("a message ends within a field")
        yield key >> 3, message[start:at], content


def _varint_at(message: bytes, at: int) -> tuple[int, int]:
    """The number that begins there, and where it ends."""
    byte = message[at]
    if byte <= 0x7F:
        return byte, at + 1
    number, shift = byte & 0x7F, 7
    while byte > 0x7F:
        at += 1
        byte = message[at]
        number |= (byte & 0x7F) << shift
        shift += 7
    return number, at + 1
