"""A session that fails on DirectML leaves commands behind; the sessions after it must not meet them."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from epcheck.conformance.targets.target import Target
from epcheck.conformance.workers.client import WorkerClient
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import FrameReceived
from epcheck.conformance.workers.program import protocol
from epcheck.conformance.workers.request import request, run_request, wait_until_ready
from epcheck.generators import suite

pytestmark = pytest.mark.slow

REFUSED = "LSTM-14/float32/only_y_c_forward[initializer]"
"""The provider copies the weights to the device before it refuses the node."""

ROUNDS = 60


@pytest.fixture
def worker(dml: Target) -> Iterator[WorkerClient]:
    client = WorkerClient(dml, queue.SimpleQueue(), IdleWorkers())
    wait_until_ready(client)
    yield client
    client.retire()


def ask(worker: WorkerClient, model: bytes, feeds: dict[str, np.ndarray]) -> FrameReceived:
    described = [(name, value.dtype.name, value.shape, value.tobytes()) for name, value in feeds.items()]
    answer = request(worker, "a session", run_request("a session", worker.target, model, described, ["y"]))
    assert isinstance(answer, FrameReceived), answer
    return answer


def product(weights: np.ndarray) -> bytes:
    """A MatMul with these weights."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, weights.shape) for name in "xy")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return bytes(model.SerializeToString())


def test_refused_sessions_do_not_affect_later_ones(worker: WorkerClient) -> None:
    """docs/findings/failed-sessions.md; the same worker answers every time."""
    refused = suite.case_by_id(REFUSED).build()
    weights = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    model, feeds = product(weights), {"x": np.eye(64, dtype=np.float32)}
    for _ in range(ROUNDS):
        failed = ask(worker, refused.model, dict(refused.feeds))
        assert "80070057" in failed.header["message"]
        right = ask(worker, model, feeds)
        np.testing.assert_array_equal(dict(protocol.decode(right.header, right.body))["y"], weights)
