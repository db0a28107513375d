"""Normalizations that onnx has no node tests for: the oracles against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.array import Array
from epcheck.generators.bounds import propagation
from epcheck.generators.bounds.propagation import Moments
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.truth import Outputs

MICROSOFT, DML = "com.microsoft", "com.microsoft.dml"
FLOAT32 = np.dtype(np.float32)


def outputs(
    op_type: str,
    inputs: dict[str, object],
    attributes: dict[str, Attribute] | None = None,
    *,
    domain: str = "",
    version: int = 1,
    names: tuple[str, ...] = ("Y",),
) -> list[Array]:
    """What the oracle says of a float32 node."""
    operands = tuple(Operand(name, np.array(value, np.float32)) for name, value in inputs.items())
    node = Node(op_type, domain, version, operands, names, attributes or {})
    key = f"{domain}::{op_type}" if domain else op_type
    truth = registry.all_operators()[key].truth(node)
    assert isinstance(truth, Outputs)
    return [output.value for output in truth.outputs]


def test_rms_of_3_4_with_mean_square_12_and_a_half() -> None:
    (y,) = outputs("SimplifiedLayerNormalization", {"X": [[3, 4]], "scale": [1, 2]}, {"epsilon": 0.0})
    np.testing.assert_allclose(y, [[3 / np.sqrt(12.5), 8 / np.sqrt(12.5)]], rtol=1e-6)


def test_the_fourth_input_of_the_simplified_operator_is_added_before_the_normalization() -> None:
    inputs = {"input": [[1, 1]], "skip": [[1, 2]], "gamma": [1, 1], "bias": [1, 1]}
    y, total = outputs(
        "SkipSimplifiedLayerNormalization",
        inputs,
        {"epsilon": 0.0},
        domain=MICROSOFT,
        names=("output", "", "", "input_skip_bias_sum"),
    )
    np.testing.assert_array_equal(total, [[3, 4]])
    np.testing.assert_allclose(y, [[3 / np.sqrt(12.5), 4 / np.sqrt(12.5)]], rtol=1e-6)


def test_two_elements_are_normalized_to_minus_1_and_1() -> None:
    inputs = {"input": [[1, 4]], "skip": [[1, 2]], "gamma": [3, 5], "beta": [10, 20]}
    (y,) = outputs("SkipLayerNormalization", inputs, {"epsilon": 0.0}, domain=MICROSOFT, names=("output",))
    np.testing.assert_allclose(y, [[10 - 3, 20 + 5]], rtol=1e-6)


@pytest.mark.parametrize("last", [1, 0])
def test_group_norm_normalizes_the_channels_of_a_group_together(last: int) -> None:
    channels = np.array([1, 3, -2, 2], np.float32)
    shape = (1, 1, 1, 4) if last else (1, 4, 1, 1)
    attributes: dict[str, Attribute] = {"groups": 2, "activation": 0, "channels_last": last, "epsilon": 0.0}
    inputs = {"X": channels.reshape(shape), "gamma": [1, 1, 1, 2], "beta": [0, 0, 0, 1]}
    (y,) = outputs("GroupNorm", inputs, attributes, domain=MICROSOFT)
    np.testing.assert_allclose(y.reshape(-1), [-1, 1, -1, 3], rtol=1e-6)


def test_silu_follows_group_norm() -> None:
    inputs = {"X": np.array([[[[1, 3]]]], np.float32), "gamma": [1, 1], "beta": [0, 0]}
    attributes: dict[str, Attribute] = {"groups": 1, "activation": 1, "epsilon": 0.0}
    (y,) = outputs("GroupNorm", inputs, attributes, domain=MICROSOFT)
    np.testing.assert_allclose(y.reshape(-1), [-1 / (1 + np.e), 1 / (1 + 1 / np.e)], rtol=1e-6)


def test_the_first_revision_of_mean_variance_normalization_can_leave_the_variance() -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 2, 1, 2)
    for across, mean in ((0, [0.5, 0.5, 2.5, 2.5]), (1, [1.5] * 4)):
        (y,) = outputs(
            "MeanVarianceNormalization",
            {"input": x},
            {"across_channels": across, "normalize_variance": 0},
            names=("output",),
        )
        np.testing.assert_array_equal(y.reshape(-1), x.reshape(-1) - mean)


@pytest.mark.parametrize(
    ("activation", "parameters", "expected"),
    [
        ("Relu", {}, [0, 1]),
        ("LeakyRelu", {"fused_alpha": 0.5}, [-0.5, 1]),
        ("LeakyRelu", {}, [-0.01, 1]),
        ("Elu", {"fused_alpha": 2.0}, [2 / np.e - 2, 1]),
        ("HardSigmoid", {"fused_alpha": 0.25, "fused_beta": 0.5}, [0.25, 0.75]),
        ("Sigmoid", {}, [1 / (1 + np.e), np.e / (1 + np.e)]),
        ("Tanh", {}, [-np.tanh(1), np.tanh(1)]),
        ("Softsign", {}, [-0.5, 0.5]),
    ],
)
def test_a_fused_activation_is_applied_to_minus_1_and_1(
    activation: str, parameters: dict[str, Attribute], expected: list[float]
) -> None:
    inputs = {"input": np.array([[[1, 3]]], np.float32), "scale": [1], "B": [0]}
    attributes = {"fused_activation": activation, "epsilon": 0.0, **parameters}
    (y,) = outputs("DmlFusedInstanceNormalization", inputs, attributes, domain=DML, names=("output",))
    np.testing.assert_allclose(y.reshape(-1), expected, rtol=1e-6, atol=1e-7)


def test_a_norm_of_0_gives_0() -> None:
    (y,) = outputs("LpNormalization", {"input": [[0, 0], [3, 4]]}, version=22)
    np.testing.assert_allclose(y, [[0, 0], [0.6, 0.8]], rtol=1e-6)


def test_an_even_window_reaches_one_channel_further_up() -> None:
    x = np.array([1, 2, 4], np.float32).reshape(1, 3, 1)
    (y,) = outputs("LRN", {"X": x}, {"size": 2, "alpha": 2.0, "beta": 1.0, "bias": 0.0}, version=13)
    np.testing.assert_allclose(y.reshape(-1), [1 / 5, 2 / 20, 4 / 16], rtol=1e-6)


def test_the_moments_of_a_constant_have_the_errors_of_their_sums() -> None:
    moments = Moments.of(np.full((1, 8), 0.5), (1,), FLOAT32)
    assert moments.mean == 0.5
    assert moments.variance == 0
    assert 0 < moments.mean_error[0, 0] < 1e-6
    assert 0 < moments.variance_error[0, 0] < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_one_pass_in_the_precision_of_the_type_stays_within_the_error(dtype: str) -> None:
    precision = np.dtype(dtype)
    x = np.random.Generator(np.random.Philox(key=1)).uniform(18, 22, (20, 64)).astype(precision)
    wide = x.astype(np.float64)
    moments = Moments.of(wide, (1,), precision)
    total, square = (np.zeros((20, 1), precision) for _ in range(2))
    for column in range(x.shape[1]):
        total = total + x[:, column : column + 1]
        square = square + x[:, column : column + 1] * x[:, column : column + 1]
    mean = total / precision.type(64)
    variance = square / precision.type(64) - mean * mean
    assert (np.abs(mean - moments.mean) <= moments.mean_error).all()
    assert (np.abs(variance - moments.variance) <= moments.variance_error).all()


def test_the_errors_of_exp_and_log_grow_with_their_arguments() -> None:
    eps = 2.0**-23
    np.testing.assert_allclose(propagation.exp_error(np.array([0.0, -2.0]), FLOAT32), [3 * eps, 8 * eps])
    np.testing.assert_allclose(propagation.log_error(np.array([1.0]), FLOAT32), [2.0**-21])
    np.testing.assert_allclose(propagation.log_error(np.array([np.e**2]), FLOAT32), [6 * eps])
