"""Matrix products and quantised operators that onnx has no node tests for: values worked out by hand or by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.oracle_math import packing, quantization
from epcheck.generators.truth import OneStep, Output, Outputs, Refusal

MICROSOFT, DML = "com.microsoft", "com.microsoft.dml"


def outputs(operator: str, domain: str, attributes: dict[str, Attribute], **inputs: Any) -> tuple[Output, ...]:
    operands = tuple(None if value is None else Operand(name, np.asarray(value)) for name, value in inputs.items())
    node = Node(operator, domain, 1, operands, ("Y",), attributes)
    truth = registry.all_operators()[f"{domain}::{operator}"].truth(node)
    assert isinstance(truth, Outputs), truth
    return truth.outputs


def value(operator: str, domain: str, attributes: dict[str, Attribute], **inputs: Any) -> Array:
    return outputs(operator, domain, attributes, **inputs)[0].value


A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4) - 5


def test_fused_matmul_scales_the_product_of_transposed_inputs() -> None:
    got = value("FusedMatMul", MICROSOFT, {"transA": 1, "transB": 1, "alpha": 0.5}, A=A.T, B=B.T)
    assert (got == (A @ B) * np.float32(0.5)).all()


def test_trans_batch_takes_the_first_dimension_for_the_rows() -> None:
    a = np.arange(24, dtype=np.float32).reshape(3, 2, 4)
    b = np.arange(40, dtype=np.float32).reshape(4, 2, 5)
    got = value("FusedMatMul", MICROSOFT, {"transBatchA": 1, "transBatchB": 1}, A=a, B=b)
    assert (got == np.einsum("mbk,kbn->bmn", a, b)).all()


def test_trans_batch_of_matrices_is_refused() -> None:
    node = Node("FusedMatMul", MICROSOFT, 1, (Operand("A", A), Operand("B", B)), ("Y",), {"transBatchA": 1})
    assert isinstance(registry.all_operators()["com.microsoft::FusedMatMul"].truth(node), Refusal)


def test_the_fused_softmax_sums_to_one_along_its_axis() -> None:
    got = value("FusedMatMulActivation", MICROSOFT, {"activation": "Softmax", "activation_axis": 0}, A=A / 8, B=B / 8)
    assert np.allclose(got.sum(0), 1)


@pytest.mark.parametrize(
    ("activation", "parameters", "expected"),
    [
        ("Relu", {}, [2.0, 0.0]),
        ("LeakyRelu", {"fused_alpha": 0.25}, [2.0, -0.5]),
        ("HardSigmoid", {}, [0.9, 0.1]),
        ("Softsign", {}, [2 / 3, -2 / 3]),
        ("Elu", {}, [2.0, np.exp(-2) - 1]),
        ("Sigmoid", {}, [1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2))]),
        ("Softplus", {}, [np.log(1 + np.exp(2)), np.log(1 + np.exp(-2))]),
        ("Selu", {}, [2 * 1.0507010, 1.0507010 * 1.6732632 * (np.exp(-2) - 1)]),
    ],
)
def test_a_fused_activation_is_the_one_of_its_onnx_page(
    activation: str, parameters: dict[str, Attribute], expected: list[float]
) -> None:
    scalar = np.ones((1, 1), np.float32)
    got = value(
        "DmlFusedGemm", DML, {"fused_activation": activation, **parameters},
        A=scalar, B=np.array([[1, -3]], np.float32), C=scalar,
    )  # fmt: skip
    assert np.allclose(got, [expected], rtol=1e-6)


def test_the_first_level_of_a_byte_is_in_its_lower_bits() -> None:
    assert packing.pack_levels(np.array([[1, 2, 3]]), 4).tolist() == [[0x21, 0x03]]
    assert packing.unpack_levels(np.array([[0x21, 0x03]], np.uint8), 4).tolist() == [[1, 2, 3, 0]]


def test_matmulnbits_without_zero_points_subtracts_eight() -> None:
    levels = np.zeros((1, 1, 8), np.uint8)
    levels[0, 0, 0] = 0xF0  # levels 0 and 15, then zeros
    a = np.zeros((1, 16), np.float32)
    a[0, :2] = 1, 10
    got = value(
        "MatMulNBits", MICROSOFT, {"K": 16, "N": 1, "bits": 4, "block_size": 16},
        A=a, B=levels, scales=np.array([[0.5]], np.float32),
    )  # fmt: skip
    assert got.tolist() == [[0.5 * (1 * (0 - 8) + 10 * (15 - 8))]]


def test_matmulintegertofloat_scales_and_adds() -> None:
    got = value(
        "MatMulIntegerToFloat", MICROSOFT, {},
        A=np.array([[1, 2]], np.uint8), B=np.array([[3, -4], [5, 6]], np.int8), a_scale=np.float32(0.5),
        b_scale=np.array([2, 4], np.float32), a_zero_point=np.uint8(1), b_zero_point=np.array([1, 0], np.int8),
        bias=np.array([0.25, -1], np.float32),
    )  # fmt: skip
    assert got.tolist() == [[4 * 1 + 0.25, 6 * 2 - 1]]


def test_dynamicquantizematmul_quantises_a_in_255_steps() -> None:
    a = np.array([[-1.0, 2.984375]], np.float32)  # 255 / 64 wide: a step is 1 / 64
    b = np.array([[1], [2]], np.int8)
    got = value("DynamicQuantizeMatMul", MICROSOFT, {}, A=a, B=b, b_scale=np.float32(1))
    assert got.tolist() == [[-1.0 + 2 * 2.984375]]


def test_qlinearadd_adds_real_values() -> None:
    got = value(
        "QLinearAdd", MICROSOFT, {},
        A=np.array([10, 250], np.uint8), A_scale=np.float32(0.5), A_zero_point=np.uint8(2),
        B=np.array([7], np.uint8), B_scale=np.float32(2), B_zero_point=None,
        C_scale=np.float32(1), C_zero_point=np.uint8(128),
    )  # fmt: skip
    assert got.tolist() == [4 + 14 + 128, 255]


def test_qlinearsigmoid_of_the_zero_point_is_a_half() -> None:
    got = value(
        "QLinearSigmoid", MICROSOFT, {},
        X=np.array([-128, 3, 127], np.int8), X_scale=np.float32(1), X_zero_point=np.int8(3),
        Y_scale=np.float32(1 / 256), Y_zero_point=np.int8(-128),
    )  # fmt: skip
    assert got.tolist() == [-128, 0, 127]


def test_qlinearconcat_requantises_each_input() -> None:
    got = value(
        "QLinearConcat", MICROSOFT, {"axis": 0},
        Y_scale=np.float32(0.5), Y_zero_point=np.uint8(10),
        inputs_2=np.array([4, 5], np.uint8), inputs_3=np.float32(1), inputs_4=np.uint8(0),
        inputs_5=np.array([6], np.uint8), inputs_6=np.float32(0.25), inputs_7=np.uint8(3),
    )  # fmt: skip
    assert got.tolist() == [18, 20, 12]  # the last is 1.5 steps: to the even 2


def test_ties_go_to_even_before_the_zero_point_is_added() -> None:
    output = quantization.quantise("y", np.array([0.5, 1.5, -2.5, 300.0]), 1, np.dtype(np.uint8), -1.0)
    assert output.value.tolist() == [1, 3, 0, 255]
    assert isinstance(output.bound, OneStep)
    assert not output.bound.allowed.any()


def test_a_step_beside_is_allowed_on_a_rounding_boundary_only() -> None:
    output = quantization.quantise("y", np.array([0.5 + 1e-9, 0.6]), 0, np.dtype(np.uint8), 1e-7)
    assert isinstance(output.bound, OneStep)
    assert output.bound.allowed.tolist() == [True, False]


def test_fused_gemm_applies_its_activation_to_the_whole_sum() -> None:
    attributes: dict[str, Attribute] = {
        "activation": "LeakyRelu", "activation_alpha": 0.5, "alpha": 2.0, "beta": -1.0, "transB": 1,
    }  # fmt: skip
    a, b, c = np.array([[1, 2]], np.float32), np.array([[3, 4], [-3, -4]], np.float32), np.array([2], np.float32)
    assert value("FusedGemm", MICROSOFT, attributes, A=a, B=b, C=c).tolist() == [[20, -12]]


def test_transpose_mat_mul_transposes_the_last_two_dimensions() -> None:
    a, b = np.array([[[1], [2]]], np.float32), np.array([[3, 4], [5, 6]], np.float32)
    attributes: dict[str, Attribute] = {"transA": 1, "transB": 1, "alpha": 0.5}
    assert value("TransposeMatMul", MICROSOFT, attributes, A=a, B=b).tolist() == [[[5.5, 8.5]]]
