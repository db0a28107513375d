"""GatherBlockQuantized, of which onnx has no node test: values worked out by hand, and the rules of the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators.array import Array
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operators.quantized import gather_block_quantized as gather
from epcheck.generators.truth import Outputs, Refusal, Truth

BLOCKS: dict[str, Attribute] = {"block_size": 16}


def truth(attributes: dict[str, Attribute], **inputs: Any) -> Truth:
    operands = tuple(Operand(name, np.asarray(value)) for name, value in inputs.items())
    return gather.truth(Node("GatherBlockQuantized", "com.microsoft", 1, operands, ("output",), attributes))


def value(attributes: dict[str, Attribute], **inputs: Any) -> Array:
    answer = truth(attributes, **inputs)
    assert isinstance(answer, Outputs), answer
    return answer.outputs[0].value


def test_two_elements_of_a_byte_the_first_in_the_low_bits() -> None:
    data = np.array([[0x21] * 8 + [0x43] * 8], np.uint8)
    scales, zero_points = np.array([[0.5, 2]], np.float32), np.array([[0x31]], np.uint8)
    assert value(BLOCKS, data=data, indices=[0], scales=scales, zero_points=zero_points).tolist() == [
        [0, 0.5] * 8 + [0, 2] * 8
    ]


@pytest.mark.parametrize(
    ("bits", "byte", "levels"), [(2, 0b11100100, [0, 1, 2, 3]), (4, 0x8F, [15, 8]), (8, 130, [130])]
)
def test_without_zero_points_those_of_uint8_are_the_middle(bits: int, byte: int, levels: list[int]) -> None:
    data, scales = np.full((1, 16 * bits // 8), byte, np.uint8), np.ones((1, 1), np.float32)
    expected = np.resize(levels, 16) - 2 ** (bits - 1)
    assert value({**BLOCKS, "bits": bits}, data=data, indices=0, scales=scales).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_without_zero_points_those_of_4_bit_integers_are_0(dtype: str) -> None:
    data, scales = np.array([[3] * 16, [7] * 16]).astype(dtype), np.array([[1], [10]], np.float32)
    assert value(BLOCKS, data=data, indices=[-1, 0], scales=scales)[:, 0].tolist() == [70, 3]


def test_blocks_on_the_first_axis_and_a_last_one_that_is_shorter() -> None:
    data, scales = np.ones((18, 2)).astype("int4"), np.array([[1, 2], [3, 4]], np.float32)
    attributes: dict[str, Attribute] = {**BLOCKS, "quantize_axis": 0, "gather_axis": 1}
    gathered = value(attributes, data=data, indices=[[1], [0]], scales=scales)
    assert gathered.shape == (18, 2, 1)
    assert gathered[[0, 15, 16, 17], :, 0].tolist() == [[2, 1], [2, 1], [4, 3], [4, 3]]


def test_an_index_beyond_the_ends_gives_0() -> None:
    data, scales = np.ones((2, 16)).astype("uint4"), np.ones((2, 1), np.float16)
    gathered = value(BLOCKS, data=data, indices=[2, 1, -2, -3], scales=scales)
    assert (gathered.dtype, gathered[:, 5].tolist()) == (np.float16, [0, 1, 1, 0])


def test_float8_has_one_scale_for_all_rows_or_one_block_for_the_axis() -> None:
    data, scales = np.array([[1.5] * 20, [-2] * 20]).astype("float8_e4m3fn"), np.array([[2, 4]], np.float32)
    assert value(BLOCKS, data=data, indices=[1, 0], scales=scales)[:, [15, 16]].tolist() == [[-4, -8], [3, 6]]
    whole = value({"block_size": 0}, data=data, indices=[1, 0], scales=scales[:, :1])
    assert whole[:, 19].tolist() == [-4, 3]


@pytest.mark.parametrize(
    ("attributes", "changes", "why"),
    [
        ({"block_size": 24}, {}, "power of 2"),
        ({"block_size": 0}, {}, "power of 2"),
        ({"bits": 3}, {}, "bits must be 2, 4 or 8"),
        ({"gather_axis": 1, "quantize_axis": 0}, {}, "gather_axis must be 0"),
        ({"quantize_axis": 0}, {}, "must differ"),
        ({"quantize_axis": 2}, {}, "quantize_axis 2 must be within"),
        ({}, {"scales": np.ones((1, 2), np.float32)}, "scales have 1 elements on axis 0"),
        ({}, {"scales": np.ones(6, np.float32)}, "rank of data"),
        ({}, {"zero_points": np.ones((3, 2), np.uint8)}, "zero_points must have the shape (3, 1)"),
        ({}, {"data": np.ones((3, 32)).astype("float8_e5m2")}, "must not be provided"),
    ],
)
def test_the_rules(attributes: dict[str, Attribute], changes: dict[str, Array], why: str) -> None:
    inputs = {
        "data": np.ones((3, 16), np.uint8),
        "indices": np.array([0]),
        "scales": np.ones((3, 2), np.float32),
        "zero_points": np.ones((3, 1), np.uint8),
    }
    answer = truth({**BLOCKS, **attributes}, **{**inputs, **changes})
    assert isinstance(answer, Refusal)
    assert why in answer.reason
