"""Cases by rule: their names, and the truth of some against numpy."""

from __future__ import annotations

import pickle

import numpy as np
import onnx
import pytest

from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.sources import pairwise
from epcheck.generators.truth import Outputs, Refusal, Selection
from tests.generators.built_suite import cases_by_operator


def built(case_id: str) -> BuiltCase:
    return suite.case_by_id(case_id).build()


def values(case_id: str) -> tuple[list[Array], list[Array]]:
    """The inputs that are there and the true outputs of a case, float64 where they are floats."""
    made = built(case_id)
    assert isinstance(made.truth, Outputs)
    inputs = [operand.value for operand in made.node.inputs if operand is not None]
    outputs = [output.value for output in made.truth.outputs]
    return [v.astype(np.float64) if v.dtype.kind == "f" else v for v in inputs], outputs


def test_every_case_is_a_valid_model_that_no_provider_has_to_refuse() -> None:
    for own in cases_by_operator(pairwise).values():
        assert len({case.id for case in own}) == len(own)
        for case in own:
            made = case.build()
            assert not isinstance(made.truth, Refusal), case.id
            assert case.kind in pairwise.KINDS
            assert suite.is_own(case)
        onnx.checker.check_model(onnx.load_from_string(made.model), full_check=True)
        assert pickle.loads(pickle.dumps(case)).build().model == made.model


def test_a_border_is_the_size_that_its_name_says() -> None:
    assert built("ReduceSum-13/float32/border_length_257[initializer]").feeds["data"].shape == (2, 257, 1)
    assert built("Softmax-13/float32/border_strided_1025[initializer]").feeds["input"].shape == (2, 1025, 3)
    assert built("TopK-11/float32/empty_inner[initializer]").feeds["X"].shape == (2, 5, 0)
    assert built("LSTM-14/float32/border_hidden_33[initializer]").node.array("R").shape == (1, 132, 33)


def test_an_extreme_stands_where_its_name_says() -> None:
    """The first row has 19 elements: two vectors of 8, and a rest that begins at 16."""
    data = built("ReduceMax-20/float32/extreme_nan_tail[initializer]").feeds["data"]
    assert data.shape == (2, 19, 1)
    assert np.flatnonzero(np.isnan(data)).tolist() == [16]
    (x,), (largest, *_) = values("MaxPool-12/float32/extreme_minus_inf_last[initializer]")
    assert x[0, 1, -1, -1] == -np.inf
    assert np.isfinite(largest).all()
    (_, _), (product,) = values("MatMul-13/float32/extreme_inf_first[initializer]")
    assert not np.isfinite(product[0]).any()
    assert np.isfinite(product[1:]).all()
    (_,), (moved,) = values("Transpose-21/float32/extreme_denormal_tail[initializer]")
    assert np.flatnonzero((moved > 0) & (moved < 1e-38)).size == 1
    (_, _), (tiled,) = values("Tile-13/float32/extreme_minus_zero_last[initializer]")
    assert np.signbit(tiled[tiled == 0]).all()


def test_moved_by_indices_and_sizes() -> None:
    """Against numpy, which made none of the truth."""
    (data, shape), (wide,) = values("Expand-13/float32/pairs_ones_outer_inner_shape_longer[initializer]")
    np.testing.assert_array_equal(wide, np.broadcast_to(data, tuple(shape)).astype(np.float32))
    (data, sizes), parts = values("Split-18/float32/pairs_axis_2[initializer]")
    assert [part.shape[2] for part in parts] == sizes.tolist() == [2, 3, 1]
    np.testing.assert_array_equal(np.concatenate(parts, 2), data.astype(np.float32))
    (data, indices), (taken,) = values("GatherElements-13/float32/pairs_axis_2_indices_negative[initializer]")
    np.testing.assert_array_equal(taken, np.take_along_axis(data, indices % 3, 2).astype(np.float32))
    (data, indices, new), (found,) = values("ScatterElements-16/float32/pairs_reduction_mul[initializer]")
    expected = data.copy()
    for at, index in np.ndenumerate(indices):
        expected[at[0], index, at[2]] *= new[at]
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_resized_and_transposed() -> None:
    (x, _), (y,) = values("Resize-19/float32/pairs_mode_nearest_floor_transform_asymmetric_axes_none[initializer]")
    np.testing.assert_array_equal(y, x.repeat(2, 2).repeat(2, 3).astype(np.float32))
    made = built("ConvTranspose-11/float32/border_width_17[initializer]")
    assert isinstance(made.truth, Outputs)
    x, w, b = (operand.value.astype(np.float64) for operand in made.node.inputs if operand is not None)
    expected = np.zeros((1, 4, x.shape[2] + 2, x.shape[3] + 2)) + b[:, None, None]
    for row, column in np.ndindex(3, 3):
        spread = np.einsum("nchw,cm->nmhw", x, w[:, :, row, column])
        expected[:, :, row : row + x.shape[2], column : column + x.shape[3]] += spread
    np.testing.assert_allclose(made.truth.outputs[0].value, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axes", [(0, 2), (3, 1), (-1, -3)])
def test_subsets_of_axes(axes: tuple[int, ...]) -> None:
    name = f"axes_{'x'.join(str(axis).replace('-', 'minus_') for axis in axes)}"
    (data, _), (mean,) = values(f"ReduceMean-18/float32/pairs_{name}[initializer]")
    np.testing.assert_allclose(mean, data.mean(axes, keepdims=True), rtol=1e-6)
    (data, _), (most,) = values(f"ReduceMax-20/float32/pairs_{name}_keepdims_0[initializer]")
    np.testing.assert_array_equal(most, data.max(axes).astype(np.float32))


def test_products_and_windows() -> None:
    (a, b), (y,) = values("MatMul-13/float32/border_k_513[initializer]")
    np.testing.assert_allclose(y, a @ b, rtol=1e-5, atol=1e-5)
    (x,), (pooled,) = values("MaxPool-12/float32/border_width_17[initializer]")
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    np.testing.assert_array_equal(pooled, windows.max((-1, -2)).astype(np.float32))


def test_moved_data() -> None:
    (x,), (y,) = values("Transpose-21/float32/pairs_perm_3x1x0x2[initializer]")
    np.testing.assert_array_equal(y, x.transpose(3, 1, 0, 2))
    parts, (joined,) = values("Concat-13/float32/pairs_axis_2_count_5[initializer]")
    np.testing.assert_array_equal(joined, np.concatenate(parts, 2))


def test_optional_inputs_and_outputs_are_there_and_missing() -> None:
    found = [case.build() for case in suite.cases(["LSTM"], patterns=["pairs_"])]
    for name in ("B", "sequence_lens", "initial_h", "initial_c", "P"):
        assert {made.node.value(name) is None for made in found} == {True, False}, name
    combinations = {tuple(name in made.node.outputs for name in ("Y", "Y_h", "Y_c")) for made in found}
    assert len(combinations) >= 5
    assert (False, True, True) in combinations or (False, True, False) in combinations


def test_the_order_of_equal_elements_is_never_open() -> None:
    for case in suite.cases(["TopK"], patterns=["/pairs_", "/border_"]):
        truth = case.build().truth
        assert not isinstance(truth, Selection) or len(truth.accepted) == 1
