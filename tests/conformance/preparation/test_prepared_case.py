"""A prepared case survives its way to the cache and back to the last bit, and nothing else comes back from there."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from epcheck.conformance.preparation import case_facts, prepared_case
from epcheck.conformance.preparation.prepared_case import PreparedCase, PreparedRow
from epcheck.generators import suite
from epcheck.generators.case import BuiltCase, Case
from epcheck.generators.truth import Output, Outputs
from tests.conformance.small_cases import identity
from tests.generators.built_suite import built_case

FEW = ("Slice", "TopK", "Transpose", "Gather", "ReduceSum", "Gemm", "SequenceAt")

Travelled = tuple[BuiltCase, PreparedCase, PreparedCase]
"""A case as it is built, as it is prepared, and as it comes back from its row."""

TOPK = suite.case_by_id("TopK-11/float32/defaults[initializer]")


@pytest.fixture(scope="module", params=[FEW, pytest.param((), marks=pytest.mark.slow)], ids=["few", "all"])
def travelled(request: pytest.FixtureRequest) -> list[Travelled]:
    """Cases of every version and dtype of a few operators, or a sixteenth of these of all operators.

    How a value travels depends on its type and its dtype, not on the operator: a sixteenth has each many times.
    """
    cases = suite.cases(FEW, thin=True) if request.param else _sixteenth(suite.cases(thin=True))
    build = Case.build if request.param else built_case
    built = [build(case) for case in cases]
    prepared = [prepared_case.of(case) for case in built]
    loaded = [prepared_case.from_row(case.case, prepared_case.to_row(case)) for case in prepared]
    return list(zip(built, prepared, loaded, strict=True))


def _sixteenth(cases: Iterable[Case]) -> Iterator[Case]:
    """Every sixteenth case, and the first one of each operator."""
    seen: set[str] = set()
    for case in cases:
        if zlib.crc32(case.id.encode()) % 16 == 0 or case.operator_key not in seen:
            seen.add(case.operator_key)
            yield case


def lost(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Where two values of the same kind differ, down to the bits of their arrays."""
    if isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
        if (before.dtype, before.shape, before.tobytes()) != (after.dtype, after.shape, after.tobytes()):
            yield path
    elif type(before) is not type(after):
        yield f"{path}: {type(before).__name__} became {type(after).__name__}"
    elif dataclasses.is_dataclass(before):
        for item in dataclasses.fields(before):
            yield from lost(getattr(before, item.name), getattr(after, item.name), f"{path}.{item.name}")
    elif isinstance(before, tuple) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from lost(*pair, f"{path}[{index}]")
    elif before != after:
        yield f"{path}: {before!r} became {after!r}"


def test_what_is_lost_is_seen() -> None:
    """The comparison of these tests, tested."""
    output = TOPK.build().truth
    assert list(lost(output, output)) == []
    assert list(lost((np.float32([0.0]),), (np.float32([-0.0]),))) == ["[0]"]
    assert list(lost((np.float32([1]), 2), (np.float64([1]), 2.0))) == ["[0]", "[1]: int became float"]


def test_no_truth_loses_a_bit(travelled: list[Travelled]) -> None:
    """Arrays, bounds, floors and their sources, what may be one step beside, every answer that is accepted."""
    assert [found for built, _, loaded in travelled for found in lost(built.truth, loaded.truth, built.case.id)] == []
    kinds = {type(built.truth).__name__ for built, _, _ in travelled}
    assert kinds == {"Outputs", "Selection", "Refusal"}


def test_no_feed_loses_a_bit(travelled: list[Travelled]) -> None:
    for built, _, loaded in travelled:
        feeds = {name: np.frombuffer(data, dtype).reshape(shape) for name, dtype, shape, data in loaded.feeds}
        assert list(feeds) == list(built.feeds)
        assert list(lost(tuple(built.feeds.values()), tuple(feeds.values()), built.case.id)) == []


def test_no_fact_loses_a_word(travelled: list[Travelled]) -> None:
    assert [p.case.id for _, p, loaded in travelled if loaded.facts.text != p.facts.text] == []
    for built, prepared, loaded in travelled:
        facts = dataclasses.replace(case_facts.of(built), rounded=loaded.facts.rounded)
        assert prepared.facts.text == facts.text


def test_facts_are_equal_whether_they_were_kept_or_not(
    travelled: list[Travelled],
) -> None:
    different = [p.case.id for _, p, loaded in travelled if p.facts != loaded.facts]
    assert different == []
    assert any(isinstance(value, list) for _, p, _ in travelled for value in p.facts.attributes.values())


def test_everything_else_is_equal_as_well(travelled: list[Travelled]) -> None:
    names = set(PreparedCase._fields) - {"facts"}
    assert {"model", "feeds", "oracles", "answer", "digest", "expected"} <= names
    for _, prepared, loaded in travelled:
        for name in names:
            assert getattr(prepared, name) == getattr(loaded, name), (prepared.case.id, name)


def test_preparing_again_gives_the_same_row() -> None:
    for case in suite.cases(["Slice", "TopK"], ["int8"]):
        assert prepared_case.to_row(prepared_case.of(case.build())) == prepared_case.to_row(
            prepared_case.of(case.build())
        )


def test_what_comes_back_cannot_be_changed() -> None:
    prepared = prepared_case.of(TOPK.build())
    truth = prepared_case.from_row(TOPK, prepared_case.to_row(prepared)).truth
    with pytest.raises(ValueError, match="read-only"):
        truth.accepted[0][0][0] = 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "foreign",
    [
        None, 7, (), (1, 2, 3), ({}, "", ()), ("a" * 20, "", ()), [[]], {"model": b""}, b"", b"garbage",
        prepared_case.to_row(prepared_case.of(TOPK.build()))[:-1],
    ],
    ids=lambda row: repr(row)[:30],
)  # fmt: skip
def test_another_row_is_refused(foreign: Any) -> None:
    with pytest.raises(ValueError, match="not a prepared case: "):
        prepared_case.from_row(TOPK, foreign)


def test_a_row_holds_builtin_types_alone(travelled: list[Travelled]) -> None:
    for _, prepared, _ in travelled:
        row = prepared_case.to_row(prepared)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(row), type=PreparedRow) == row


def test_a_case_that_cannot_be_built_is_told_with_where_and_why() -> None:
    def broken(case: Case) -> BuiltCase:
        raise ZeroDivisionError(f"{case.sample}\nhas no shape")

    unbuilt_case = prepared_case.prepare(dataclasses.replace(identity("a"), builder=broken))
    assert isinstance(unbuilt_case, prepared_case.UnbuiltCase)
    assert unbuilt_case.why == "the case cannot be built: ZeroDivisionError: a has no shape"
    assert "in broken" in unbuilt_case.log


def test_a_case_of_too_many_bytes_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    size = prepared_case.of(TOPK.build()).size_bytes
    monkeypatch.setattr(prepared_case, "MOST_BYTES", size)
    assert isinstance(prepared_case.prepare(TOPK), PreparedCase)
    monkeypatch.setattr(prepared_case, "MOST_BYTES", size - 1)
    monkeypatch.setattr(prepared_case, "MEBIBYTE", 1)
    found = prepared_case.prepare(TOPK)
    assert isinstance(found, prepared_case.UnbuiltCase)
    assert found.why == (
        f"the case has {size:,} MiB of model, inputs and outputs; {size - 1:,} MiB is the limit: "
        "make its tensors smaller"
    )


def test_what_is_surely_right_is_what_the_comparison_accepts() -> None:
    """A truth that is defined to the last bit, and one that leaves an order open: the preferred answer is right."""
    built = TOPK.build()
    prepared = prepared_case.of(built)
    values, indices = built.truth.accepted[0]  # type: ignore[union-attr]
    names = [[prepared.prefix + name, array.dtype.name, [*array.shape]] for name, array in
             (("Values", values), ("Indices", indices))]  # fmt: skip
    assert prepared.expected == (names, values.tobytes() + indices.tobytes())
    refused = prepared_case.of(suite.case_by_id("Slice-13/float32/refused_step_0[runtime]").build())
    assert (refused.must_be_refused, refused.expected, refused.expected_bits) == (True, ([], b""), "")


@pytest.mark.parametrize("value", [np.float16(1.5), np.int8(-3), np.float64(0.1), np.bool_(True)])
def test_a_truth_that_is_a_scalar_of_numpy_travels(value: Any) -> None:
    """Arithmetic with arrays without dimensions gives them."""
    built = dataclasses.replace(identity("a").build(), truth=Outputs((Output("y", value),)))
    prepared = prepared_case.of(built)
    (output,) = prepared_case.from_row(built.case, prepared_case.to_row(prepared)).truth.outputs  # type: ignore[union-attr]
    assert (output.value, np.asarray(output.value).dtype) == (value, value.dtype)
