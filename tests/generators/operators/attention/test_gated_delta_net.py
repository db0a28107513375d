"""GatedDeltaNet and QEmbedLayerNormalization: values worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth

INT32 = ("cu_seqlens", "capture_count")
HALF = float(np.log(0.5))


def truth(attributes: dict[str, Attribute], outputs: int = 2, **inputs: Any) -> Truth:
    """One head, of size 1: a query of 3, a key of 1 and a value of 5 for each token, and a state of 2."""
    tokens = inputs.pop("tokens", 1)
    whole: dict[str, Any] = {"query": [[[3]]] * tokens, "key": [[[1]]] * tokens, "value": [[[5]]] * tokens,
                             "initial_state": [[[[2]]]], "cu_seqlens": [0, tokens], **inputs}  # fmt: skip
    operands = tuple(
        Operand(name, np.array(value, np.int32 if name in INT32 else np.float32)) for name, value in whole.items()
    )
    names = ("output", "final_state", "state_update")[:outputs]
    node = Node("GatedDeltaNet", "com.microsoft", 1, operands, names, {"scale": 1.0, **attributes})
    return registry.operator_of("com.microsoft::GatedDeltaNet").truth(node)


def values(*arguments: Any, **inputs: Any) -> list[float]:
    answer = truth(*arguments, **inputs)
    assert isinstance(answer, Outputs), answer
    return [round(float(output.value.ravel()[0]), 5) for output in answer.outputs]


def test_each_rule_has_its_terms() -> None:
    gates = {"decay": [[HALF]], "beta": [[0.5]]}
    assert values({"update_rule": "linear"}) == [21, 7]  # 2 + 5
    assert values({"update_rule": "gated"}, decay=[[HALF]]) == [18, 6]  # 1 + 5
    assert values({"update_rule": "delta"}, beta=[[0.5]]) == [10.5, 3.5]  # 2 + (5 - 2) / 2
    assert values({}, **gates) == [9, 3]  # 1 + (5 - 1) / 2


def test_gates_are_computed_of_what_stands_for_them() -> None:
    rest = {"beta": [[0.0]], "a_log": [0.0], "dt_bias": [1.0]}
    soft = np.log1p(np.exp(1.5))
    found = values({"gate_activation": "softplus"}, decay=[[0.5]], **rest)
    assert found[1] == round(2 * np.exp(-soft), 5)
    found = values({"gate_activation": "kda", "gate_lower_bound": -2.0}, decay=[[0.5]], **rest)
    assert found[1] == round(2 * np.exp(-2 / (1 + np.exp(-1.5))), 5)
    rest = {"decay": [[HALF]], "beta": [[0.0]]}
    assert values({"beta_activation": "sigmoid"}, **rest)[1] == 3  # a beta of 1 / 2


def test_queries_and_keys_may_be_made_of_length_1() -> None:
    inputs = {"key": [[[4]]], "decay": [[HALF]], "beta": [[0.5]]}
    assert values({"qk_l2_norm": 1}, **inputs) == [3, 3]


def test_a_captured_transition_has_decay_key_and_delta() -> None:
    answer = truth({"state_update_capacity": 2}, 3, tokens=2, decay=[[HALF]] * 2, beta=[[0.5]] * 2, capture_count=[1])
    assert isinstance(answer, Outputs)
    update = answer.outputs[2]
    np.testing.assert_allclose(update.value[0, ::2], [0.5, 1, 2], rtol=1e-6)
    assert update.undefined is not None
    assert update.undefined.where.tolist() == [[False, True] * 3]


@pytest.mark.parametrize(
    ("attributes", "inputs"),
    [({"update_rule": "square"}, {}), ({}, {"initial_state": [[[[2, 1]]]]}), ({}, {"query": [[[3], [3]]]})],
)
def test_the_rules(attributes: dict[str, Attribute], inputs: dict[str, Any]) -> None:
    assert isinstance(truth(attributes, decay=[[HALF]], beta=[[0.5]], **inputs), Refusal)


def test_quantised_embeddings_are_added_and_normalised() -> None:
    values = {"input_ids": np.int32([[1]]), "word_embedding_quant": np.uint8([[0, 0], [5, 9]]),
              "position_embedding_quant": np.uint8([[4, 4]]), "gamma_quant": np.uint8([3, 3]),
              "beta_quant": np.uint8([2, 1]), "mask": np.int32([[1]])}  # fmt: skip
    for name in ("word_embedding", "position_embedding", "gamma", "beta"):
        values[f"{name}_scale"], values[f"{name}_zero_point"] = np.float32(2), np.uint8(1)
    operands = tuple(Operand(name, np.asarray(value)) for name, value in values.items())
    node = Node("QEmbedLayerNormalization", "com.microsoft", 1, operands, ("layernorm_out", "mask_index_out"))
    answer = registry.operator_of("com.microsoft::QEmbedLayerNormalization").truth(node)
    assert isinstance(answer, Outputs)
    # 2 (4 + 3) and 2 (8 + 3) are -1 and 1 when normalised, times 4, plus 2 and 0
    np.testing.assert_allclose(answer.outputs[0].value, [[[-2, 4]]], rtol=1e-6)
    assert answer.outputs[1].value.tolist() == [1]
