"""VarlenCausalConvWithState: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth


def truth(attributes: dict[str, Attribute], outputs: int, **inputs: Any) -> Truth:
    whole = {"input": [[1], [2], [5]], "weight": [[[1, 10]]], "initial_state": [[[100]], [[7]]], **inputs}
    operands = [Operand(name, np.float32(value)) for name, value in whole.items() if name != "capture_count"]
    operands.append(Operand("cumulative_sequence_length", np.int32([0, 2, 3])))
    operands += [Operand(name, np.int32(value)) for name, value in whole.items() if name == "capture_count"]
    names = ("output", "final_state", "state_update")[:outputs]
    return registry.operator_of("com.microsoft::VarlenCausalConvWithState").truth(
        Node("VarlenCausalConvWithState", "com.microsoft", 1, tuple(operands), names, attributes)
    )


def values(*arguments: Any, **inputs: Any) -> list[Any]:
    answer = truth(*arguments, **inputs)
    assert isinstance(answer, Outputs), answer
    return [output.value.tolist() for output in answer.outputs]


def test_each_request_goes_on_behind_its_own_state() -> None:
    assert values({}, 2) == [[[110], [21], [57]], [[[2]], [[5]]]]
    assert values({}, 1, bias=[0.5]) == [[[110.5], [21.5], [57.5]]]


def test_taps_are_apart_and_old_samples_stay_in_the_state() -> None:
    state = [[[100, 200]], [[7, 8]]]
    assert values({"dilation": 2}, 2, initial_state=state) == [[[110], [220], [57]], [[[1, 2]], [[8, 5]]]]


def test_the_first_tokens_are_captured() -> None:
    found = values({"state_update_capacity": 2}, 3, capture_count=[1, 5])
    assert found[2] == [[[1], [0]], [[5], [0]]]


def test_the_rules() -> None:
    for attributes, inputs in (({"activation": "relu"}, {}), ({"dilation": 0}, {}), ({}, {"bias": [1, 2]}),
                               ({}, {"initial_state": [[[1, 2]], [[3, 4]]]})):  # fmt: skip
        assert isinstance(truth(attributes, 2, **inputs), Refusal)
