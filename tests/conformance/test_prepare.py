"""A prepared case survives its way to the cache and back to the last bit, and nothing else comes back from there."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_cases import identity

from epcheck.conformance import facts, prepare, record
from epcheck.conformance.cache import Cache
from epcheck.conformance.prepare import Prepared
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase, Case

TOPK = suite.case_by_id("TopK-11/float32/defaults[initializer]")


@pytest.fixture(scope="module")
def whole_suite() -> list[tuple[BuiltCase, Prepared, Prepared]]:
    """Of every operator, version and dtype: as it is built, as it is prepared, and as it comes back from its row."""
    built = [case.build() for case in suite.cases(thin=True)]
    prepared = [prepare.of(one) for one in built]
    loaded = [prepare.from_row(one.case, prepare.to_row(one)) for one in prepared]
    return list(zip(built, prepared, loaded, strict=True))


def lost(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two values of the same kind differ, down to the bits of their arrays."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        if (one.dtype, one.shape, one.tobytes()) != (other.dtype, other.shape, other.tobytes()):
            yield path
    elif type(one) is not type(other):
        yield f"{path}: {type(one).__name__} became {type(other).__name__}"
    elif dataclasses.is_dataclass(one):
        for item in dataclasses.fields(one):
            yield from lost(getattr(one, item.name), getattr(other, item.name), f"{path}.{item.name}")
    elif isinstance(one, tuple) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from lost(*pair, f"{path}[{index}]")
    elif one != other:
        yield f"{path}: {one!r} became {other!r}"


def test_what_is_lost_is_seen() -> None:
    """The comparison of these tests, tested."""
    output = TOPK.build().truth
    assert list(lost(output, output)) == []
    assert list(lost((np.float32([0.0]),), (np.float32([-0.0]),))) == ["[0]"]
    assert list(lost((np.float32([1]), 2), (np.float64([1]), 2.0))) == ["[0]", "[1]: int became float"]


def test_no_truth_loses_a_bit(whole_suite: list[tuple[BuiltCase, Prepared, Prepared]]) -> None:
    """Arrays, bounds, floors and their sources, what may be one step beside, every answer that is accepted."""
    assert [found for built, _, loaded in whole_suite for found in lost(built.truth, loaded.truth, built.case.id)] == []
    kinds = {type(built.truth).__name__ for built, _, _ in whole_suite}
    assert kinds == {"Outputs", "Selection", "Refusal"}


def test_no_feed_loses_a_bit(whole_suite: list[tuple[BuiltCase, Prepared, Prepared]]) -> None:
    for built, _, loaded in whole_suite:
        feeds = {name: np.frombuffer(data, dtype).reshape(shape) for name, dtype, shape, data in loaded.feeds}
        assert list(feeds) == list(built.feeds)
        assert list(lost(tuple(built.feeds.values()), tuple(feeds.values()), built.case.id)) == []


def test_no_fact_loses_a_word(whole_suite: list[tuple[BuiltCase, Prepared, Prepared]]) -> None:
    for built, prepared, loaded in whole_suite:
        told = dataclasses.replace(facts.of(built), rounded=loaded.facts.rounded)
        assert loaded.facts.text == prepared.facts.text == told.text


def test_facts_are_equal_whether_they_were_kept_or_not(
    whole_suite: list[tuple[BuiltCase, Prepared, Prepared]],
) -> None:
    different = [p.case.id for _, p, loaded in whole_suite if p.facts != loaded.facts]
    assert different == []
    assert any(isinstance(value, list) for _, p, _ in whole_suite for value in p.facts.attributes.values())


def test_everything_else_is_equal_as_well(whole_suite: list[tuple[BuiltCase, Prepared, Prepared]]) -> None:
    names = {item.name for item in dataclasses.fields(Prepared)} - {"facts"}
    assert {"model", "feeds", "oracles", "answer", "digest", "expected"} <= names
    for _, prepared, loaded in whole_suite:
        for name in names:
            assert getattr(prepared, name) == getattr(loaded, name), (prepared.case.id, name)


def test_preparing_again_gives_the_same_row() -> None:
    for case in suite.cases(["Slice", "TopK"], ["int8"]):
        assert prepare.to_row(prepare.of(case.build())) == prepare.to_row(prepare.of(case.build()))


def test_what_comes_back_cannot_be_changed() -> None:
    prepared = prepare.of(TOPK.build())
    truth = prepare.from_row(TOPK, prepare.to_row(prepared)).truth
    with pytest.raises(ValueError, match="read-only"):
        truth.accepted[0][0][0] = 1  # type: ignore[union-attr]


def test_every_half_row_is_refused() -> None:
    row = prepare.to_row(prepare.of(TOPK.build()))
    for length in range(len(row)):
        with pytest.raises(ValueError, match="not a prepared case: "):
            prepare.from_row(TOPK, row[:length])


@pytest.mark.parametrize(
    "foreign",
    [
        None, 7, (), (1, 2, 3), ({}, "", ()), ("a" * 20, "", ()), [[]], {"model": b""},
    ],
    ids=repr,
)  # fmt: skip
def test_another_row_is_refused(foreign: Any) -> None:
    with pytest.raises(ValueError, match="not a prepared case: "):
        prepare.from_row(TOPK, pickle.dumps(foreign))


@pytest.mark.parametrize(
    "row",
    [
        b"", b"garbage", b"\x80\x05", b"\x80\x05\x95\xff\xff\xff\xff\xff\xff\xff\xff.", b"\x80\x05\x8e" + b"\xff" * 8,
        b"\x80\x05h\xff.", b"\x80\x05}(K\x01.", b"(" * 10_000,
    ],
)  # fmt: skip
def test_what_is_no_pickle_is_refused(row: bytes) -> None:
    with pytest.raises(ValueError, match="not a prepared case: "):
        prepare.from_row(TOPK, row)


class Payload:
    """What an attacker puts into a pickle: a call that loading it makes."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.witness, "executed")


def test_a_row_executes_nothing(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    payload = pickle.dumps(Payload(witness))
    pickle.loads(payload)
    assert witness.read_text() == "executed"
    witness.unlink()
    with pytest.raises(ValueError, match=r"is no builtin type"):
        prepare.from_row(TOPK, payload)
    with pytest.raises(ValueError, match=r"is no builtin type"):
        prepare.from_row(TOPK, pickle.dumps(({"model": Payload(witness)}, "", ())))
    assert not witness.exists()


@pytest.mark.parametrize("harmless", [OSError, print, np.float32(1), Path("a"), record.Opinion("cpu", "pass")])
def test_a_row_makes_no_class_not_even_a_harmless_one(harmless: Any) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is no builtin type"):
        prepare.plain_pickle(pickle.dumps(harmless))


@pytest.mark.parametrize("plain", [{"a": (1, 2.5, None, b"x", "y", True)}, [[]], float("inf"), -(2**70)])
def test_builtin_types_are_all_that_a_row_needs(plain: Any) -> None:
    assert prepare.plain_pickle(pickle.dumps(plain)) == plain


def test_a_case_that_cannot_be_built_is_told_with_where_and_why() -> None:
    def broken(case: Case) -> BuiltCase:
        raise ZeroDivisionError(f"{case.sample}\nhas no shape")

    unprepared = prepare.prepare(dataclasses.replace(identity("a"), builder=broken))
    assert isinstance(unprepared, prepare.Unprepared)
    assert unprepared.why == "the case cannot be built: ZeroDivisionError: a has no shape"
    assert "in broken" in unprepared.log


def test_the_key_is_that_of_the_case_s_id(tmp_path: Path) -> None:
    same, other = dataclasses.replace(TOPK), dataclasses.replace(TOPK, variant="runtime")
    assert prepare.key(TOPK) == prepare.key(same) != prepare.key(other)
    row = prepare.to_row(prepare.of(TOPK.build()))
    with closing(Cache(tmp_path / "cache.sqlite")) as kept:
        kept.put({prepare.key(TOPK): row})
    with closing(Cache(tmp_path / "cache.sqlite")) as kept:
        assert kept.get([prepare.key(same), prepare.key(other)]) == {prepare.key(TOPK): row}


def named(prepared: Prepared) -> Mapping[str, bytes]:
    return {name: data for name, _, _, data in prepared.expected}


def test_what_is_surely_right_is_what_the_comparison_accepts() -> None:
    """A truth that is defined to the last bit, and one that leaves an order open: the preferred answer is right."""
    built = TOPK.build()
    prepared = prepare.of(built)
    values, indices = built.truth.accepted[0]  # type: ignore[union-attr]
    assert named(prepared) == {"Values": values.tobytes(), "Indices": indices.tobytes()}
    refused = prepare.of(suite.case_by_id("Slice-13/float32/refused_step_0[runtime]").build())
    assert (refused.must_be_refused, refused.expected, refused.expected_bits) == (True, (), "")
