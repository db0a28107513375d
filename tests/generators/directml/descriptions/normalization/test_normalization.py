"""The descriptions of normalizations, from their pages."""

from dataclasses import replace

import numpy as np
import pytest

from epcheck.generators.directml import DataType, FeatureLevel, OperatorDesc, TensorDesc
from epcheck.generators.directml.descriptions.elementwise.activation import make_fused
from epcheck.generators.directml.descriptions.normalization.normalization import (
    BatchNormalization,
    LocalResponseNormalization,
    LpNormalization,
    MeanVarianceNormalization1,
    MeanVarianceNormalization2,
)

X = np.array([1, 3, 2, 6], np.float32).reshape(1, 2, 1, 2)
WHOLE = TensorDesc.of(X)
PER_CHANNEL = TensorDesc(DataType.FLOAT32, (1, 2, 1, 1))
LATEST = max(FeatureLevel)


def channels(*values: float) -> np.ndarray:
    return np.array(values, np.float32).reshape(1, 2, 1, 1)


def names(desc: OperatorDesc) -> list[str]:
    return [violation.constraint for violation in desc.validate(LATEST)]


BATCH = BatchNormalization(WHOLE, PER_CHANNEL, PER_CHANNEL, PER_CHANNEL, PER_CHANNEL, WHOLE, True, 0.0)
MEAN_VARIANCE = MeanVarianceNormalization1(WHOLE, PER_CHANNEL, PER_CHANNEL, WHOLE, (2, 3), True, 0.0)


def test_batch_normalization_uses_the_given_statistics() -> None:
    (y,) = BATCH.evaluate(X, channels(1, 2), channels(4, 16), channels(1, 2), channels(0, -1))
    np.testing.assert_allclose(y.reshape(-1), [0, 1, -1, 1])


def test_a_fused_activation_comes_last() -> None:
    activated = replace(BATCH, fused_activation=make_fused("LeakyRelu", 0.5))
    (y,) = activated.evaluate(X, channels(1, 2), channels(4, 16), channels(1, 2), channels(0, -1))
    np.testing.assert_allclose(y.reshape(-1), [0, 1, -0.5, 1])
    described = activated.as_dict()["FusedActivation"]
    assert described == {
        "Type": "DML_ACTIVATION_LEAKY_RELU_OPERATOR_DESC",
        "InputTensor": None,
        "OutputTensor": None,
        "Alpha": 0.5,
    }
    assert names(replace(BATCH, fused_activation=make_fused("Relu"))) == []


def test_mean_and_variance_are_those_of_the_axes() -> None:
    (y,) = MEAN_VARIANCE.evaluate(X, channels(1, 2), channels(0, 1))
    np.testing.assert_allclose(y.reshape(-1), [-1, 1, -1, 3])


@pytest.mark.parametrize(
    ("mean", "variance", "expected"),
    [
        (True, True, [-1, 1]),
        (True, False, [-1, 1]),
        (False, True, [1 / np.sqrt(5), 3 / np.sqrt(5)]),
        (False, False, [1, 3]),
    ],
)
def test_the_successor_can_leave_out_the_mean(mean: bool, variance: bool, expected: list[float]) -> None:
    x = np.array([[1, 3]], np.float32)
    tensor = TensorDesc.of(x)
    desc = MeanVarianceNormalization2(tensor, None, None, tensor, (1,), mean, variance, 0.0)
    np.testing.assert_allclose(desc.evaluate(x, None, None)[0][0], expected, rtol=1e-6)


def test_what_the_normalizations_demand() -> None:
    odd = TensorDesc(DataType.FLOAT32, (1, 3, 1, 1))
    assert names(replace(BATCH, scale_tensor=odd)) == ["scale_tensor_sizes"]
    assert names(replace(MEAN_VARIANCE, scale_tensor=odd)) == ["scale_tensor_sizes"]
    assert names(replace(MEAN_VARIANCE, scale_tensor=None)) == ["scale_with_bias"]
    assert names(replace(MEAN_VARIANCE, axes=(4,))) == ["axis_less_than_dimension_count"]
    assert names(replace(MEAN_VARIANCE, output_tensor=PER_CHANNEL)) == ["output_sizes"]
    half = TensorDesc(DataType.FLOAT16, (1, 2, 1, 1))
    assert names(replace(MEAN_VARIANCE, scale_tensor=half)) == ["same_data_type"]
    assert names(LpNormalization(WHOLE, WHOLE, 1, 0.0, 3)) == ["p_1_or_2"]
    assert names(LocalResponseNormalization(WHOLE, WHOLE, True, 0, 1.0, 1.0, 1.0)) == ["local_size_positive"]


def test_local_response_sums_the_channels_around() -> None:
    desc = LocalResponseNormalization(WHOLE, WHOLE, True, 3, 3.0, 1.0, 0.0)
    np.testing.assert_allclose(desc.evaluate(X)[0].reshape(-1), [1 / 5, 3 / 45, 2 / 5, 6 / 45], rtol=1e-6)
    with pytest.raises(ValueError, match="does not place"):
        replace(desc, local_size=2).evaluate(X)
