"""Dataclasses from JSON: every kind of annotation, and words for what does not fit it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from epcheck.conformance.records import strict_json, typed_json
from epcheck.conformance.records.error import RecordError


@dataclass(frozen=True)
class Inner:
    number: int
    ratio: float = 0.5


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    maybe: Inner | None
    many: tuple[Inner, ...]
    pair: tuple[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    anything: Any
    flag: bool = False


WHOLE: dict[str, Any] = {
    "name": "a",
    "inner": {"number": 1, "ratio": 2},
    "maybe": None,
    "many": [{"number": 2}, {"number": 3, "ratio": 1.5}],
    "pair": ["b", 4],
    "shapes": {"x": [], "y": [1, 2]},
    "anything": [{}],
}
READ = Outer(
    name="a",
    inner=Inner(1, 2),
    maybe=None,
    many=(Inner(2), Inner(3, 1.5)),
    pair=("b", 4),
    shapes={"x": (), "y": (1, 2)},
    anything=[{}],
)


def test_what_fits_is_read_and_what_is_not_known_is_passed_over() -> None:
    later = {**WHOLE, "of a later version": 3}
    assert typed_json.read(Outer, later) == READ
    assert typed_json.loads(Outer, json.dumps(later)) == READ
    assert typed_json.loads(Outer, json.dumps(later).encode()) == READ


WRONG = [
    ("name", 3, "name: expected str, got int"),
    ("inner", [], "inner: expected object, got array"),
    ("inner", {}, "inner: object missing required field number"),
    ("inner", {"number": True}, "inner.number: expected int, got bool"),
    ("inner", {"number": 1, "ratio": "x"}, "inner.ratio: expected float, got str"),
    ("maybe", 0, "maybe: expected object | null, got int"),
    ("many", {}, "many: expected array, got object"),
    ("many", [None], "many[0]: expected object, got null"),
    ("pair", ["b"], "pair: expected array of length 2, got 1"),
    ("pair", [4, "b"], "pair[0]: expected str, got int"),
    ("shapes", {"x": [1.5]}, "shapes[...][0]: expected int, got float"),
    ("flag", 1, "flag: expected bool, got int"),
]


@pytest.mark.parametrize(("field", "value", "words"), WRONG)
def test_what_does_not_fit_is_named(field: str, value: object, words: str) -> None:
    wrong = {**WHOLE, field: value}
    for read in (lambda: typed_json.read(Outer, wrong), lambda: typed_json.loads(Outer, json.dumps(wrong))):
        with pytest.raises(RecordError) as caught:
            read()
        assert str(caught.value) == f"not a Outer: {words}"


def test_what_is_missing_at_the_top_is_named() -> None:
    with pytest.raises(RecordError, match=r"^not a Inner: object missing required field number$"):
        typed_json.loads(Inner, "{}")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_floats_without_a_number_in_json_come_back(value: float) -> None:
    text = strict_json.dumps(typed_json.to_json(Inner(1, value)))
    assert text == f'{{"number":1,"ratio":{{"$float":"{value}"}}}}'
    assert repr(typed_json.loads(Inner, text)) == repr(Inner(1, value))


@pytest.mark.parametrize("name", ["\ud800", "a\udcffb", "ä", "\U0001f600", "\0"])
def test_any_string_comes_back(name: str) -> None:
    """The name of a file may hold half a pair of surrogates."""
    text = strict_json.dumps({**WHOLE, "name": name})
    assert text.isascii()
    assert typed_json.loads(Outer, text).name == name
    assert strict_json.loads(text)["name"] == name


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**200])
def test_an_integer_beyond_64_bits_comes_back(number: int) -> None:
    text = strict_json.dumps({"number": number})
    assert strict_json.loads(text) == {"number": number}
    assert typed_json.loads(Inner, text).number == number


@pytest.mark.parametrize("text", ["", "{", '{"number":NaN}', '{"number":1}}', b"\xff", "[1,]"])
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        strict_json.loads(text)
    with pytest.raises(ValueError):
        typed_json.loads(Inner, text)


def test_absurd_nesting_is_a_recursion_error() -> None:
    with pytest.raises(RecursionError):
        strict_json.loads("[" * 100_000 + "]" * 100_000)
