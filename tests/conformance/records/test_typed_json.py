"""Dataclasses from JSON: every kind of annotation, and words for what does not fit it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from epcheck.conformance.records import typed_json


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


def test_what_fits_is_read_and_what_is_not_known_is_passed_over() -> None:
    assert typed_json.read(Outer, {**WHOLE, "of a later version": 3}) == Outer(
        name="a",
        inner=Inner(1, 2),
        maybe=None,
        many=(Inner(2), Inner(3, 1.5)),
        pair=("b", 4),
        shapes={"x": (), "y": (1, 2)},
        anything=[{}],
    )


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", 3, "name: '3' is no str"),
        ("inner", [], "inner: '[]' is no object"),
        ("inner", {}, "inner: number: is missing"),
        ("inner", {"number": True}, "inner: number: 'True' is no int"),
        ("inner", {"number": 1, "ratio": "x"}, "inner: ratio: 'x' is no float or int"),
        ("maybe", 0, "maybe: '0' is no object"),
        ("many", {}, "many: '{}' is no list"),
        ("many", [None], "many: 'None' is no object"),
        ("pair", ["b"], "pair: \"['b']\" is no list of 2"),
        ("pair", [4, "b"], "pair: '4' is no str"),
        ("shapes", {"x": [1.5]}, "shapes: '1.5' is no int"),
        ("flag", 1, "flag: '1' is no bool"),
    ],
)
def test_what_does_not_fit_is_named(field: str, value: object, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        typed_json.read(Outer, {**WHOLE, field: value})
    assert str(caught.value) == words


def test_an_outline_does_not_look_inside() -> None:
    damaged = {**WHOLE, "inner": {}, "many": [3], "pair": [], "shapes": {"x": 3}}
    assert typed_json.read_fields(typed_json.fields(Outer, typed_json.outline), damaged) == damaged


@pytest.mark.parametrize(("field", "value"), [("name", 3), ("inner", []), ("maybe", 3), ("many", {}), ("shapes", [])])
def test_an_outline_tells_a_list_from_an_object(field: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"{field}: .* is no "):
        typed_json.read_fields(typed_json.fields(Outer, typed_json.outline), {**WHOLE, field: value})
