"""What happens to files: strategies that damage bytes, and put hostile values into JSON.

`EPCHECK_FUZZ` multiplies the examples of every test in this folder: `nox -s fuzz` sets it. Without it they are a third,
the same in each run.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

FACTOR = int(os.environ.get("EPCHECK_FUZZ", "0"))

HOSTILE: tuple[Any, ...] = (
    "", "\0", "\x1b[31m\x1b]0;title\x07", "\u202egnp.exe", "<script>alert(1)</script>", "../../etc/passwd", "a\\b/c",
    "x" * 5000, "\n\n", "\ud800", "2025-13-45T99:99:99Z", "9999-12-31T23:59:59+14:00", "NaN", "[bold]", "%s{0}",
    -1, 0, 1, 2**31, 2**63 - 1, 2**64, -(2**63), 10**30, 1.5, 1e308, float("inf"), float("nan"),
    None, True, [], {}, [[]], ["x"], [1, 2, 3], {"a": {}},
)  # fmt: skip
"""Values that take the place of others."""


def examples(count: int) -> settings:
    """The settings of a test with so many examples, a third of them in the tests that are run always."""
    return settings(
        max_examples=count * FACTOR or -(-count // 3),
        derandomize=FACTOR == 0,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes after one accident: a flipped bit, another digit, a cut, a hole, a block of zeros, a repeated part."""
    kinds = ("bit", "digit", "cut", "hole", "zeros", "repeat")
    has_digits = any(48 <= byte <= 57 for byte in data)
    kind = draw(st.sampled_from(kinds if has_digits else tuple(kind for kind in kinds if kind != "digit")))
    at = draw(st.integers(0, len(data) - 1))
    end = min(len(data), at + draw(st.integers(1, 600)))
    match kind:
        case "bit":
            return data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
        case "digit":
            digits = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
            at = digits[draw(st.integers(0, len(digits) - 1))]
            return data[:at] + bytes([draw(st.integers(48, 57))]) + data[at + 1 :]
        case "cut":
            return data[:at]
        case "hole":
            return data[:at] + data[end:]
        case "zeros":
            return data[:at] + bytes(end - at) + data[end:]
    return data[:end] + data[at:end] + data[end:]


@st.composite
def damaged_lines(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes after an accident of whole lines: one doubled, lost, cut, moved, joined with the next."""
    lines = data.splitlines(keepends=True)
    at, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    match draw(st.sampled_from(("double", "lose", "cut", "move", "join", "copy over"))):
        case "double":
            lines.insert(other, lines[at])
        case "lose":
            del lines[at]
        case "cut":
            lines[at] = lines[at][: draw(st.integers(0, len(lines[at]) - 1))]
        case "move":
            lines.insert(other, lines.pop(at))
        case "join":
            lines[at] = lines[at].rstrip(b"\n")
        case "copy over":
            lines[at] = lines[other]
    return b"".join(lines)


@st.composite
def with_hostile_values(draw: st.DrawFn, document: Any) -> Any:
    """A JSON document in which one to three values, or names, are others, or are gone."""
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in _places(document) if place]
        if not places:
            break
        document = _changed(document, draw(st.sampled_from(places)), draw)
    return document


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value within one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


def _changed(value: Any, path: tuple[Any, ...], draw: st.DrawFn) -> Any:
    copy = dict(value) if isinstance(value, dict) else list(value)
    key, *rest = path
    if rest:
        copy[key] = _changed(copy[key], tuple(rest), draw)
        return copy
    kind = draw(st.sampled_from(("value", "value", "value", "name", "gone")))
    if kind == "gone":
        del copy[key]
    elif kind == "name" and isinstance(copy, dict):
        copy[str(draw(st.sampled_from(HOSTILE)))] = copy.pop(key)
    else:
        copy[key] = draw(st.sampled_from(HOSTILE))
    return copy
