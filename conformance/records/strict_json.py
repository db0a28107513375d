"""JSON that every reader takes: `{"$float": "inf"}` stands for the floats that JSON has no number for."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

FLOAT = "$float"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_constant=_refuse)


def dumps(value: Any) -> str:
    """One line of ASCII. Anything that JSON has no type for becomes its `tolist()` (numpy) or its repr."""
    try:
        return _ENCODER.encode(value)
    except (ValueError, TypeError):
        return _ENCODER.encode(plain(value))


def loads(text: bytes | str) -> Any:
    """What `dumps` was given. Raises ValueError (RecursionError for absurd nesting) when it is not JSON."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    value = _DECODER.decode(text)
    return _revive(value) if FLOAT in text else value


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


def _revive(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {FLOAT} and value[FLOAT] in ("inf", "-inf", "nan"):
            return float(value[FLOAT])
        return {key: _revive(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_revive(item) for item in value]
    return value
