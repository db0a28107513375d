"""Nodes of 9 dimensions: what they are, and what is true of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

from epcheck.conformance.judging.opinion import opinion
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.records import terms
from epcheck.conformance.records.outcome import CRASHED, DONE, FAILED, Outcome
from epcheck.conformance.targets.target import Target
from epcheck.generators import registry, suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.sources import rank_9
from epcheck.generators.truth import Outputs
from tests.generators.built_suite import cases_by_operator


def built(case_id: str) -> BuiltCase:
    return suite.case_by_id(case_id).build()


def test_every_operator_with_a_sample_of_8_dimensions_has_a_node_of_9() -> None:
    every = cases_by_operator(rank_9)
    with_rank_8 = {
        key
        for key, operator in registry.all_operators().items()
        if not operator.without_rank_9 and any(sample.rank == rank_9.RANK - 1 for sample in operator.samples())
    }
    assert with_rank_8 - every.keys() == set()
    found = [case for own in every.values() for case in own]
    assert len(found) == len(every) >= 138
    for case in found:
        made = case.build()
        assert isinstance(made.truth, Outputs)
        assert made.truth.undefined == rank_9.WHY
        assert max(o.value.ndim for o in made.node.inputs if o is not None) == rank_9.RANK, case.id
        assert case.kind == "beyond"


def test_the_new_axis_holds_the_values_and_the_same_in_reverse() -> None:
    made = built("Relu-14/float32/beyond_rank_9[initializer]")
    x = made.node.array("X")
    np.testing.assert_array_equal(x[1].reshape(-1), x[0].reshape(-1)[::-1])
    assert isinstance(made.truth, Outputs)
    np.testing.assert_array_equal(made.truth.outputs[0].value, np.maximum(x, 0))
    onnx.checker.check_model(onnx.load_from_string(made.model))


def test_lists_of_a_number_for_each_axis_get_one_that_changes_nothing() -> None:
    made = built("Tile-13/float32/beyond_rank_9_first[initializer]")
    x, repeats = made.node.array("input"), made.node.array("repeats")
    assert (repeats.size, repeats[0], x.ndim) == (9, 1, 9)
    pads = built("Pad-21/float32/beyond_rank_9[initializer]").node.array("pads")
    assert (pads.size, pads[0], pads[9]) == (18, 0, 0)


@pytest.mark.parametrize("operator", ["Scatter-9", "ScatterElements-16"])
def test_no_element_has_two_updates(operator: str) -> None:
    node = built(f"{operator}/float32/beyond_rank_9_first[initializer]").node
    assert node.array("updates").shape == (1, *node.array("data").shape[1:])


def test_a_clean_refusal_is_right_and_a_death_is_not() -> None:
    prepared = prepared_case.of(built("Relu-14/float32/beyond_rank_9[initializer]"))
    target = Target("mine", (), ())
    refused = Outcome(FAILED, stage="create", message="too many dimensions")
    assert opinion(prepared, target, refused).status == terms.PASS
    assert opinion(prepared, target, Outcome(CRASHED, message="exit code 5")).status == terms.CRASH
    truth = prepared.truth
    assert isinstance(truth, Outputs)
    wrong = Outcome(DONE, outputs={"Y": truth.outputs[0].value + 1})
    assert opinion(prepared, target, wrong).status == terms.MISMATCH
    assert opinion(prepared, target, replace(wrong, outputs={"Y": truth.outputs[0].value})).status == terms.PASS
