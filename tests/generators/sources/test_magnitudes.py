"""Cases whose inputs and results fit their dtype, and whose intermediate values do not."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.case import Case
from epcheck.generators.registry import all_operators
from epcheck.generators.sources import magnitudes
from epcheck.generators.truth import Outputs

CASES = [case for operator in all_operators().values() for case in magnitudes.cases(operator)]

INTERMEDIATES = {
    "squares": np.square,
    "sums": lambda x: np.cumsum(x.reshape(-1), dtype=x.dtype),
    "exponentials": np.exp,
    "cubes": lambda x: x * x * x,
    "products": lambda x: np.cumsum(np.abs(x).max() * np.abs(x).reshape(-1)[:4] * x.dtype.type(0.6), dtype=x.dtype),
}


def test_there_are_cases_of_each_magnitude() -> None:
    assert {case.sample.split("_")[1] for case in CASES} == magnitudes.DRAWS.keys() == INTERMEDIATES.keys()
    assert {case.operator_key for case in CASES} >= {"LayerNormalization", "ReduceMean", "Softmax", "MatMul", "Gelu"}
    assert {case.kind for case in CASES} == {magnitudes.KIND}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_intermediate_value_alone_leaves_the_range(case: Case) -> None:
    built = case.build()
    assert isinstance(built.truth, Outputs)
    with np.errstate(all="ignore"):
        for values in (*(o.value for o in built.node.inputs if o is not None), *(o.value for o in built.truth.outputs)):
            assert np.isfinite(values.astype(np.float64)).all()
        first = built.node.inputs[0]
        assert first is not None
        data: Array = first.value
        assert np.isinf(INTERMEDIATES[case.sample.split("_")[1]](data)).any()


def test_the_suite_has_them() -> None:
    (case,) = (c for c in suite.cases(["ReduceMean"], patterns=["overflow_sums_defaults"]))
    assert case.id == "ReduceMean-18/float16/overflow_sums_defaults[runtime]"
