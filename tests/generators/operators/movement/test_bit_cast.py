"""BitCast-26: its oracle against bit patterns written by hand."""

from __future__ import annotations

import numpy as np

from epcheck.generators import registry
from epcheck.generators.truth import Refusal
from tests.generators.built_suite import built, node_of, true_outputs


def test_bits_are_read_and_not_converted() -> None:
    (found,) = true_outputs(node_of("BitCast", 26, [np.array([1.0, -0.0, np.inf], np.float32)], to=6))
    assert found.dtype == np.int32
    assert found.tolist() == [0x3F800000, -(2**31), 0x7F800000]
    (back,) = true_outputs(node_of("BitCast", 26, [np.array([[0x3C00]], np.uint16)], to=10))
    assert (back.dtype, back.tolist()) == (np.float16, [[1.0]])


def test_another_width_is_refused() -> None:
    truth = registry.operator_of("BitCast").truth(node_of("BitCast", 26, [np.zeros(2, np.float32)], to=7))
    assert truth == Refusal("float32 has 32 bits, int64 64")


def test_every_pair_of_one_width_has_a_case_with_every_boundary_value() -> None:
    """Three types of each of four widths, where bool is one of 8 bits."""
    pairs = {case.case.dtype for case in built("BitCast") if case.case.sample == "boundary"}
    assert len(pairs) == 4 * 3 * 3
    assert {"int8-bool", "uint16-float16", "float64-uint64", "float32-float32"} <= pairs
