"""The name of a sample is a part of the id of its cases, and nothing else: nobody reads it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.case import Case, Sample, expect_refusal
from epcheck.generators.fuzzing.domains import learned
from epcheck.generators.operator import Operator
from epcheck.generators.sources import rank_9, rank_dtypes

ADDED = "_renamed"

READ_BEFORE = (
    "Pow", "Clip", "LinearAttention", "Gemm", "MatMul", "Einsum", "Range", "QLinearMatMul", "DequantizeLinear",
    "SequenceEmpty", "SequenceAt", "Optional", "OptionalHasElement", "MelWeightMatrix", "Resize", "ConvInteger",
)  # fmt: skip
"""Operators whose declarations once read names."""


class Unread(str):
    """A name that can be written into another text; a comparison or a search fails."""

    __slots__ = ()

    def _fail(self, *_arguments: object) -> Any:
        raise AssertionError(f"the name of a sample is read: {str.__str__(self)}")

    __eq__ = __ne__ = __lt__ = __gt__ = __contains__ = _fail
    startswith = endswith = find = index = count = partition = rpartition = split = removeprefix = _fail
    __hash__ = _fail  # type: ignore[assignment]


def renamed_samples(operator: Operator[Any]) -> Iterator[Sample]:
    for sample in operator.samples():
        yield replace(sample, name=Unread(sample.name + ADDED))


def rename_samples(operator: Operator[Any]) -> Operator[Any]:
    return replace(operator, samples=partial(renamed_samples, operator))


def list_cases(operator: Operator[Any]) -> Iterator[Case]:
    """Those that follow from samples; an optional input names its sample by its name."""
    yield from operator.cases()
    yield from rank_9.cases(operator)
    yield from rank_dtypes.cases(operator)


@pytest.mark.parametrize("key", registry.all_operators())
def test_another_name_makes_the_same_cases_under_another_id(key: str) -> None:
    operator = registry.operator_of(key)
    assert [case.id.replace(ADDED, "") for case in list_cases(rename_samples(operator))] == [
        case.id for case in list_cases(operator)
    ]


@pytest.mark.parametrize("key", READ_BEFORE)
def test_another_name_makes_the_same_nodes(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("operator", "sources.rank_9", "sources.rank_dtypes"):
        monkeypatch.setattr(f"epcheck.generators.{module}.random_source", lambda _id: np.random.default_rng(0))
    operator = registry.operator_of(key)
    pairs = tuple(zip(list_cases(operator), list_cases(rename_samples(operator)), strict=True))
    for case, renamed in pairs[::9]:
        built, again = case.build(), renamed.build()
        assert (built.model, repr(built.truth)) == (again.model, repr(again.truth)), case.id
        assert {name: value.tobytes() for name, value in built.feeds.items()} == {
            name: value.tobytes() for name, value in again.feeds.items()
        }, case.id
    assert learned.summarize_samples(operator) == learned.summarize_samples(rename_samples(operator))


def test_a_refused_sample_states_it_and_its_name_follows() -> None:
    sample = Sample("axis_at_rank", rank=3)
    assert expect_refusal(sample) == Sample("refused_axis_at_rank", rank=3, refused=True)
    for operator in registry.all_operators().values():
        for declared in operator.samples():
            assert declared.refused == declared.name.startswith("refused_"), (operator.key, declared.name)
