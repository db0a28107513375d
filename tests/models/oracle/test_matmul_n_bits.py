"""MatMulNBits without its bound gives the bits that the suite's oracle gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from epcheck.generators import registry, schema
from epcheck.generators.serialization.node_proto import read_node
from epcheck.generators.truth import Outputs
from epcheck.models.oracle import matmul_n_bits

RNG = np.random.default_rng(4)
MS = "com.microsoft"


@pytest.mark.parametrize("zero_points", ["none", "packed", "float"])
@pytest.mark.parametrize("is_biased", [False, True])
@pytest.mark.parametrize("k", [64, 75])
def test_the_product_is_that_of_the_suite(zero_points: str, is_biased: bool, k: int) -> None:
    n, blocks = 6, -(-k // 32)
    inputs: dict[str, Any] = {
        "A": RNG.standard_normal((2, 3, k)),
        "B": RNG.integers(0, 256, (n, blocks, 16), np.uint8),
        "scales": RNG.random((n, blocks)),
    }
    if zero_points == "packed":
        inputs["zero_points"] = RNG.integers(0, 256, (n, (blocks + 1) // 2), np.uint8)
    elif zero_points == "float":
        inputs["zero_points"] = RNG.random((n, blocks)) * 15
    names = [*inputs, *([""] * (5 - len(inputs)) + ["bias"] if is_biased else [])]
    if is_biased:
        inputs["bias"] = RNG.standard_normal(n)
    proto = helper.make_node("MatMulNBits", names, ["Y"], domain=MS, K=k, N=n, bits=4, block_size=32)
    node = read_node(proto, schema.schema("MatMulNBits", 1, MS), list(inputs.values()))
    found, known = matmul_n_bits.evaluate(node), registry.operator_of(f"{MS}::MatMulNBits").truth(node)
    assert isinstance(known, Outputs)
    (output,) = known.outputs
    expected = output.value if output.exact is None else output.exact
    assert found is not None
    assert found.tobytes() == expected.tobytes()


def test_other_widths_and_shapes_are_left_to_the_suite() -> None:
    values = [RNG.standard_normal((3, 64)), RNG.integers(0, 256, (6, 2, 16), np.uint8), RNG.random(12)]
    for changed in ({"bits": 8}, {"K": 65}, {"N": 5}):
        attributes = {"K": 64, "N": 6, "bits": 4, "block_size": 32, **changed}
        proto = helper.make_node("MatMulNBits", ["A", "B", "scales"], ["Y"], domain=MS, **attributes)
        assert matmul_n_bits.evaluate(read_node(proto, schema.schema("MatMulNBits", 1, MS), values)) is None
