"""Results travel as data: what arrives is what was sent, of the type that the reader names, or nothing."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest

from epcheck.api.models.examining.typed_data import ResultError, decode, encode
from epcheck.generators.array import Array
from epcheck.generators.citation import Citation, CitationKind, Publisher, statement
from epcheck.generators.truth import Exact, OneStep, Output, Ulp
from epcheck.models.graph.feed import Feed


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    number: int | None = None
    share: float = 0.0


@dataclass(frozen=True)
class Outer:
    name: str
    inner: tuple[Inner, ...]
    pair: tuple[str, int]
    colour: Colour
    level: Literal["all", "basic"]
    path: Path
    feeds: Mapping[str, Feed]
    attribute: int | float | str | tuple[int, ...] | tuple[float, ...] | Array
    content: bytes


OUTER = Outer(
    "a", (Inner(1, math.inf), Inner(None, 1e-300)), ("b", 2), Colour.RED, "all", Path("x/y"),
    {"none": None, "list": [np.arange(3, dtype=np.int64), np.zeros((0, 2), np.float16)],
     "text": np.array([["é", ""]], object)},
    (1.5, 2.5), b"\0\xff",
)  # fmt: skip


def sent(value: Any, kind: Any) -> Any:
    return decode(kind, *encode(value))


def test_what_was_sent_arrives() -> None:
    found = sent(OUTER, Outer)
    assert dataclasses.replace(found, feeds=OUTER.feeds) == OUTER
    assert found.feeds["none"] is None
    assert [(a.dtype, a.shape) for a in found.feeds["list"]] == [(np.int64, (3,)), (np.float16, (0, 2))]
    assert (found.feeds["text"].tolist(), found.feeds["text"].dtype) == ([["é", ""]], object)


SINCOS = Citation(CitationKind.PUBLISHED, "a table", Publisher.DIRECT3D, "sincos", purpose="cancellation")
CITING = Ulp(1.0, (statement("a text"), SINCOS), np.array([0.5]))


@pytest.mark.parametrize("bound", [Exact(), CITING, OneStep(np.array([True]))])
def test_one_of_several_dataclasses_is_known_by_its_fields(bound: Any) -> None:
    found = sent(Output("y", np.ones(1, ml_dtypes.bfloat16), bound), Output)
    assert (type(found.bound), found.value.dtype) == (type(bound), ml_dtypes.bfloat16)


def test_the_sources_of_a_bound_keep_their_kind_and_publisher() -> None:
    citations = sent(Output("y", np.ones(1), CITING), Output).bound.citations
    assert citations == CITING.citations
    assert [(type(each.kind), type(each.publisher)) for each in citations] == [
        (CitationKind, type(None)),
        (CitationKind, Publisher),
    ]


@pytest.mark.parametrize("value", [1, -0.0, "text", (), (1, 2), (1.0, 2.5), np.int64(3), np.float32(0.1)])
def test_numbers_keep_their_kind(value: Any) -> None:
    found = sent(Outer(**{**vars(OUTER), "attribute": value}), Outer).attribute
    expected = value.item() if isinstance(value, np.generic) else value
    assert (found, type(found)) == (expected, type(expected))


CHANGES: dict[str, Any] = {
    "name": [None, 1, ["a"], {"part": 0}],
    "inner": [None, {}, [{}], [{"number": 1}], [{"number": 1, "share": 0.0, "more": 1}],
              [{"number": True, "share": 1.0}]],
    "pair": [["b"], ["b", 2, 3], ["b", "2"]],
    "colour": ["blue", None, {"part": 0}, ["red"]],
    "level": ["disabled", None, ["all"], {}],
    "path": [None, 1, ["x"]],
    "feeds": [None, [], {"x": {"part": 99}}, {"x": {"part": -1}}, {"x": {"part": True}}, {"x": {"part": 0, "more": 1}},
              {"x": [["y"]]}, {"x": {"texts": [1], "shape": [1]}}, {"x": {"texts": ["a"], "shape": [2]}},
              {"x": {"texts": ["a"], "shape": [-1]}}],
    "attribute": [None, [None], {"part": 99}],
    "content": ["text", {"part": 0}, None],
}  # fmt: skip
"""Field of OUTER -> what stands there in a document of a stranger. Part 0 is an array of int64."""


@pytest.mark.parametrize(("field", "value"), [(name, each) for name, values in CHANGES.items() for each in values])
def test_what_is_of_another_type_is_refused(field: str, value: Any) -> None:
    document, parts = encode(OUTER)
    changed = json.dumps({**json.loads(document), field: value}).encode()
    with pytest.raises(ResultError):
        decode(Outer, changed, parts)


@pytest.mark.parametrize("document", [b"", b"{", b"\xff", b"[" * 100_000, b"null", b"[]", b'{"name": "a"}'])
def test_what_is_no_document_is_refused(document: bytes) -> None:
    with pytest.raises(ResultError):
        decode(Outer, document, [])


def test_no_type_is_taken_that_is_no_data() -> None:
    with pytest.raises(TypeError, match="object is not plain data"):
        encode(object())
    with pytest.raises(ResultError, match="is no type of a result"):
        decode(object, b"{}", [])
