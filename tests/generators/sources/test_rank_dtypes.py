"""No, three and four dimensions in every dtype: where a case is made, and what it is."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import registry, suite
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.sources import rank_dtypes
from epcheck.generators.truth import Outputs
from tests.generators.built_suite import cases_by_operator


@pytest.mark.parametrize(("key", "ranks"), [
    ("Relu", "43s"), ("Add", "43"), ("Softmax", "43"), ("ReduceMax", "430"), ("Concat", "43"), ("Abs", "430"),
    ("Exp", "s"), ("TopK", "4"),
])  # fmt: skip
def test_there_is_a_case_of_each_rank_in_each_dtype_of_the_operator(key: str, ranks: str) -> None:
    operator = registry.operator_of(key)
    version = newest_claimed_version(operator.name)
    for rank in ("scalar" if each == "s" else f"rank_{each}" for each in ranks):
        own = [case for case in suite.cases([key]) if case.since_version == version and rank in case.sample]
        assert {case.dtype for case in own} == {"-".join(dtypes) for dtypes in operator.dtypes(version)}, rank


def test_only_dtypes_without_such_a_sample_get_one() -> None:
    every = cases_by_operator(rank_dtypes)
    assert sum(map(len, every.values())) >= 1861
    assert "float32" not in {case.dtype for case in every["Relu"]}
    assert all(case.kind == "typed" for own in every.values() for case in own)
    without = {key for key, operator in registry.all_operators().items() if operator.without_rank_dtypes}
    assert "Cast" in without
    assert not every.keys() & without


def test_its_truth_is_that_of_the_operator() -> None:
    made = suite.case_by_id("Relu-14/float16/typed_rank_4[initializer]").build()
    x = made.node.array("X")
    assert (x.ndim, x.dtype.name) == (4, "float16")
    assert isinstance(made.truth, Outputs)
    np.testing.assert_array_equal(made.truth.outputs[0].value, np.maximum(x, 0))
