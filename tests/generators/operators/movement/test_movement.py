"""Operators that move data, against values written down elsewhere: the operator pages, DirectML's pages, numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from epcheck.generators import registry, suite
from epcheck.generators.array import Array
from epcheck.generators.directml.descriptions.movement.filling import DiagonalMatrix1
from epcheck.generators.directml.descriptions.movement.gathering import Gather, GatherElements
from epcheck.generators.directml.descriptions.movement.layout import (
    Join,
    Padding1,
    PaddingMode,
    ReverseSubsequences,
    SpaceToDepth,
    Split,
)
from epcheck.generators.directml.tensor import DataType, TensorDesc
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs, Refusal

IMAGE = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)


def outputs(operator: str, version: int, inputs: dict[str, Any], **attributes: Attribute) -> tuple[Array, ...]:
    node = Node(
        operator, "", version, tuple(Operand(n, np.asarray(v)) for n, v in inputs.items()), ("output",), attributes
    )
    truth = registry.all_operators()[operator].truth(node)
    assert isinstance(truth, Outputs), truth
    return tuple(output.value for output in truth.outputs)


def refusal(operator: str, version: int, inputs: dict[str, Any], **attributes: Attribute) -> str:
    node = Node(
        operator, "", version, tuple(Operand(n, np.asarray(v)) for n, v in inputs.items()), ("output",), attributes
    )
    truth = registry.all_operators()[operator].truth(node)
    assert isinstance(truth, Refusal), truth
    return truth.reason


def test_crop_takes_its_borders_as_left_top_right_bottom() -> None:
    (got,) = outputs("Crop", 1, {"input": IMAGE}, border=(1, 0, 0, 2))
    assert got.tolist() == [[[[1, 2, 3]], [[13, 14, 15]]]]


def test_crop_with_a_scale_starts_at_the_left_and_top_border() -> None:
    (got,) = outputs("Crop", 1, {"input": IMAGE}, border=(1, 1, 0, 0), scale=(2, 1))
    assert got.tolist() == [[[[5], [9]], [[17], [21]]]]


def test_crop_beyond_the_image_is_refused() -> None:
    assert "beyond the image" in refusal("Crop", 1, {"input": IMAGE}, border=(1, 1, 0, 0), scale=(3, 1))


def test_space_to_depth_is_the_inverse_of_depth_to_space_in_both_modes() -> None:
    values = np.arange(96).reshape(2, 12, 2, 2)
    for mode in ("DCR", "CRD"):
        (spread,) = outputs("DepthToSpace", 13, {"input": values}, blocksize=2, mode=mode)
        (back,) = outputs("SpaceToDepth", 28, {"input": spread}, blocksize=2, mode=mode)
        assert (back == values).all()


def test_scatter_elements_puts_back_what_gather_elements_took() -> None:
    values, indices = np.arange(12).reshape(3, 4), np.array([[2, 0, 1, 2], [0, 1, 2, 1]])
    (taken,) = outputs("GatherElements", 13, {"data": values, "indices": indices})
    (back,) = outputs("ScatterElements", 18, {"data": values * 0, "indices": indices, "updates": taken})
    (again,) = outputs("GatherElements", 13, {"data": back, "indices": indices})
    assert (again == taken).all()


def test_scatter_nd_puts_back_what_gather_nd_took() -> None:
    values, indices = np.arange(24).reshape(2, 3, 4), np.array([[1, 2], [0, 0]])
    (taken,) = outputs("GatherND", 13, {"data": values, "indices": indices})
    assert taken.tolist() == [[20, 21, 22, 23], [0, 1, 2, 3]]
    (back,) = outputs("ScatterND", 18, {"data": values, "indices": indices, "updates": taken})
    assert (back == values).all()


def test_repeated_indices_add_up() -> None:
    (got,) = outputs(
        "ScatterElements", 18, {"data": [1, 1, 1], "indices": [0, 0, -1], "updates": [2, 3, 4]}, reduction="add"
    )
    assert got.tolist() == [6, 1, 5]


def test_reflect_goes_to_and_fro() -> None:
    (got,) = outputs("Pad", 18, {"data": [1, 2, 3], "pads": [5, 3]}, mode="reflect")
    assert got.tolist() == [2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2]


def test_wrap_goes_round_from_19_on() -> None:
    (got,) = outputs("Pad", 19, {"data": [1, 2, 3], "pads": [4, 1]}, mode="wrap")
    assert got.tolist() == [3, 1, 2, 3, 1, 2, 3, 1]
    assert "wrap" in refusal("Pad", 18, {"data": [1, 2, 3], "pads": [4, 1]}, mode="wrap")


def test_negative_pads_remove_before_positive_ones_add() -> None:
    (got,) = outputs("Pad", 13, {"data": [1, 2, 3, 4], "pads": [-1, 2]}, mode="edge")
    assert got.tolist() == [2, 3, 4, 4, 4]


def test_the_constant_of_an_integer_is_not_rounded() -> None:
    (got,) = outputs("Pad", 13, {"data": np.int64([1]), "pads": [1, 0], "constant_value": np.array(2**53 + 1)})
    assert got.tolist() == [2**53 + 1, 1]


def test_an_index_in_front_of_the_first_is_on_from_11_on_only() -> None:
    inputs = {"indices": [-1, 3], "depth": 3, "values": [0, 1]}
    assert outputs("OneHot", 11, inputs)[0].tolist() == [[0, 0, 1], [0, 0, 0]]
    assert outputs("OneHot", 9, inputs)[0].tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("case_id", "name"),
    [
        ("ConstantOfShape-21/float32/refused_shape_of_rank_2[runtime]", "input"),
        ("OneHot-11/float32/depth_of_rank_1[runtime]", "depth"),
        ("OneHot-11/float32/refused_two_depths[runtime]", "depth"),
    ],
)
def test_sizes_are_of_64_bits_where_the_default_of_numpy_is_not(case_id: str, name: str) -> None:
    """Those of Windows' numpy 1 have 32."""
    assert suite.case_by_id(case_id).build().feeds[name].dtype == np.int64


@pytest.mark.parametrize(
    ("start", "limit", "delta", "expected"),
    [(3, 9, 3, [3, 6]), (10, 4, -2, [10, 8, 6]), (0, 1, 5, [0]), (3, 3, 1, [])],
)
def test_range_stops_before_its_limit(start: int, limit: int, delta: int, expected: list[int]) -> None:
    assert outputs("Range", 11, {"start": start, "limit": limit, "delta": delta})[0].tolist() == expected


def test_range_counts_its_elements_exactly_where_float64_does_not() -> None:
    top = np.iinfo(np.int64).max
    (got,) = outputs("Range", 11, {"start": top - 3, "limit": top, "delta": 1})
    assert got.tolist() == [top - 3, top - 2, top - 1]


def test_a_scalar_has_no_coordinates() -> None:
    assert outputs("NonZero", 13, {"X": 3})[0].shape == (0, 1)
    assert outputs("NonZero", 13, {"X": 0})[0].shape == (0, 0)


def test_what_trilu_leaves_out_is_zero_whatever_stood_there() -> None:
    (got,) = outputs("Trilu", 14, {"input": np.full((2, 2), np.nan), "k": 1})
    assert np.isnan(got[0, 1])
    assert got[[0, 1, 1], [0, 0, 1]].tolist() == [0, 0, 0]


def test_allowzero_takes_zero_for_a_size() -> None:
    empty = np.zeros((0, 3))
    assert outputs("Reshape", 14, {"data": empty, "shape": [3, 0]}, allowzero=1)[0].shape == (3, 0)
    assert outputs("Reshape", 14, {"data": np.zeros((2, 3)), "shape": [0, 3]})[0].shape == (2, 3)


def test_the_last_part_of_an_uneven_split_is_smaller() -> None:
    node = Node("Split", "", 18, (Operand("input", np.arange(7)),), ("a", "b", "c"), {"num_outputs": 3})
    truth = registry.all_operators()["Split"].truth(node)
    assert isinstance(truth, Outputs)
    assert [output.value.tolist() for output in truth.outputs] == [[0, 1, 2], [3, 4, 5], [6]]


@pytest.mark.slow
def test_every_description_agrees_with_its_truth() -> None:
    """Once for each sample of the first dtype, in the way that needs no graph input."""
    for name in ("Concat", "Split", "Pad", "Tile", "DepthToSpace", "SpaceToDepth", "Trilu", "GatherND", "ScatterND"):
        for case in suite.cases([name], ["float32"]):
            built = case.build()
            if built.lowering is None or not isinstance(built.truth, Outputs):
                continue
            results = built.lowering.description.evaluate(*built.lowering.feeds)
            for output, result in zip(built.truth.outputs, results, strict=True):
                assert np.array_equal(result.reshape(output.value.shape), output.value, equal_nan=True), case.id


def tensor(*sizes: int) -> TensorDesc:
    return TensorDesc(DataType.FLOAT32, sizes)


def test_join_wants_sizes_that_add_up() -> None:
    assert [v.constraint for v in Join((tensor(1, 2), tensor(1, 3)), tensor(1, 4), 1).constraints()] == ["sizes_add_up"]
    assert not list(Join((tensor(1, 2), tensor(1, 3)), tensor(1, 5), 1).constraints())


def test_split_wants_sizes_that_add_up() -> None:
    assert [v.constraint for v in Split(tensor(5), (tensor(2), tensor(2)), 0).constraints()] == ["sizes_add_up"]


def test_space_to_depth_orders_by_row_and_column_of_the_block() -> None:
    """The example of DML_SPACE_TO_DEPTH_OPERATOR_DESC's page in the small: four channels of one block."""
    desc = SpaceToDepth(tensor(1, 1, 2, 2), tensor(1, 4, 1, 1), 2)
    (got,) = desc.evaluate(np.array([[[[1, 2], [3, 4]]]], np.float32))
    assert got.reshape(-1).tolist() == [1, 2, 3, 4]


def test_reverse_subsequences_wants_a_length_for_each_sequence() -> None:
    lengths = TensorDesc(DataType.UINT32, (1, 3))
    assert not list(ReverseSubsequences(tensor(4, 3), lengths, tensor(4, 3), 0).constraints())
    wrong = ReverseSubsequences(tensor(4, 3), lengths, tensor(4, 3), 1)
    assert [v.constraint for v in wrong.constraints()] == ["sequence_lengths_tensor_sizes"]


def test_padding_of_each_mode() -> None:
    values = np.array([1, 2, 3], np.float32)

    def padded(mode: PaddingMode) -> list[float]:
        desc = Padding1(tensor(3), tensor(7), mode, DataType.FLOAT32, "9", (2,), (2,))
        return list(desc.evaluate(values)[0])

    assert padded(PaddingMode.CONSTANT) == [9, 9, 1, 2, 3, 9, 9]
    assert padded(PaddingMode.EDGE) == [1, 1, 1, 2, 3, 3, 3]
    assert padded(PaddingMode.REFLECTION) == [3, 2, 1, 2, 3, 2, 1]
    assert padded(PaddingMode.SYMMETRIC) == [2, 1, 1, 2, 3, 3, 2]


def test_gather_puts_the_indices_where_the_axis_was() -> None:
    desc = Gather(tensor(1, 3, 2), TensorDesc(DataType.INT64, (1, 1, 2)), tensor(1, 2, 2), 1, 1)
    (got,) = desc.evaluate(np.arange(6, dtype=np.float32).reshape(1, 3, 2), np.int64([[[2, -3]]]))
    assert got.tolist() == [[[4, 5], [0, 1]]]


def test_gather_elements_wants_the_sizes_of_the_input_except_along_the_axis() -> None:
    def constraints(*sizes: int) -> list[str]:
        desc = GatherElements(tensor(4, 5), TensorDesc(DataType.INT64, sizes), tensor(*sizes), 0)
        return [v.constraint for v in desc.constraints()]

    assert constraints(2, 5) == []
    assert constraints(2, 4) == ["sizes_match_except_axis"]


def test_diagonals_are_filled_up_to_and_without_the_end() -> None:
    desc = DiagonalMatrix1(tensor(2, 3), tensor(2, 3), DataType.FLOAT32, "0", 0, 2)
    assert desc.evaluate(np.ones((2, 3), np.float32))[0].tolist() == [[0, 0, 1], [1, 0, 0]]
