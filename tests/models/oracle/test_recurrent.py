"""RNN, GRU and LSTM of the oracle: the suite's truth in less time, and quantised states of DynamicQuantizeLSTM."""

from __future__ import annotations

import numpy as np
import pytest

from epcheck.generators import registry
from epcheck.generators.case import CaseContext
from epcheck.generators.node import Node, Operand
from epcheck.generators.operators.recurrent.recurrent import oracle
from epcheck.generators.operators.recurrent.recurrent import samples as recurrent_samples
from epcheck.generators.truth import Outputs, Refusal
from epcheck.models.oracle import recurrent


def nodes(kind: str) -> list[Node]:
    """Those of the suite's samples."""
    cell = recurrent_samples.CELLS[kind]
    wide = (np.dtype(np.float64),)
    found = []
    for sample in recurrent_samples.samples(cell):
        context = CaseContext(14, wide, np.random.default_rng(0))
        found.append(recurrent_samples.node(cell, sample, context))
    return found


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_every_sample_has_the_suites_values(kind: str) -> None:
    compared = 0
    for node in nodes(kind):
        true, found = oracle.truth(node), recurrent.evaluate(node)
        if isinstance(true, Refusal):
            assert found is None
            continue
        assert isinstance(true, Outputs)
        assert found is not None
        for output in true.outputs:
            np.testing.assert_allclose(found[output.name], output.value, rtol=1e-12, atol=1e-13)
        compared += 1
    assert compared > 20


def quantized(seed: int, steps: int, batch: int, hidden: int) -> Node:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 3, (steps, batch, 3)).astype(np.float32)
    w, r = (
        rng.integers(-64, 65, (1, rows, 4 * hidden)).astype(np.int8) for rows in (3, hidden)
    )  # 7 bits: exact without VNNI
    scale, zero = np.full(1, 0.01, np.float32), np.zeros(1, np.int8)
    parts = {"X": x, "W": w, "R": r, "W_scale": scale, "W_zero_point": zero, "R_scale": scale, "R_zero_point": zero}
    inputs = [Operand(name, value) for name, value in parts.items()]
    return Node("DynamicQuantizeLSTM", "com.microsoft", 1, (*inputs[:3], *[None] * 5, *inputs[3:]), ("Y",), {})


@pytest.mark.parametrize("batch", [1, 2])
def test_states_of_a_quantised_lstm_are_quantised(batch: int) -> None:
    """A long sequence, in which an LSTM of real states goes elsewhere. One thread, as in a worker."""
    import onnxruntime as ort
    from onnx import TensorProto, helper

    node = quantized(0, 40, batch, 16)
    x = node.array("X")
    weights = [operand for operand in node.inputs[1:] if operand is not None]
    names = [operand.name if operand else "" for operand in node.inputs]
    proto = helper.make_node("DynamicQuantizeLSTM", names, ["Y"], domain="com.microsoft", hidden_size=16)
    graph = helper.make_graph(
        [proto], "g", [helper.make_tensor_value_info("X", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)],
        [helper.make_tensor(w.name, helper.np_dtype_to_tensor_dtype(w.value.dtype), w.value.shape, w.value.tobytes(),
                            raw=True) for w in weights],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    session = ort.InferenceSession(model, options)
    (computed,) = session.run(None, {"X": x})
    found = recurrent.evaluate(node)
    assert found is not None
    assert np.abs(found["Y"] - computed).max() < 1e-5
    real = registry.operator_of("com.microsoft::DynamicQuantizeLSTM").truth(node)
    assert isinstance(real, Outputs)
    assert np.abs(real.outputs[0].value - computed).max() > 0.01


def test_what_has_one_value_is_not_quantised() -> None:
    assert recurrent.quantise(np.zeros((2, 3))).tolist() == np.zeros((2, 3)).tolist()
    assert recurrent.quantise(np.array([-1.0, 0.0, 0.3])).tolist() == pytest.approx([-1.0, 0.0, 0.3], abs=1.3 / 255)
