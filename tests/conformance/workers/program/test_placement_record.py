"""What the session's record of node assignment leaves out on DirectML 1.24.4, and what shows it all the same.

A float16 node that no provider has a kernel for runs on the CPU between casts to float32 (InsertCastTransformer).
Before
ONNX Runtime's pull request 28268 the record does not name it.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.conformance import lab
from epcheck.conformance.preparation import prepared_case
from epcheck.conformance.scheduling.pools import session_request
from epcheck.conformance.targets.specification import resolve
from epcheck.conformance.targets.target import CPU, DISABLE_FALLBACK, DML, Target
from epcheck.conformance.workers.client import WorkerClient
from epcheck.conformance.workers.idle_workers import IdleWorkers
from epcheck.conformance.workers.process import FrameReceived
from epcheck.conformance.workers.request import request, run_request, wait_until_ready
from epcheck.generators import suite

pytestmark = pytest.mark.lab

X = np.arange(8, dtype=np.float16).reshape(2, 2, 2)
DETERMINANTS = np.linalg.det(X.astype(np.float64)).astype(np.float16)
DISABLED = "fallback to CPU EP has been explicitly disabled"


def graph(nodes: list[onnx.NodeProto], *inputs: onnx.ValueInfoProto, output: str = "y") -> onnx.GraphProto:
    y = helper.make_tensor_value_info(output, TensorProto.FLOAT16, [2])
    return helper.make_graph(nodes, "g", inputs, [y])


def branch(name: str) -> onnx.GraphProto:
    return graph([helper.make_node("Det", ["x"], [name], name=f"det_{name}")], output=name)


INPUT = helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2, 2, 2])
CONDITION = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
RELU = helper.make_node("Relu", ["x"], ["r"], name="relu")
IN_MAIN_GRAPH = graph([RELU, helper.make_node("Det", ["r"], ["y"], name="det")], INPUT)
IN_BODY = graph(
    [RELU, helper.make_node("If", ["c"], ["y"], name="if", then_branch=branch("a"), else_branch=branch("b"))],
    INPUT,
    CONDITION,
)


@pytest.fixture(scope="module")
def dml() -> Target:
    return resolve("dml")


@pytest.fixture(scope="module")
def worker(dml: Target) -> Iterator[WorkerClient]:
    with lab.in_use(), closing(IdleWorkers()) as idle:
        client = WorkerClient(dml, queue.SimpleQueue(), idle, 60.0)
        wait_until_ready(client)
        assert client.facts["onnxruntime"] == "1.24.4", "the finding is about this release"
        yield client
        client.kill("the test is over")


def answer(
    worker: WorkerClient, dml: Target, built: onnx.GraphProto, strict: bool, bodies: bool = False
) -> dict[str, Any]:
    model = helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    target = replace(dml, config={**dml.config, DISABLE_FALLBACK: "01"[strict]})
    feeds = [("x", "float16", X.shape, X.tobytes()), ("c", "bool", (), b"\1")][: len(built.input)]
    found = request(worker, "a model", run_request("a model", target, model, feeds, ["y"], bodies=bodies))
    assert isinstance(found, FrameReceived)
    if found.header["stage"] == "done":
        assert np.array_equal(np.frombuffer(found.body, np.float16), DETERMINANTS)
    return dict(found.header)


def test_the_record_lacks_a_node_that_runs_between_casts(worker: WorkerClient, dml: Target) -> None:
    found = answer(worker, dml, IN_MAIN_GRAPH, strict=False)
    assert (found["stage"], found["assignment"]) == ("done", [[DML, "Relu", "relu"]])


def test_a_session_that_may_not_fall_back_is_refused_for_it(worker: WorkerClient, dml: Target) -> None:
    found = answer(worker, dml, IN_MAIN_GRAPH, strict=True)
    assert found["stage"] == "create"
    assert DISABLED in found["message"]


@pytest.mark.parametrize("strict", [False, True])
def test_inside_a_body_neither_shows_it(worker: WorkerClient, dml: Target, strict: bool) -> None:
    found = answer(worker, dml, IN_BODY, strict)
    assert found["stage"] == "done"
    assert sorted(found["assignment"]) == [[DML, "If", "if"], [DML, "Relu", "relu"]]


def test_the_kernels_that_ran_show_it_inside_a_body(worker: WorkerClient, dml: Target) -> None:
    """So cases of operators with bodies ask for them."""
    found = answer(worker, dml, IN_BODY, strict=True, bodies=True)
    nodes = sorted(found["assignment"])
    assert [node for node in nodes if node[0] == DML] == [[DML, "If", "if"], [DML, "Relu", "relu"]]
    assert [CPU, "Det", "det_a"] in nodes
    assert {operator for provider, operator, _ in nodes if provider == CPU} == {"Cast", "Det"}


def test_of_a_body_that_the_provider_runs_no_other_kernel_is_named(worker: WorkerClient, dml: Target) -> None:
    case = prepared_case.of(suite.case_by_id("If-13/float16/then[initializer]").build())
    found = request(worker, "an If", session_request.encode("an If", [case], dml, place=False))
    assert isinstance(found, FrameReceived)
    assert found.header["stage"] == "done"
    assert {provider for provider, _, _ in found.header["assignment"]} == {DML}
