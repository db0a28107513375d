"""Random rounding: what it leaves alone, and how far it takes a value."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.models.graph import values
from epcheck.models.oracle import oracle
from epcheck.models.oracle.rounding import RandomRounding
from tests.models.written_models import model


def change(graph: str, x: np.ndarray, seed: int = 0) -> float:
    """The relative change of the output `y` by random rounding."""
    built = model(graph)
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
