"""JSON that every reader takes: `{"$float": "inf"}` stands for the floats that JSON has no number for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import msgspec

FLOAT = "$float"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
"""Not msgspec's, which writes NaN as null, characters beyond ASCII as they are, and some floats with other digits."""

_FAST_ENCODER = msgspec.json.Encoder()
_BEYOND_ASCII = re.compile(r"[^ -~]")

_DECODER = json.JSONDecoder(parse_constant=_refuse)
_FAST_DECODER = msgspec.json.Decoder()


def dumps(value: Any) -> str:
    """One line of ASCII. Anything that JSON has no type for becomes its `tolist()` (numpy) or its repr."""
    try:
        return _ENCODER.encode(value)
    except (ValueError, TypeError):
        return _ENCODER.encode(plain(value))


def dumps_without_floats(value: Any) -> str:
    """As `dumps`, several times as fast, of a value that holds no floats."""
    try:
        text = _FAST_ENCODER.encode(value).decode()
    except (UnicodeError, TypeError, OverflowError):  # half of a surrogate pair, numbers of numpy, a larger number
        return dumps(value)
    return text if text.isascii() and text.isprintable() else _BEYOND_ASCII.sub(_escape, text)


def _escape(character: re.Match[str]) -> str:
    return json.dumps(character[0])[1:-1]


def loads(text: bytes | str) -> Any:
    """What `dumps` wrote. Raises ValueError (RecursionError for absurd nesting) when it is not JSON."""
    value = loads_plain(text)
    return _revive(value) if has_special_floats(text) else value


def loads_plain(text: bytes | str) -> Any:
    """As `loads`, in JSON's own types only: what stands for a float stays as it is, and can be written as it is."""
    try:
        return _FAST_DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return _decode_all(text)


def has_special_floats(text: bytes | str) -> bool:
    """Whether a text may hold infinities or NaN."""
    return b"$float" in text if isinstance(text, bytes) else FLOAT in text


def plain(value: Any) -> Any:
    """`value` in JSON's own types only."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {FLOAT: str(float(value))}
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return plain(value.tolist()) if hasattr(value, "tolist") else repr(value)


def _decode_all(text: bytes | str) -> Any:
    """Also what msgspec refuses and `dumps` may have written: halves of surrogate pairs, as of a file's name."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    return _DECODER.decode(text)


def _revive(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {FLOAT} and value[FLOAT] in ("inf", "-inf", "nan"):
            return float(value[FLOAT])
        return {key: _revive(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_revive(item) for item in value]
    return value
