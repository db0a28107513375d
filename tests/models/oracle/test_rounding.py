"""Random rounding: what it leaves alone, and how far it takes a value."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from epcheck.models.accuracy import thresholds
from epcheck.models.accuracy.thresholds import ThresholdSource
from epcheck.models.graph import values
from epcheck.models.oracle import oracle
from epcheck.models.oracle.rounding import RandomRounding
from tests.models import small_models
from tests.models.written_models import model


def change(graph: str, x: np.ndarray, seed: int = 0) -> float:
    """The relative change of the output `y` by random rounding."""
    return change_of(model(graph), x, seed)


def change_of(built: onnx.ModelProto, x: np.ndarray, seed: int = 0) -> float:
    types = values.of_graph(values.infer_types(built, {"x": x.shape}).graph)
    right = np.asarray(oracle.evaluate(built, {"x": x}).values["y"])
    rounded = np.asarray(oracle.evaluate(built, {"x": x}, disturbance=RandomRounding(types, seed)).values["y"])
    return float(np.abs(right - rounded).max() / np.abs(right).max())


X = np.linspace(0.1, 1, 64, dtype=np.float32)


@pytest.mark.parametrize(("dtype", "unit"), [("float", 2**-24), ("float16", 2**-11), ("double", 2**-53)])
def test_a_result_is_off_by_up_to_a_rounding_unit_of_its_dtype(dtype: str, unit: float) -> None:
    names = {"float": np.float32, "float16": np.float16, "double": np.float64}
    found = change(f"g ({dtype}[64] x) => ({dtype}[64] y) {{ y = Exp(x) }}", X.astype(names[dtype]))
    assert unit / 4 < found <= unit * (2 if dtype == "double" else 1.001)  # numpy rounds float64 as well


def test_what_is_exact_stays_so() -> None:
    moved = "g (float[64] x) => (float[64] y) { a = Neg(x) b = Transpose(a) y = Identity(b) }"
    whole = "g (float[64] x) => (float[64] y) { a = Floor(x) b = Mul(a, a) y = Add(a, b) }"
    assert change(moved, X) == 0
    assert change(whole, 100 * X) == 0


def test_a_difference_of_nearly_equal_numbers_is_sensitive() -> None:
    graph = "g (float[64] x) => (float[64] y) <float big = {10000.0}> { e = Exp(x) a = Add(e, big) y = Sub(a, big) }"
    assert change(graph, X) > 1e-4


def test_every_product_of_a_sum_is_rounded() -> None:
    """Whole results: without rounding inside of the sum nothing would change."""
    graph = ("g (float[1,64] x) => (float[1,1] y) <float[64,1] w = {" + ",".join(["1"] * 64) + "}>"
             " { y = MatMul(x, w) }")  # fmt: skip
    found = change(graph, np.ones((1, 64), np.float32))
    assert 0 < found < 2**-24 * 33**0.5


@pytest.mark.parametrize(("level", "least", "most"), [(0, 0, 2**-23), (1, 0, 2**-23), (2, 2**-17, 2**-11),
                                                     (3, 2**-14, 2**-8), (4, 2**-12, 2**-7)])  # fmt: skip
def test_an_operand_is_as_coarse_as_the_accuracy_level_permits(level: int, least: float, most: float) -> None:
    rng = np.random.default_rng(0)
    weights = {"b": rng.integers(0, 256, (8, 2, 16), np.uint8), "s": rng.random((8, 2)).astype(np.float32)}
    attributes = {"K": 64, "N": 8, "bits": 4, "block_size": 32, "accuracy_level": level}
    node = helper.make_node("MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", **attributes)
    built = small_models.model([node], [small_models.floats("x", 4, 64)], ["y"], weights)
    found = change_of(built, rng.standard_normal((4, 64)).astype(np.float32))
    assert least < found < most
    threshold = thresholds.of_outputs(values.infer_types(built, {}))["y"]
    assert (threshold.source is ThresholdSource.BENNETT) == (level == 4)
