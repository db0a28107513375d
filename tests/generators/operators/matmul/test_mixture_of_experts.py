"""MoE and QMoE, of which onnx has no node test: values worked out by hand, a second computation, and the rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.matmul import mixture_of_experts as experts
from epcheck.generators.truth import Outputs, Refusal, Truth

IDENTITY: dict[str, Attribute] = {"activation_type": "identity"}


def truth(operator: str, attributes: dict[str, Attribute], **inputs: Any) -> Truth:
    operands = tuple(Operand(name, np.asarray(value)) for name, value in inputs.items())
    return experts.truth(Node(operator, "com.microsoft", 1, operands, ("output",), attributes))


def value(operator: str, attributes: dict[str, Attribute], **inputs: Any) -> Array:
    answer = truth(operator, attributes, **inputs)
    assert isinstance(answer, Outputs), answer
    return answer.outputs[0].value


def float32(values: Any) -> Array:
    return np.array(values, np.float32)


TWO_EXPERTS: dict[str, Array] = {
    "input": float32([[1, 2]]),
    "router_probs": float32([[0, math.log(3)]]),
    "fc1_experts_weights": float32([[[1, 0], [0, 1]], [[0, 1], [1, 0]]]),
    "fc2_experts_weights": float32([[[1, 0], [0, 1]], [[10, 0], [0, 10]]]),
}


def test_the_chosen_expert_counts_by_its_share_of_all() -> None:
    assert value("MoE", IDENTITY, **TWO_EXPERTS)[0].tolist() == pytest.approx([15.0, 7.5])  # 3 / 4 of (20, 10)
    both = value("MoE", {**IDENTITY, "k": 2}, **TWO_EXPERTS)
    assert both[0].tolist() == pytest.approx([15.25, 8.0])  # and 1 / 4 of (1, 2)


def test_normalized_shares_of_the_chosen_add_to_1() -> None:
    alone = value("MoE", {**IDENTITY, "normalize_routing_weights": 1}, **TWO_EXPERTS)
    assert alone[0].tolist() == pytest.approx([20.0, 10.0])


def test_router_weights_take_the_place_of_the_shares_and_do_not_choose() -> None:
    weights = np.zeros((1, 2, 1)), float32([[0.5, 4]])
    packed = np.array([[[0x89], [0x98]], [[0x98], [0x89]]], np.uint8)
    scales = float32([[1, 1], [1, 1]])
    inputs = {
        "input": float32([[1, 2]]), "router_probs": float32([[0, 1]]), "fc1_experts_weights": packed,
        "fc1_scales": scales, "fc2_experts_weights": packed, "fc2_scales": scales * 10, "router_weights": weights[1],
    }  # fmt: skip
    # 0x89 is (1, 0) and 0x98 (0, 1) once 8 is taken away: the second expert exchanges its inputs twice.
    assert value("QMoE", IDENTITY, **inputs)[0].tolist() == pytest.approx([40.0, 80.0])


@pytest.mark.parametrize(("fusion", "rows"), [(1, [[3.0], [5.0]]), (2, [[3.0], [5.0]])])
def test_swiglu_has_the_gate_first_and_both_are_limited(fusion: int, rows: list[list[float]]) -> None:
    attributes: dict[str, Attribute] = {
        "activation_type": "swiglu", "swiglu_fusion": fusion, "activation_alpha": 2.0, "activation_beta": 1.0,
        "swiglu_limit": 4.0,
    }  # fmt: skip
    inputs = {
        "input": float32([[1]]), "router_probs": float32([[1]]), "fc1_experts_weights": float32([rows]),
        "fc2_experts_weights": float32([[[1]]]),
    }  # fmt: skip
    assert value("MoE", attributes, **inputs).item() == pytest.approx(3 / (1 + math.exp(-6)) * 5)


def plain(node: Node) -> Array:
    """The page once more, in loops of float64."""
    x = node.array("input").astype(float).reshape(-1, node.array("input").shape[-1])
    rates, mixed = node.array("router_probs").astype(float), node.value("router_weights")
    bits, block = node.integer("expert_weight_bits", 4), node.integer("block_size", 0)

    def weight(layer: str, expert: int, row: int, column: int) -> float:
        stored = node.array(f"{layer}_experts_weights")
        if node.op_type == "MoE":
            return float(stored[expert, row, column])
        each, per = 8 // bits, column // block if block else None
        level = int(stored[expert, row, column // each]) >> bits * (column % each) & (2**bits - 1)
        scales, zeros = node.array(f"{layer}_scales"), node.value(f"{layer}_zero_points")
        zero = 2 ** (bits - 1)
        if zeros is not None:
            place = per if per is not None else row
            packed = zeros[expert, row] if per is not None else zeros[expert]
            zero = int(packed[place // each]) >> bits * (place % each) & (2**bits - 1)
        return (level - zero) * float(scales[expert, row] if per is None else scales[expert, row, per])

    def layer(name: str, expert: int, values: list[float]) -> list[float]:
        rows = node.array(f"{name}_experts_weights").shape[1]
        bias = node.value(f"{name}_experts_bias")
        start = [0.0] * rows if bias is None else [float(b) for b in bias[expert]]
        return [start[r] + sum(weight(name, expert, r, c) * v for c, v in enumerate(values)) for r in range(rows)]

    result = np.zeros_like(x)
    for token, own in enumerate(rates):
        order = sorted(range(len(own)), key=lambda e: -own[e])[: node.integer("k", 1)]
        shares = {e: math.exp(own[e]) / sum(math.exp(r) for r in own) for e in order}
        if mixed is not None:
            shares = {e: float(mixed[token, e]) for e in order}
        if node.integer("normalize_routing_weights", 0):
            shares = {e: share / sum(shares.values()) for e, share in shares.items()}
        for e in order:
            hidden = layer("fc1", e, list(x[token]))
            kind = node.text("activation_type", "relu")
            if kind == "swiglu":
                alpha, beta = node.number("activation_alpha", 1.0), node.number("activation_beta", 0.0)
                hidden = [
                    g / (1 + math.exp(-alpha * g)) * (u + beta) for g, u in zip(hidden[::2], hidden[1::2], strict=True)
                ]
            elif kind == "relu":
                hidden = [max(h, 0.0) for h in hidden]
            result[token] += shares[e] * np.array(layer("fc2", e, hidden))
    return result.reshape(node.array("input").shape)


@pytest.mark.parametrize(
    ("operator", "sample"),
    [
        ("MoE", "swiglu"),
        ("MoE", "k_3_not_normalized"),
        ("QMoE", "k_1_not_normalized"),
        ("QMoE", "k_3_not_normalized"),
        ("QMoE", "bits_2_block_32_zero_points_random_swiglu"),
        ("QMoE", "bits_4_block_0_zero_points_random"),
        ("QMoE", "router_weights_normalized"),
    ],
)
def test_a_second_computation_agrees(operator: str, sample: str) -> None:
    wanted = f"com.microsoft::{operator}-1/float32/{sample}[initializer]"
    (case,) = (case for case in suite.cases((f"com.microsoft::{operator}",)) if case.id == wanted)
    built = case.build()
    assert isinstance(built.truth, Outputs)
    np.testing.assert_allclose(built.truth.outputs[0].exact, plain(built.node), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("attributes", "changes", "why"),
    [
        ({"activation_type": "softsign"}, {}, "activation_type must be"),
        ({}, {"router_probs": float32([[1, 2, 3]])}, "router_probs must have the shape (1, 2)"),
        ({}, {"fc1_experts_bias": np.zeros((2, 3), np.float32)}, "fc1_experts_bias must have 2 rows"),
        ({"expert_weight_bits": 5}, {}, "must be 2, 3, 4 or 8"),
    ],
)
def test_the_rules(attributes: dict[str, Attribute], changes: dict[str, Array], why: str) -> None:
    answer = truth("MoE", attributes, **{**TWO_EXPERTS, **changes})
    assert isinstance(answer, Refusal)
    assert why in answer.reason
