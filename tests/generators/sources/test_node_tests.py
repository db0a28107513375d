"""onnx's node tests as cases: models, data and bounds."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import onnx
import pytest

from epcheck.generators import registry, suite
from epcheck.generators.case import Case
from epcheck.generators.citation import source_text
from epcheck.generators.graph import OLDEST_IR
from epcheck.generators.sources import node_tests
from epcheck.generators.suite import Source
from epcheck.generators.truth import Exact, Outputs, Ulp

pytestmark = pytest.mark.slow  # onnx computes its tests when it is asked for them, which takes seconds


@cache
def cases() -> tuple[Case, ...]:
    """onnx's node tests as cases."""
    return tuple(suite.cases(source=Source.ONNX))


def test_there_are_more_than_a_thousand_each_with_an_id_of_its_own() -> None:
    assert len(cases()) > 1000
    assert [case_id for case_id, count in Counter(case.id for case in cases()).items() if count > 1] == []
    assert {case.binding for case in cases()} == {"onnx"}


def test_a_case_has_the_model_the_inputs_and_the_outputs_of_the_test() -> None:
    (test,) = (test for test in node_tests.node_tests() if test.name == "test_slice_neg_steps")
    built = suite.case_by_id("Slice-13/float32/test_slice_neg_steps[onnx]").build()
    model = onnx.load_from_string(built.model)
    assert (model.ir_version, model.graph.node[0].op_type) == (OLDEST_IR, "Slice")
    assert [value.name for value in model.graph.input] == list(built.feeds)
    assert isinstance(built.truth, Outputs)
    np.testing.assert_array_equal(built.truth.outputs[0].value, test.outputs[0])
    assert built.truth.outputs[0].bound == Exact()
    assert built.lowering is not None
    assert built.lowering.description.NAME == "DML_SLICE1_OPERATOR_DESC"


def test_every_test_can_be_built() -> None:
    for case in cases():
        built = case.build()
        assert isinstance(built.truth, Outputs), case.id
        onnx.checker.check_model(built.model, full_check=False)


def test_an_operator_that_the_suite_has_not_is_judged_with_the_test_s_own_tolerance() -> None:
    other = next(
        t for t in node_tests.node_tests() if t.key not in registry.all_operators() and t.outputs[0].dtype == "f4"
    )
    built = next(case for case in cases() if case.sample == other.name).build()
    assert isinstance(built.truth, Outputs)
    bound = built.truth.outputs[0].bound
    assert isinstance(bound, Ulp)
    assert bound.bound == pytest.approx(other.rtol / np.finfo(np.float32).eps)
    assert source_text(bound.citations) == "the tolerance of onnx's own test"


def test_random_numbers_sequences_and_expanded_functions_are_left_out() -> None:
    names = {test.name for test in node_tests.node_tests()}
    assert "test_dropout_default" in names
    assert not {"test_training_dropout", "test_bernoulli", "test_sequence_insert_at_back"} & names
    assert not [name for name in names if "_expanded" in name]
