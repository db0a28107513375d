"""The oracles against the node tests of the installed onnx package: inputs and outputs that its authors wrote."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.sources.node_tests import NodeTest, node_tests
from epcheck.generators.truth import Outputs, Selection

pytestmark = pytest.mark.slow  # onnx computes its tests when it is asked for them, which takes seconds

RTOL, ATOL = 1e-3, 1e-7
"""What the tests of onnx allow where they say nothing else."""

OTHERWISE: dict[str, str] = {
    "test_roialign_mode_max": "stores the greatest weighted corner; the text takes the maximum of interpolated samples",
    "test_dynamicquantizelinear": "0.5 / y_scale lies 3e-7 below a rounding boundary, where float32 rounds it",
    "test_resize_downsample_scales_linear_align_corners": "divides by a fractional width; the text: length_resized - 1",
    "test_resize_downsample_scales_cubic_align_corners": "divides by a fractional width; the text: length_resized - 1",
    "test_dft_inverse": "stores float32 noise of 2e-7 where the sum is 0",
    "test_dft_inverse_opset19": "stores float32 noise of 2e-7 where the sum is 0",
}
"""Node tests whose stored output is not what the standard says: name -> why."""


@cache
def by_operator() -> dict[str, list[NodeTest]]:
    """Operator key -> the node tests of it. Reading them takes seconds: nobody does while tests are collected."""
    found: dict[str, list[NodeTest]] = {}
    for test in node_tests():
        found.setdefault(test.key, []).append(test)
    return found


def test_the_installed_onnx_has_the_tests_that_are_known() -> None:
    assert {
        "test_slice", "test_slice_neg", "test_slice_start_out_of_bounds", "test_slice_end_out_of_bounds",
        "test_slice_default_axes", "test_slice_default_steps", "test_slice_neg_steps", "test_slice_negative_axes",
        "test_top_k", "test_top_k_smallest", "test_top_k_negative_axis", "test_qlinearconv", *OTHERWISE,
    } <= {test.name for key in registry.all_operators() for test in by_operator().get(key, ())}  # fmt: skip


@pytest.mark.parametrize("key", registry.all_operators())
def test_the_oracle_gives_the_outputs_that_onnx_stores(key: str) -> None:
    tests = by_operator().get(key, [])
    disagreeing = {test.name for test in tests if not gives_what_is_stored(test)}
    assert disagreeing == {test.name for test in tests if test.name in OTHERWISE}


def gives_what_is_stored(test: NodeTest) -> bool:
    with np.errstate(all="ignore"):
        truth = registry.all_operators()[test.key].truth(test.node)
    assert isinstance(truth, Outputs | Selection), truth
    outputs = truth.accepted[0] if isinstance(truth, Selection) else tuple(output.value for output in truth.outputs)
    assert len(outputs) == len(test.outputs)
    return all(agree(output, expected) for output, expected in zip(outputs, test.outputs, strict=True))


def agree(output: Array, expected: Array) -> bool:
    """Equal; floating-point results, which onnx computes in their own precision, within what the tests allow."""
    if (output.dtype, output.shape) != (expected.dtype, expected.shape):
        return False
    if expected.dtype.kind != "f":
        return bool((output == expected).all())
    return bool(np.allclose(output, expected, rtol=RTOL, atol=ATOL, equal_nan=True))
