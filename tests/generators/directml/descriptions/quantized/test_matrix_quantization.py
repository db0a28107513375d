"""The DirectML descriptions of matrix products and quantisation: what their pages demand, what they compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from epcheck.generators import suite
from epcheck.generators.directml import ConstraintViolation, DataType, FeatureLevel, OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.matmul.matrix_multiply import (
    Gemm,
    MatrixTransform,
    QuantizedLinearMatrixMultiply,
)
from epcheck.generators.directml.descriptions.quantized.linear_quantization import (
    Dequantize,
    ElementWiseQuantizeLinear,
    QuantizationType,
)

LEVEL = FeatureLevel.DML_FEATURE_LEVEL_6_4


def tensor(*sizes: int, data_type: DataType = DataType.FLOAT32) -> TensorDesc:
    return TensorDesc(data_type, sizes)


def broken(desc: OperatorDesc) -> set[str]:
    return {violation.constraint for violation in desc.validate(LEVEL)}


NONE, TRANSPOSE = MatrixTransform.NONE, MatrixTransform.TRANSPOSE
GEMM = Gemm(tensor(1, 1, 2, 3), tensor(1, 1, 3, 4), tensor(1, 1, 2, 4), tensor(1, 1, 2, 4), NONE, NONE, 2.0, 0.5)


def test_a_gemm_is_valid() -> None:
    assert broken(GEMM) == set()


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"b_tensor": tensor(1, 1, 2, 4)}, "inner_sizes_match"),
        ({"trans_b": TRANSPOSE}, "inner_sizes_match"),
        ({"b_tensor": tensor(1, 2, 3, 4)}, "same_batches"),
        ({"output_tensor": tensor(1, 1, 4, 2)}, "output_sizes"),
        ({"c_tensor": tensor(1, 1, 1, 4)}, "c_tensor_sizes"),
        ({"c_tensor": tensor(2, 4)}, "same_dimension_count"),
        ({"b_tensor": tensor(1, 1, 3, 4, data_type=DataType.FLOAT16)}, "b_tensor_same_data_type"),
        ({"a_tensor": tensor(1, 1, 2, 3, data_type=DataType.FLOAT64)}, "data_type_supported"),
    ],
)
def test_a_gemm_that_breaks_its_page(change: dict[str, object], constraint: str) -> None:
    assert constraint in broken(replace(GEMM, **change))  # type: ignore[arg-type]


def test_gemm_scales_the_product_and_c() -> None:
    a, b, c = np.ones((1, 1, 2, 3)), np.arange(12.0).reshape(1, 1, 3, 4), np.ones((1, 1, 2, 4))
    (got,) = GEMM.evaluate(*(array.astype(np.float32) for array in (a, b, c)))
    assert got[0, 0].tolist() == [[24.5, 30.5, 36.5, 42.5]] * 2


def test_gemm_without_a_product_has_no_result() -> None:
    with pytest.raises(ConstraintViolation):
        replace(GEMM, trans_a=TRANSPOSE).evaluate(*(np.ones((1, 1, 2, 3), np.float32),) * 3)


def test_a_quantised_product_rounds_half_to_even_and_saturates() -> None:
    byte, scalar = tensor(1, 1, 1, 1, data_type=DataType.UINT8), tensor(1, 1, 1, 1)
    desc = QuantizedLinearMatrixMultiply(byte, scalar, byte, byte, scalar, byte, scalar, byte, byte)
    assert broken(desc) == set()

    def product(a: int, scale: float) -> int:
        def level(value: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
            return np.full((1, 1, 1, 1), value, np.uint8)

        def number(value: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
            return np.full((1, 1, 1, 1), value, np.float32)

        (got,) = desc.evaluate(level(a), number(scale), level(0), level(1), number(1), level(0), number(1), level(3))
        return int(got.item())

    assert [product(5, 0.5), product(7, 0.5), product(255, 2)] == [2 + 3, 4 + 3, 255]


def test_quantising_wants_all_tensors_in_the_same_sizes() -> None:
    x, scale, levels = tensor(2, 3), tensor(1, 3), tensor(2, 3, data_type=DataType.INT8)
    desc = ElementWiseQuantizeLinear(x, scale, levels, levels)
    assert broken(desc) == {"scale_tensor_sizes"}
    assert broken(replace(desc, scale_tensor=TensorDesc(DataType.FLOAT32, (2, 3), (0, 1)))) == set()


def test_dequantising_spreads_each_scale_over_its_block() -> None:
    x = tensor(1, 4, data_type=DataType.INT8)
    desc = Dequantize(x, QuantizationType.SCALE, (tensor(1, 2),), tensor(1, 4))
    assert broken(desc) == set()
    (got,) = desc.evaluate(np.array([[1, 2, 3, 4]], np.int8), np.array([[0.5, 10]], np.float32))
    assert got.tolist() == [[0.5, 1.0, 30.0, 40.0]]
    assert desc.as_dict()["QuantizationTensorCount"] == 1


def test_blocks_are_whole_and_there_is_a_tensor_for_each_parameter() -> None:
    x = tensor(1, 4, data_type=DataType.INT8)
    desc = Dequantize(x, QuantizationType.SCALE_ZERO_POINT, (tensor(1, 3),), tensor(1, 4))
    assert broken(desc) == {"quantization_tensor_count", "whole_blocks"}


@pytest.mark.parametrize(
    ("case_id", "member", "expected"),
    [
        ("MatMul-13/float32/batch_of_a[initializer]", "BTensor",
         TensorDesc(DataType.FLOAT32, (1, 3, 4, 5), (0, 0, 5, 1))),
        ("MatMul-13/float32/matrix_by_vector[initializer]", "BTensor", tensor(1, 1, 4, 1)),
        ("com.microsoft::FusedMatMul-1/float32/trans_a_1_trans_b_0[initializer]", "ATensor",
         TensorDesc(DataType.FLOAT32, (1, 1, 3, 4), (0, 0, 1, 3))),
        ("Gemm-13/float32/c_column[initializer]", "CTensor", TensorDesc(DataType.FLOAT32, (1, 1, 3, 5), (0, 0, 1, 0))),
        ("DequantizeLinear-21/int4-float32/per_axis_0[initializer]", "InputTensor",
         tensor(1, 3, 4, 5, data_type=DataType.INT4)),
    ],
)  # fmt: skip
def test_broadcasting_and_transposing_are_strides(case_id: str, member: str, expected: TensorDesc) -> None:
    lowering = suite.case_by_id(case_id).build().lowering
    assert lowering is not None
    assert lowering.description.tensors()[member] == expected
    assert lowering.description.validate(LEVEL) == ()
