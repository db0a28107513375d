"""Advice on nodes: what is tried, in which order, and what is recommended.

The nodes run on real sessions of the CPU provider. Where they would be on DirectML's is what its claims say; the tests
on the real provider are in validation/test_advice_dml.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from epcheck.models.execution.model_outcome import CREATE, DONE, ModelOutcome
from epcheck.models.graph.feed import Feed
from epcheck.models.graph.wiring import wire
from epcheck.models.placement.advise import AdviceLimits, Subject, advice_on, advise_placement, lone_node
from epcheck.models.placement.change import Advice
from epcheck.models.placement.placement import Placement, place
from tests.models.placed_models import CPU, DML, model, node

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def on_cpu(whole: onnx.ModelProto, feeds: Mapping[str, Feed], level: str) -> ModelOutcome:
    """What the CPU provider makes of a model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if level == "disabled":
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(whole.SerializeToString(), options, providers=[CPU])
    except Exception as error:
        return ModelOutcome(CREATE, "session creation", str(error))
    names = [output.name for output in session.get_outputs()]
    return ModelOutcome(DONE, outputs=dict(zip(names, session.run(names, feeds), strict=True)))


class ByClaims:
    """Runs on the CPU, and places nodes as the claims have it. tilt: added to all outputs."""

    def __init__(self, tilt: float = 0.0) -> None:
        self.asked: list[onnx.ModelProto] = []
        self._tilt = tilt

    def __call__(self, whole: onnx.ModelProto, feeds: Mapping[str, Feed], level: str) -> ModelOutcome:
        self.asked.append(whole)
        done = on_cpu(whole, feeds, level)
        placed = place(whole, DML, None, {})
        assignment = tuple((each.predicted, each.operator, each.name) for each in placed.nodes)
        outputs = {name: value + self._tilt if self._tilt else value for name, value in done.outputs.items()}
        return ModelOutcome(done.stage, done.during, done.message, outputs, assignment)


def found(whole: onnx.ModelProto, candidate: Any = None, feeds: Any = None, **changes: Any) -> Placement:
    feeds = feeds or {"x": X}
    placement = place(whole, DML, None, {})
    subject = Subject(whole, feeds, "all", None, AdviceLimits(**changes))
    return advise_placement(placement, subject, candidate or ByClaims(), on_cpu)


def test_a_node_gets_the_change_that_places_it() -> None:
    placement = found(model(node("Relu", "x", "a"), node("Elu", "a", "y"), opset=22))
    relu, elu = placement.nodes
    assert relu.advice is None
    assert elu.advice is not None
    assert elu.advice.change == "export the model with opset 21, in which this is Elu-6"
    assert elu.advice.error == 0.0
    assert (elu.advice.alone, elu.advice.sessions) == (False, 2)
    assert elu.what_to_do == (
        "Export the model with opset 21, in which this is Elu-6. Tried on the provider: it is placed there, and its "
        "outputs are the same to the last bit"
    )


def test_a_change_with_other_values_is_not_recommended() -> None:
    (elu,) = found(model(node("Elu", "x", "y"), opset=22), ByClaims(tilt=0.01)).nodes
    assert elu.advice is not None
    assert elu.advice.change == ""
    assert "one of the versions that were tried places it" in elu.what_to_do


def test_a_node_that_nothing_places_says_why() -> None:
    (det,) = found(model(node("Det", "x", "y"), shape=(3, 3)), feeds={"x": np.eye(3, dtype=np.float32)}).nodes
    assert det.what_to_do.startswith("Nothing places it: the provider has no kernel of the operator in any version")


def test_nodes_that_are_alike_share_a_trial() -> None:
    candidate = ByClaims()
    nodes = [node("Elu", "x", "a"), node("Elu", "a", "b"), node("Elu", "b", "y", alpha=2.0)]
    placement = found(model(*nodes, opset=22), candidate)
    assert [each.advice is not None and each.advice.change != "" for each in placement.nodes] == [True] * 3
    assert len(candidate.asked) == 4  # two kinds of nodes, each unchanged and with a change


def branches(body_node: onnx.NodeProto, opset: int) -> onnx.ModelProto:
    """An If that always takes its first branch; both branches have the node."""
    body = helper.make_graph([body_node], "b", [], [helper.make_tensor_value_info("z", 1, None)])
    condition = helper.make_node(
        "Constant", [], ["c"], name="c", value=helper.make_tensor("", TensorProto.BOOL, [], [1])
    )
    taken = helper.make_node("If", ["c"], ["y"], name="y", then_branch=body, else_branch=body)
    return model(condition, taken, opset=opset)


def test_a_node_in_a_body_is_tried_with_what_it_receives_there() -> None:
    placement = found(branches(node("Elu", "x", "z"), 22))
    words = {each.scope: each.what_to_do for each in placement.elsewhere}
    assert words[""].startswith("Nothing places it: the provider has no kernel for control flow")
    assert words["y.then_branch/"] == (
        "Export the model with opset 21, in which this is Elu-6. Tried on the provider: it is placed there, and its "
        "outputs are the same to the last bit"
    )
    assert words["y.else_branch/"].startswith("Not tried: it is in a body of If, Loop or Scan that")


def test_a_node_of_a_body_that_the_provider_takes_alone_stays_with_the_body() -> None:
    class KeepsBodies(ByClaims):
        def __call__(self, whole: onnx.ModelProto, feeds: Mapping[str, Feed], level: str) -> ModelOutcome:
            answer = super().__call__(whole, feeds, level)
            inside = tuple((CPU, "Relu", "z") for node in whole.graph.node if node.op_type == "If")
            return ModelOutcome(DONE, outputs=answer.outputs, assignment=(*inside, *(answer.assignment or ())))

    whole, candidate = branches(node("Relu", "x", "z"), 13), KeepsBodies()
    outcome = candidate(whole, {"x": X}, "all")
    placement = place(whole, DML, ((CPU, "If", "y"), (CPU, "Relu", "z")), {"x": (2, 3)})
    placement = advise_placement(placement, Subject(whole, {"x": X}, "all", outcome), candidate, on_cpu)
    (inside,) = [each for each in placement.elsewhere if each.scope == "y.then_branch/"]
    assert inside.what_to_do.startswith("Nothing places it in its body: the provider takes it alone")


def test_the_sessions_are_limited() -> None:
    candidate = ByClaims()
    placement = found(model(node("Elu", "x", "a"), node("Mish", "a", "y"), opset=22), candidate, sessions=1)
    assert len(candidate.asked) == 1
    assert "the limit of sessions or time was reached" in placement.nodes[1].what_to_do


WINDOWS = (
    r"[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Exception during initialization: E:\_work\1\s\onnxruntime\dml"
    r"\DmlGraphFusionHelper.cpp(588)\onnxruntime_pybind11_state.pyd!00006FFFF9CF07CF: (caller: 00006FFFF9CC1217) "
    "Exception(1) tid(138) 80070057 The parameter is incorrect."
)


class Folds(ByClaims):
    """Keeps a Gather on the CPU, unless the sizes of the input are fixed: then there is none, or the session fails."""

    def __init__(self, error: str = "") -> None:
        super().__init__()
        self._error = error

    def __call__(self, whole: onnx.ModelProto, feeds: Mapping[str, Feed], level: str) -> ModelOutcome:
        answer = super().__call__(whole, feeds, level)
        if level == "disabled":  # a node alone, which the provider takes
            return ModelOutcome(DONE, outputs=answer.outputs, assignment=((DML, "", "batch"),))
        fixed = whole.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2
        if fixed and self._error:
            return ModelOutcome(CREATE, "session creation", self._error)
        left = ((DML, "Reshape", "y"),)
        return ModelOutcome(DONE, outputs=answer.outputs,
                            assignment=left if fixed else (*left, (CPU, "Gather", "batch")))  # fmt: skip


def advice_on_gather(candidate: Folds) -> Advice:
    """Advice on a node that the provider takes alone, and not in a model whose sizes are not fixed."""
    whole = model(
        node("Shape", "x", "s"), node("Gather", "s zero", "batch"), node("Concat", "batch minus", "target", axis=0),
        node("Reshape", "x target", "y"), shape=(2, 3),
        constants={"zero": np.int64([0]), "minus": np.int64([-1])},
    )  # fmt: skip
    whole.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    outcome = candidate(whole, {"x": X}, "all")
    placement = place(whole, DML, outcome.assignment, {"x": (2, 3)})
    (gather,) = advise_placement(placement, Subject(whole, {"x": X}, "all", outcome), candidate, on_cpu).elsewhere
    assert gather.advice is not None
    return gather.advice


def test_a_whole_model_is_tried_with_fixed_sizes_where_its_nodes_are_placed_alone() -> None:
    advice = advice_on_gather(Folds())
    assert advice.change == "fix the sizes of the inputs (x: 2 × 3)"
    assert advice.result == (
        "it is computed once, when the session is created, no node is left elsewhere, the outputs are the same to the "
        "last bit"
    )
    assert advice.alone


def test_a_model_that_fails_with_fixed_sizes_is_told_without_addresses_and_folders() -> None:
    advice = advice_on_gather(Folds(WINDOWS))
    assert (advice.change, advice.alone) == ("", True)
    assert advice.result.endswith(
        "; with fixed sizes the whole model fails in session creation: DmlGraphFusionHelper.cpp(588) 80070057 The "
        "parameter is incorrect."
    )


def test_a_node_without_a_kernel_of_the_baseline_is_judged_by_the_oracle() -> None:
    whole = model(node("Elu", "x", "y"), dtype=TensorProto.DOUBLE)
    alone = lone_node(wire(whole), 0, {"x": X.astype(np.float64)})
    assert not on_cpu(alone.model, alone.feeds, "disabled").is_done
    advice = advice_on(alone, DML, ByClaims(), on_cpu)
    assert advice.change == "cast float64 to float32 before it and back behind it"
    assert advice.error is not None
    assert 0 < advice.error < 1e-6
