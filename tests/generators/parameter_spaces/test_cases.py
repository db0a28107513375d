"""Cases by rule: their names, and the truth of some against numpy."""

from __future__ import annotations

import pickle

import numpy as np
import onnx
import pytest

from epcheck.generators import suite
from epcheck.generators.array import Array
from epcheck.generators.case import BuiltCase
from epcheck.generators.parameter_spaces import cases
from epcheck.generators.truth import Outputs, Refusal, Selection


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
    for own in cases.cases(suite.all_operators()).values():
        assert len({case.id for case in own}) == len(own)
        for case in own:
            made = case.build()
            assert not isinstance(made.truth, Refusal), case.id
            assert cases.kind_of(case) in cases.KINDS
            assert suite.is_own(case)
        onnx.checker.check_model(onnx.load_from_string(made.model), full_check=True)
        assert pickle.loads(pickle.dumps(case)).build().model == made.model


def test_a_border_is_the_size_that_its_name_says() -> None:
    assert built("ReduceSum-13/float32/border_length_257[initializer]").feeds["data"].shape == (2, 257, 1)
    assert built("Softmax-13/float32/border_strided_1025[initializer]").feeds["input"].shape == (2, 1025, 3)
    assert built("TopK-11/float32/empty_inner[initializer]").feeds["X"].shape == (2, 5, 0)
    assert built("LSTM-14/float32/border_hidden_33[initializer]").node.array("R").shape == (1, 132, 33)


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
