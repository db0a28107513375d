"""Gates and normalizations of com.microsoft, of which onnx has no node test: values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal, Truth


def truth(operator: str, attributes: dict[str, Attribute], outputs: tuple[str, ...] = ("Y",), **inputs: Any) -> Truth:
    operands = tuple(
        None if value is None else Operand(name, np.asarray(value, np.float32)) for name, value in inputs.items()
    )
    node = Node(operator, "com.microsoft", 1, operands, outputs, attributes)
    return registry.all_operators()[f"com.microsoft::{operator}"].truth(node)


def values(operator: str, attributes: dict[str, Attribute], **inputs: Any) -> list[Array]:
    answer = truth(operator, attributes, **inputs)
    assert isinstance(answer, Outputs), answer
    found = [output.exact for output in answer.outputs]
    assert all(exact is not None for exact in found)
    return [exact for exact in found if exact is not None]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_scaled_silu_takes_the_scale_before_alpha() -> None:
    (by_alpha,) = values("ScaledSiLU", {"alpha": 3.0}, X=[2.0])
    (by_scale,) = values("ScaledSiLU", {"alpha": 3.0}, X=[2.0], scale=-1.0)
    assert [by_alpha.item(), by_scale.item()] == pytest.approx([6 * sigmoid(6), -2 * sigmoid(-2)])


def test_gated_add_gates_y_by_row() -> None:
    (found,) = values("GatedAdd", {}, X=[[1, 2], [3, 4]], Y=[[10, 20], [30, 40]], gate=[[0.5], [2]])
    assert found.tolist() == [[6, 12], [63, 84]]


@pytest.mark.parametrize(("activation", "opened"), [("silu", 2 * sigmoid(2)), ("sigmoid", sigmoid(2))])
def test_gated_rms_norm_normalizes_each_group_alone(activation: str, opened: float) -> None:
    attributes: dict[str, Attribute] = {"activation": activation, "epsilon": 0.0}
    (found,) = values("GatedRMSNorm", attributes, X=[[3, 3, 0, 8]], scale=[1, 10], gate=np.full((1, 4), 2))
    expected = np.array([1, 10, 0, 10 * math.sqrt(2)]) * opened
    assert found[0].tolist() == pytest.approx(expected.tolist())


@pytest.mark.parametrize("scale", [[1, 2, 3, 4], [[1, 2], [3, 4]]])
def test_branches_have_their_own_mean_square_and_scale(scale: Any) -> None:
    (found,) = values("BranchwiseRMSNorm", {"num_branches": 2, "epsilon": 0.0}, X=[[1, -1, 5, 5]], scale=scale)
    assert found.tolist() == [[1, -2, 3, 4]]
    (grouped,) = values("BranchwiseRMSNorm", {"epsilon": 0.0}, X=[[[1, -1], [5, 5]]], scale=[2, 3])
    assert grouped.tolist() == [[[2, -3], [2, 3]]]


def test_linear_attention_gate_scales_softplus_of_the_sum() -> None:
    decay, beta = values(
        "LinearAttentionGate", {}, outputs=("decay", "beta"), a=[[[1, 2]]], dt_bias=[0, 1], decay_scale=[-1, -2],
        b=[[[0, 3]]],
    )  # fmt: skip
    assert decay.ravel().tolist() == pytest.approx([-math.log1p(math.e), -2 * math.log1p(math.exp(3))])
    assert beta.ravel().tolist() == pytest.approx([0.5, sigmoid(3)])


@pytest.mark.parametrize("gates", [[[2, 3]], [[[2], [3]]], [[[2, 2], [3, 3]]]])
def test_pre_mix_sums_the_gated_streams(gates: Any) -> None:
    (found,) = values("HyperConnectionPreMix", {"reduction_scale": 0.5}, streams=[[[1, 2], [10, 20]]], pre_mix=gates)
    assert found.tolist() == [[16, 32]]
    flat: dict[str, Attribute] = {"reduction_scale": 1.0, "num_branches": 2}
    (found,) = values("HyperConnectionPreMix", flat, streams=[[1, 2, 10, 20]], pre_mix=gates)
    assert found.tolist() == [[32, 64]]


def test_post_mix_sums_over_the_first_index_of_the_matrix() -> None:
    inputs = {"streams": [[[1, 2], [10, 20]]], "block_output": [[100, 200]], "post_mix": [[1, 2]]}
    (found,) = values("HyperConnectionPostMix", {}, **inputs, stream_mix=[[[1, 2], [3, 4]]])
    assert found.tolist() == [[[31 + 100, 62 + 200], [42 + 200, 84 + 400]]]
    (found,) = values("HyperConnectionPostMix", {}, **inputs)
    assert found.tolist() == [[[101, 202], [210, 420]]]


def test_engram_gate_takes_the_signed_root_of_the_product() -> None:
    ones = np.ones((1, 2))
    gated, normed = values(
        "EngramGate", {"epsilon": 0.0}, outputs=("output", "gated_value_normed"), key=[[[[3, 4]]]],
        query=[[[[-3, -4]]]], value=[[[1, -1]]], key_norm_scale=ones, query_norm_scale=ones, conv_norm_scale=[[2, 3]],
    )  # fmt: skip
    gate = sigmoid(-math.sqrt(2 / math.sqrt(2)))  # the product of equal directions of two elements is -2
    assert gated.ravel().tolist() == pytest.approx([gate, -gate])
    assert normed.ravel().tolist() == pytest.approx([2, -3])


@pytest.mark.parametrize(
    ("operator", "inputs", "why"),
    [
        ("GatedAdd", {"X": np.ones((2, 3)), "Y": np.ones((2, 3)), "gate": np.ones((1, 1))}, "last dimension of 1"),
        ("GatedRMSNorm", {"X": np.ones((2, 3)), "scale": np.ones(2), "gate": np.ones((2, 3))}, "must divide"),
        ("BranchwiseRMSNorm", {"X": np.ones((2, 3, 4)), "scale": np.ones(5)}, "scale must have the shape"),
        ("LinearAttentionGate", {"a": np.ones((1, 1, 2)), "dt_bias": [1], "decay_scale": [1, 1]}, "2 heads"),
    ],
)
def test_the_rules(operator: str, inputs: dict[str, Any], why: str) -> None:
    answer = truth(operator, {"epsilon": 1e-5} if "Norm" in operator else {}, **inputs)
    assert isinstance(answer, Refusal)
    assert why in answer.reason
