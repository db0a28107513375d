"""DML_REDUCE, ARGMAX, ARGMIN, CUMULATIVE_SUMMATION and the SOFTMAX family, from their pages."""

from dataclasses import replace

import numpy as np
import pytest

from epcheck.generators.directml import (
    AxisDirection,
    ConstraintViolation,
    DataType,
    FeatureLevel,
    OperatorDesc,
    TensorDesc,
)
from epcheck.generators.directml.descriptions.reduction.reduction import (
    ArgMax,
    ArgMin,
    CumulativeSummation,
    Reduce,
    ReduceFunction,
)
from epcheck.generators.directml.descriptions.reduction.softmax import (
    ActivationHardmax,
    ActivationHardmax1,
    ActivationLogSoftmax,
    ActivationSoftmax,
    ActivationSoftmax1,
)

LEVEL_2_1, LEVEL_3_0, LEVEL_5_0 = (FeatureLevel[f"DML_FEATURE_LEVEL_{level}"] for level in ("2_1", "3_0", "5_0"))
LATEST = max(FeatureLevel)
DATA = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def reduce(function: ReduceFunction, data_type: DataType = DataType.FLOAT32) -> Reduce:
    return Reduce(function, TensorDesc(data_type, (2, 3)), TensorDesc(data_type, (2, 1)), (1,))


def names(desc: OperatorDesc, level: FeatureLevel = LATEST) -> list[str]:
    return [violation.constraint for violation in desc.validate(level)]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (ReduceFunction.AVERAGE, [2 / 3, 1]),
        (ReduceFunction.L1, [6, 15]),
        (ReduceFunction.L2, [np.sqrt(14), np.sqrt(77)]),
        (ReduceFunction.LOG_SUM, [np.log(2), np.log(3)]),
        (ReduceFunction.LOG_SUM_EXP, [np.log(np.exp(1) + np.exp(-2) + np.exp(3)),
                                      np.log(np.exp(4) + np.exp(5) + np.exp(-6))]),
        (ReduceFunction.MAX, [3, 5]),
        (ReduceFunction.MIN, [-2, -6]),
        (ReduceFunction.MULTIPLY, [-6, -120]),
        (ReduceFunction.SUM, [2, 3]),
        (ReduceFunction.SUM_SQUARE, [14, 77]),
    ],
)  # fmt: skip
def test_each_function_reduces_a_row(function: ReduceFunction, expected: list[float]) -> None:
    (result,) = reduce(function).evaluate(DATA)
    np.testing.assert_allclose(result[:, 0], expected, rtol=1e-6)


def test_the_table_depends_on_the_function() -> None:
    assert names(reduce(ReduceFunction.SUM, DataType.INT64), LEVEL_5_0) == []
    assert names(reduce(ReduceFunction.SUM, DataType.INT64), LEVEL_3_0) == ["data_type_supported"] * 2
    assert names(reduce(ReduceFunction.SUM, DataType.INT32), LEVEL_3_0) == []
    assert names(reduce(ReduceFunction.AVERAGE, DataType.INT32), LEVEL_5_0) == ["data_type_supported"] * 2
    assert names(reduce(ReduceFunction.MAX, DataType.UINT8), LEVEL_5_0) == []
    assert names(reduce(ReduceFunction.SUM, DataType.UINT8), LEVEL_5_0) == ["data_type_supported"] * 2
    assert names(reduce(ReduceFunction.SUM), LEVEL_2_1) == ["dimension_count_supported"] * 2


def test_what_a_reduction_demands() -> None:
    desc = reduce(ReduceFunction.SUM)
    assert names(replace(desc, axes=(2,))) == ["axis_less_than_dimension_count", "output_sizes"]
    assert names(replace(desc, axes=(1, 1))) == ["axes_distinct"]
    assert names(replace(desc, output_tensor=TensorDesc(DataType.FLOAT32, (2, 3)))) == ["output_sizes"]
    assert names(replace(desc, output_tensor=TensorDesc(DataType.FLOAT16, (2, 1)))) == ["same_data_type"]
    with pytest.raises(ConstraintViolation, match="axis_less_than_dimension_count"):
        replace(desc, axes=(2,)).evaluate(DATA)


def test_the_direction_decides_between_equals() -> None:
    ties = np.array([[1, 3, 3, 1]], np.float32)
    source, target = TensorDesc.of(ties), TensorDesc(DataType.INT64, (1, 1))
    for desc, first, last in ((ArgMax, 1, 2), (ArgMin, 0, 3)):
        (increasing,) = desc(source, target, (1,), AxisDirection.INCREASING).evaluate(ties)
        (decreasing,) = desc(source, target, (1,), AxisDirection.DECREASING).evaluate(ties)
        assert (increasing.item(), decreasing.item()) == (first, last)
        assert increasing.dtype == np.int64


@pytest.mark.parametrize(
    ("direction", "exclusive", "expected"),
    [
        (AxisDirection.INCREASING, False, [1, 3, 6]),
        (AxisDirection.INCREASING, True, [0, 1, 3]),
        (AxisDirection.DECREASING, False, [6, 5, 3]),
        (AxisDirection.DECREASING, True, [5, 3, 0]),
    ],
)
def test_cumulative_sums(direction: AxisDirection, exclusive: bool, expected: list[int]) -> None:
    x = np.array([1, 2, 3], np.int32)
    tensor = TensorDesc.of(x)
    (sums,) = CumulativeSummation(tensor, tensor, 0, direction, exclusive).evaluate(x)
    np.testing.assert_array_equal(sums, expected)


def test_softmax_is_along_the_last_dimension_or_given_axes() -> None:
    x = np.log(np.array([[1, 3], [2, 2]], np.float32))
    tensor = TensorDesc.of(x)
    np.testing.assert_allclose(ActivationSoftmax(tensor, tensor).evaluate(x)[0], [[0.25, 0.75], [0.5, 0.5]], rtol=1e-6)
    (columns,) = ActivationSoftmax1(tensor, tensor, (0,)).evaluate(x)
    np.testing.assert_allclose(columns, [[1 / 3, 0.6], [2 / 3, 0.4]], rtol=1e-6)
    (both,) = ActivationSoftmax1(tensor, tensor, (0, 1)).evaluate(x)
    np.testing.assert_allclose(both, [[1 / 8, 3 / 8], [1 / 4, 1 / 4]], rtol=1e-6)
    (logarithm,) = ActivationLogSoftmax(tensor, tensor).evaluate(x)
    np.testing.assert_allclose(logarithm, np.log([[0.25, 0.75], [0.5, 0.5]]), rtol=1e-6)


def test_hardmax_marks_the_first_maximum() -> None:
    x = np.array([[2, 2], [1, 2]], np.float32)
    tensor = TensorDesc.of(x)
    np.testing.assert_array_equal(ActivationHardmax(tensor, tensor).evaluate(x)[0], [[1, 0], [0, 1]])
    np.testing.assert_array_equal(ActivationHardmax1(tensor, tensor, (0,)).evaluate(x)[0], [[1, 1], [0, 0]])
    np.testing.assert_array_equal(ActivationHardmax1(tensor, tensor, (0, 1)).evaluate(x)[0], [[1, 0], [0, 0]])


def test_softmax_keeps_type_and_size() -> None:
    source, target = TensorDesc(DataType.FLOAT32, (1, 1, 2, 3)), TensorDesc(DataType.FLOAT32, (1, 1, 3, 2))
    assert names(ActivationSoftmax(source, target)) == ["same_tensor"]
    assert names(ActivationSoftmax1(source, source, (4,))) == ["axis_less_than_dimension_count"]
