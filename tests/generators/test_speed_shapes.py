"""The nodes that are timed: each is there once, and ONNX Runtime runs it."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from epcheck.generators.speed_shapes import DRAWN, LARGE, NEWEST_OPSET, SMALL, TimedNode, timed_nodes

EVERY = list(timed_nodes())
SMALL_NODES = [node for node in EVERY if node.size == SMALL and node.dtype != "float16"]


def test_every_node_is_there_once_and_in_both_sizes() -> None:
    assert len({node.id for node in EVERY}) == len(EVERY) > 200
    operators = {size: {node.operator for node in EVERY if node.size == size} for size in (SMALL, LARGE)}
    assert operators[SMALL] == operators[LARGE]
    sizes = {node.id: (node.sizes, node.elements) for node in EVERY}
    assert sizes["MatMul-13/float16/square_4096"] == ("4096x4096, 4096x4096", 1 << 25)
    assert sizes["GRU-14/float32/one_step"] == ("1x1x256, 1x768x256, 1x768x256, 1x1536", 256 + 2 * 768 * 256 + 1536)
    assert sizes["com.microsoft::MultiHeadAttention-1/float16/llama_4096_tokens"][0] == ", ".join(["1x4096x4096"] * 3)


def test_data_comes_from_the_id_alone() -> None:
    node = next(node for node in EVERY if node.id == "Gemm-13/float32/resnet50_fc")
    (model, feeds, _), (again, others, _) = node.build(), node.build()
    assert model == again
    assert [value.tobytes() for value in feeds.values()] == [value.tobytes() for value in others.values()]
    assert list(feeds) == ["input_0"]  # weights are initializers


def test_large_feeds_are_drawn_in_part_and_large_weights_whole() -> None:
    node = next(node for node in EVERY if node.id == "Gemm-13/float16/llama_512_tokens")
    content, feeds, shapes = node.build()
    model = onnx.load_from_string(content)
    assert (feeds["input_0"].shape, feeds["input_0"].dtype, shapes) == ((DRAWN,), np.float16, {"input_0": (512, 4096)})
    assert [size.dim_value for size in model.graph.input[0].type.tensor_type.shape.dim] == [512, 4096]
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0])
    assert weights.shape == (4096, 4096)
    np.testing.assert_array_equal(weights[:256], weights[-256:])


@pytest.mark.parametrize("node", SMALL_NODES, ids=lambda node: node.id)
def test_the_runtime_runs_it(node: TimedNode) -> None:
    content, feeds, shapes = node.build()
    model = onnx.load_from_string(content)
    assert {entry.domain: entry.version for entry in model.opset_import}[""] <= NEWEST_OPSET
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    values = session.run(None, {name: np.resize(value, shapes.get(name, value.shape)) for name, value in feeds.items()})
    assert len(values) == len(model.graph.output)
    assert all(value.size for value in values)
    assert all(np.isfinite(value).all() for value in values if value.dtype.kind == "f")
