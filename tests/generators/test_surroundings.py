"""Cases whose node stands among others: what their models look like, and that ReferenceEvaluator agrees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from epcheck.generators import schema, suite
from epcheck.generators.case import BuiltCase
from epcheck.generators.operators.sequence.sequence import elements_of
from epcheck.generators.truth import Outputs, Refusal

OPERATORS = (
    "SequenceConstruct", "SequenceEmpty", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength",
    "ConcatFromSequence", "OptionalHasElement", "OptionalGetElement", "If", "SplitToSequence", "SequenceMap",
    "Optional", "Loop", "Scan",
)  # fmt: skip


def cases(operator: str) -> Iterator[BuiltCase]:
    for case in suite.cases([operator]):
        if case.dtype in ("float32", "bool", "int64"):
            yield case.build()


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_node_under_test_is_there_once_and_its_inputs_and_outputs_are_tensors(operator: str) -> None:
    for built in cases(operator):
        model = onnx.load_from_string(built.model)
        onnx.checker.check_model(model, full_check=not isinstance(built.truth, Refusal))
        (node,) = (node for node in model.graph.node if node.op_type == operator)
        assert node.name == "node"
        assert len({graph_node.name for graph_node in model.graph.node}) == len(model.graph.node)
        assert all(value.type.HasField("tensor_type") for value in (*model.graph.input, *model.graph.output))
        assert [output.name for output in model.graph.output] == list(built.node.results)


def is_lost_on_the_evaluator(built: BuiltCase) -> bool:
    """ReferenceEvaluator has optionals as lists of one, which is no tensor's value, and takes the position of an
    insertion modulo the length: the end becomes the front, and an empty sequence a division by zero."""
    position = built.node.value("position")
    inserts = built.case.operator == "SequenceInsert" and position is not None
    at_the_end = inserts and position == len(elements_of(built.node))
    batched = built.case.operator == "Scan" and built.case.since_version == 8  # it knows later versions alone
    if built.case.sample == "a_sequence_and_a_tensor":  # it gives the whole sequence for each tensor of the second one
        return True
    return bool(at_the_end) or batched or "optional" in built.case.sample or built.case.operator.startswith("Optional")


REFUSED = {"SequenceMap": 0.2, "Loop": 0.4, "Scan": 0.8}
"""Operators whose valid nodes ReferenceEvaluator refuses in part, and which part at most: sequences without a tensor,
loops without an iteration, Scan-8, and axes and directions of Scan."""


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_truth_is_what_reference_evaluator_computes(operator: str) -> None:
    count = refused = 0
    for built in cases(operator):
        if isinstance(built.truth, Refusal) or is_lost_on_the_evaluator(built):
            continue
        assert isinstance(built.truth, Outputs)
        count += 1
        try:
            got = ReferenceEvaluator(onnx.load_from_string(built.model)).run(None, dict(built.feeds))
        except (TypeError, ValueError, RuntimeError):
            refused += 1
            continue
        for output, value in zip(built.truth.outputs, got, strict=True):
            if operator == "Loop":  # it joins what is stacked: the same elements without the new axis
                value = np.reshape(value, output.value.shape)
            assert np.array_equal(output.value, value, equal_nan=output.value.dtype.kind == "f"), built.case.id
    assert refused <= REFUSED.get(operator, 0) * count


def test_types_are_spelled_as_claims_spell_them() -> None:
    def types(case_id: str) -> dict[str, str]:
        return dict(suite.case_by_id(case_id).build().types)

    assert types("SequenceAt-11/float16/position_1[runtime]") == {"S": "seq(float16)", "T": "float16", "I": "int64"}
    assert types("If-13/float32/then_sequence[initializer]") == {"B": "bool", "V": "seq(float)"}
    assert types("OptionalHasElement-15/int8/optional_tensor[runtime]")["O"] == "optional(tensor(int8))"


def test_a_constraint_without_tensors_has_the_dtypes_of_what_is_inside() -> None:
    assert schema.dtypes("SequenceLength", 11, "S") == schema.dtypes("SequenceAt", 11, "T")
    assert schema.dtypes("OptionalHasElement", 15, "O")[0] == "float32"


def test_an_optional_that_is_empty_has_no_element_and_an_empty_sequence_is_one() -> None:
    def answer(sample: str) -> bool:
        truth = suite.case_by_id(f"OptionalHasElement-18/float32/{sample}[runtime]").build().truth
        assert isinstance(truth, Outputs)
        return bool(truth.outputs[0].value)

    assert answer("tensor")
    assert answer("optional_empty_sequence")
    assert not answer("omitted")
    assert not answer("empty_optional_tensor")


def test_only_the_taken_branch_may_run() -> None:
    """The other one reads beyond its sequence: a provider that runs both fails."""
    built = suite.case_by_id("If-16/float32/else_other_would_fail[initializer]").build()
    assert isinstance(built.truth, Outputs)
    assert np.array_equal(built.truth.outputs[0].value, built.node.array("Y"))
