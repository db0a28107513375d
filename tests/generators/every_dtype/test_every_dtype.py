"""Four dimensions in every dtype: where a case is made, and what it is."""

from __future__ import annotations

import numpy as np

from epcheck.generators import suite
from epcheck.generators.claims import established_version
from epcheck.generators.every_dtype import cases
from epcheck.generators.truth import Outputs


def test_there_is_a_case_of_four_dimensions_in_each_dtype_of_the_operator() -> None:
    for key in ("Relu", "Add", "Softmax", "ReduceMax", "Concat", "TopK"):
        operator = suite.operator_of(key)
        version = established_version(operator.name)
        own = [case for case in suite.cases([key]) if case.since_version == version and cases.RANK in case.sample]
        assert {case.dtype for case in own} == {"-".join(dtypes) for dtypes in operator.dtypes(version)}, key


def test_only_dtypes_without_such_a_sample_get_one() -> None:
    every = cases.cases(suite.all_operators())
    assert sum(map(len, every.values())) == 745
    assert "float32" not in {case.dtype for case in every["Relu"]}
    assert all(suite.kind_of(case) == "typed" for own in every.values() for case in own)
    assert not every.keys() & cases.OTHERWISE


def test_its_truth_is_that_of_the_operator() -> None:
    made = suite.case_by_id("Relu-14/float16/typed_rank_4[initializer]").build()
    x = made.node.array("X")
    assert (x.ndim, x.dtype.name) == (4, "float16")
    assert isinstance(made.truth, Outputs)
    np.testing.assert_array_equal(made.truth.outputs[0].value, np.maximum(x, 0))
