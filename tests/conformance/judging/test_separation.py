"""Cheap algorithms, told from the truth by the data of a case or not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from epcheck import api
from epcheck.conformance.judging.separation import separations
from epcheck.generators import registry, suite
from epcheck.generators.array import Array
from epcheck.generators.families.cheap_algorithms import ALGORITHMS, CheapAlgorithm, readings
from epcheck.generators.families.elementwise import ElementwiseSample
from epcheck.generators.node import Node, Operand


def read(name: str, values: list[float] | list[int], dtype: str) -> Array:
    (algorithm,) = (found for found in ALGORITHMS if found.name == name)
    return algorithm.read(np.array(values, dtype))


def test_what_each_algorithm_reads() -> None:
    assert read("float16", [1.0001, 70000.0, -2.5], "float32").tolist() == [1.0, np.inf, -2.5]
    assert read("float32", [2**24 + 1, -3], "int32").tolist() == [2**24, -3]
    assert read("float64", [2**53 + 1, 2**63 - 1], "int64").tolist() == [2**53, 2**63 - 1]
    assert read("lower_half", [2**32 + 5, -1, 2**31], "int64").tolist() == [5, -1, -(2**31)]
    assert read("lower_byte_unsigned", [257, 255], "uint16").tolist() == [1, 255]
    assert read("nan_is_0", [np.nan, 2.0], "float32").tolist() == [0.0, 2.0]
    assert not np.signbit(read("zero_has_no_sign", [-0.0], "float32")).any()
    assert read("early_saturation", [1e6, -np.inf, 3.0], "float32").tolist() == [65504.0, -65504.0, 3.0]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.name)
def test_each_keeps_dtype_and_shape(algorithm: CheapAlgorithm) -> None:
    for dtype in algorithm.dtypes:
        value = np.array([[1, 100, 7]], dtype)
        got = algorithm.read(value)
        assert (got.dtype, got.shape, got.tolist()) == (value.dtype, value.shape, value.tolist())


def test_parameters_and_values_that_do_not_change_are_left_alone() -> None:
    data, parameter = np.array([1, 2], np.int64), np.array([2**40], np.int64)
    node = Node("Add", "", 14, (Operand("A", data), Operand("B", parameter, parameter=True)), ("C",))
    assert list(readings(node)) == []
    wide = replace(node, inputs=(Operand("A", np.array([2**40], np.int64)), node.inputs[1]))
    assert {(algorithm.name, dtype) for algorithm, dtype, _ in readings(wide)} == {("lower_half", "int64")}


def test_data_of_which_an_algorithm_loses_nothing_does_not_meet_it() -> None:
    exp = registry.operator_of("Exp")
    ordinary = replace(exp, samples=lambda: (ElementwiseSample(name="ordinary", every_dtype=True),))
    empty = replace(exp, samples=lambda: (ElementwiseSample(name="empty", shape=(0,)),))
    (found,) = (each for each in separations([ordinary]) if (each.algorithm, each.dtype) == ("float16", "float32"))
    assert (found.operator, found.separated, found.met) == ("Exp", True, 1)
    assert list(separations([empty])) == []


def test_relu_s_cases_see_all_but_the_sign_of_zero() -> None:
    found = list(api.separations(("Relu",)))
    assert {each.algorithm for each in found if not each.separated} == {"zero_has_no_sign"}
    assert {each.algorithm for each in found if each.separated} >= {"float16", "early_saturation", "lower_half"}


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(suite.SelectionError, match="unknown operator 'relu'"):
        list(api.separations(("relu",)))
