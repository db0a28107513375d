"""`first_wrong_node`: what it names, how many sessions it takes, and what it does not name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from epcheck.models.wrong_nodes.culprit import Kind
from epcheck.models.wrong_nodes.first_wrong_node import error_along, first_wrong_node
from epcheck.models.wrong_nodes.options import Limits, SearchOptions
from tests.models.in_process_targets import AtLevels, Cpu, Failing, Fusing, Outcome, Wrong
from tests.models.small_models import feeds, floats, layers, model

LAYERS = layers(8)
NODES = len(LAYERS.graph.node)


@pytest.mark.parametrize("node", range(0, NODES, 5))
def test_a_node_with_a_wrong_result_is_named_in_log2_n_sessions(node: int) -> None:
    candidate, baseline = Wrong(wrong={f"n{node}": lambda _n, value: value * np.float32(1.01)}), Cpu()
    culprit = first_wrong_node(LAYERS, feeds(), candidate, baseline)
    assert (culprit.kind, [place.index for place in culprit.nodes]) == (Kind.NODE, [node])
    assert culprit.levels == {"disabled": "wrong"}
    whole_and_alone = 2
    assert len(candidate.asked) <= math.ceil(math.log2(NODES)) + whole_and_alone
    assert len(baseline.asked) == 1


def test_few_values_become_outputs_at_a_time_so_that_the_rest_is_fused_as_it_was() -> None:
    candidate = Wrong(wrong={"n13": lambda _n, value: value + np.float32(1)})
    first_wrong_node(LAYERS, feeds(), candidate, Cpu())
    assert max(len(outputs) for outputs, _ in candidate.asked) <= 3


def test_an_error_that_is_too_small_where_it_is_born_is_found_by_examining_each_node() -> None:
    nodes = [helper.make_node("Mul", ["x", "one"], ["v0"], name="n0")]
    nodes += [helper.make_node("Mul", [f"v{i}", f"v{i}"], [f"v{i + 1}"], name=f"n{i + 1}") for i in range(12)]
    inputs, weights = [floats("x", 4)], {"one": np.ones(1, np.float32)}
    growing = model(nodes, inputs, ["v12"], weights)
    candidate = Wrong(wrong={"n0": lambda _n, value: value * np.float32(1 + 1e-5)})
    culprit = first_wrong_node(growing, {"x": np.linspace(0.99, 1.01, 4).astype(np.float32)}, candidate, Cpu())
    assert (culprit.kind, [place.name for place in culprit.nodes]) == (Kind.NODE, ["n0"])


def test_an_error_that_only_adds_up_is_no_node_s() -> None:
    nodes = [
        helper.make_node("Exp" if i % 2 == 0 else "Log", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(40)
    ]
    chain = model(nodes, [floats("v0", 64)], ["v40"])
    # as far as one rounding of float32 may be off, always in one direction
    candidate = Wrong(wrong={f"n{i}": lambda _n, v: np.nextafter(v, np.float32(9)) for i in range(40)})
    values = {"v0": np.linspace(1, 3, 64).astype(np.float32)}
    culprit = first_wrong_node(chain, values, candidate, Cpu())
    assert culprit.kind == Kind.ACCUMULATED
    assert culprit.points[-1].error > 3 * culprit.points[0].error
    assert set(culprit.levels.values()) == {"wrong"}
    at_extended = AtLevels(wrong=candidate.wrong, levels=("extended", "all"))
    culprit = first_wrong_node(chain, values, at_extended, Cpu(), SearchOptions(level="all"))
    assert (culprit.kind, culprit.levels) == (
        Kind.ACCUMULATED, {"disabled": "right", "basic": "right", "extended": "wrong", "all": "wrong"},
    )  # fmt: skip
    assert culprit.words.endswith("; at level 'basic' the outputs are right: what 'extended' fuses adds up")


def test_nodes_that_are_wrong_only_when_fused_are_named_together_with_the_level() -> None:
    culprit = first_wrong_node(layers(4), feeds(), Fusing(sums=("sum2",)), Cpu())
    assert (culprit.kind, [place.name for place in culprit.nodes]) == (Kind.FUSION, ["n9", "n10"])
    assert culprit.levels == {"disabled": "right", "basic": "right", "extended": "wrong", "all": "wrong"}
    assert "at level 'extended', which fuses them" in culprit.words


@pytest.mark.parametrize(
    ("stage", "kind"), [("crash", Kind.CRASH), ("timeout", Kind.TIMEOUT), ("create", Kind.REFUSED)]
)
def test_a_node_that_ends_the_session_is_named(stage: str, kind: Kind) -> None:
    candidate = Failing(name="n17", stage=stage)
    culprit = first_wrong_node(LAYERS, feeds(), candidate, Cpu())
    assert (culprit.kind, [place.index for place in culprit.nodes]) == (kind, [17])
    assert str(culprit.nodes[0]) == "node 17 `n17` (Add)"
    assert len(candidate.asked) <= math.ceil(math.log2(NODES)) + 2


def test_the_values_that_the_failing_node_received_come_back() -> None:
    culprit = first_wrong_node(layers(2), feeds(), Failing(name="n1"), Cpu())
    weights = {tensor.name: np.frombuffer(tensor.raw_data, np.float32) for tensor in layers(2).graph.initializer}
    np.testing.assert_allclose(culprit.received["product0"], feeds()["x"] @ weights["w0"].reshape(8, 8), rtol=1e-5)


def test_nodes_that_crash_only_together_are_named_together() -> None:
    candidate = Failing(name="n6", together="n4", levels=("extended", "all"))
    culprit = first_wrong_node(LAYERS, feeds(), candidate, Cpu())
    assert (culprit.kind, [place.name for place in culprit.nodes]) == (Kind.FUSION, ["n4", "n6"])
    assert culprit.levels["basic"] == "right"
    assert culprit.levels["extended"] == "crash"


def test_a_node_whose_second_run_differs_is_named() -> None:
    class Unsteady(Cpu):
        def __call__(self, model: Any, feeds: Any, *, level: str = "all") -> Outcome:
            outcome = super().__call__(model, feeds, level=level)
            after, differs = False, set()
            for node in model.graph.node:
                after |= node.name == "n11"
                differs |= set(node.output) if after else set()
            return Outcome(outputs=outcome.outputs, repeat_differs=sorted(differs & outcome.outputs.keys()))

    culprit = first_wrong_node(LAYERS, feeds(), Unsteady(), Cpu())
    assert (culprit.kind, [place.index for place in culprit.nodes]) == (Kind.UNSTEADY, [11])


def test_random_numbers_are_nobody_s_fault() -> None:
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["noise"], name="n0"),
        helper.make_node("Add", ["x", "noise"], ["y"], name="n1"),
    ]
    candidate = Wrong(wrong={"n0": lambda _n, value: value + np.float32(1)})
    culprit = first_wrong_node(model(nodes, [floats("x", 4, 8)], ["y"]), feeds(), candidate, Cpu())
    assert (culprit.kind, culprit.nodes[0].name) == (Kind.RANDOM, "n0")


def test_a_node_that_holds_a_graph_is_named_as_a_whole() -> None:
    double = helper.make_node("Add", ["captured", "captured"], ["twice"])
    once = helper.make_node("Identity", ["captured"], ["same"])
    branches = {
        "then_branch": helper.make_graph([double], "then", [], [helper.make_tensor_value_info("twice", 1, None)]),
        "else_branch": helper.make_graph([once], "else", [], [helper.make_tensor_value_info("same", 1, None)]),
    }
    nodes = [
        helper.make_node("Neg", ["x"], ["captured"], name="n0"),
        helper.make_node("If", ["condition"], ["chosen"], name="n1", **branches),
        helper.make_node("Neg", ["chosen"], ["y"], name="n2"),
    ]
    held = model(nodes, [floats("x", 4, 8), helper.make_tensor_value_info("condition", TensorProto.BOOL, [])], ["y"])

    class WrongIf(Cpu):
        def __call__(self, model: Any, feeds: Any, *, level: str = "all") -> Outcome:
            for node in model.graph.node:
                branches = {attribute.name: attribute.g for attribute in node.attribute}
                if node.op_type == "If":
                    branches["then_branch"].CopyFrom(branches["else_branch"])
            return super().__call__(model, feeds, level=level)

    values = {**feeds(), "condition": np.array(True)}
    candidate = WrongIf()
    before = held.SerializeToString(deterministic=True)
    culprit = first_wrong_node(held, values, lambda m, f, level="all": candidate(_copy(m), f, level=level), Cpu())
    assert (culprit.kind, [place.name for place in culprit.nodes]) == (Kind.NODE, ["n1"])
    np.testing.assert_array_equal(culprit.received["captured"], -values["x"])
    assert held.SerializeToString(deterministic=True) == before


def _copy(proto: Any) -> Any:
    made = type(proto)()
    made.CopyFrom(proto)
    return made


def test_what_is_right_has_no_culprit() -> None:
    culprit = first_wrong_node(layers(3), feeds(), Cpu(), Cpu())
    assert (culprit.kind, culprit.nodes) == (Kind.RIGHT, ())


def test_a_search_that_may_not_ask_enough_says_between_which_nodes_it_is() -> None:
    candidate = Wrong(wrong={"n13": lambda _n, value: value + np.float32(1)})
    culprit = first_wrong_node(LAYERS, feeds(), candidate, Cpu(), SearchOptions(limits=Limits(sessions=5)))
    assert culprit.kind == Kind.UNEXPLAINED
    assert 13 in [place.index for place in culprit.nodes]
    assert len(culprit.nodes) < NODES


def test_the_error_along_the_graph_is_zero_before_the_wrong_node_and_not_after() -> None:
    candidate = Wrong(wrong={"n5": lambda _n, value: value * np.float32(1.01)})
    points = error_along(layers(3), feeds(), candidate, Cpu(), blocks=3)
    assert [point.node for point in points] == list(range(12))
    assert max(point.error for point in points[:5]) == 0
    assert points[5].error == pytest.approx(0.01, rel=1e-3)
    assert min(point.error for point in points[6:]) > 1e-4


class RefusesOutputsThatAreRead(Wrong):
    """No session where an output is also read by a Relu alone, as DirectML's provider has it of fused activations."""

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:
        readers = [node.op_type for node in model.graph.node for name in node.input
                   if name in {output.name for output in model.graph.output}]  # fmt: skip
        return (
            Outcome("create", "no such output") if readers == ["Relu"] else super().__call__(model, feeds, level=level)
        )


@pytest.mark.parametrize("node", [13, 14])
def test_a_value_that_the_session_cannot_give_while_it_is_read_comes_through_an_identity(node: int) -> None:
    candidate = RefusesOutputsThatAreRead(wrong={f"n{node}": lambda _n, value: value * np.float32(1.01)})
    culprit = first_wrong_node(LAYERS, feeds(), candidate, Cpu())
    assert (culprit.kind, [place.index for place in culprit.nodes]) == (Kind.NODE, [node])


def test_what_a_crashing_node_receives_comes_from_the_baseline_where_the_candidate_cannot_give_it() -> None:
    class Crashing(Failing):
        def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:
            if len(model.graph.output) > 1:
                return Outcome("create", "one output only")
            return super().__call__(model, feeds, level=level)

    baseline = Cpu()
    culprit = first_wrong_node(LAYERS, feeds(), Crashing(name="n14"), baseline)
    assert (culprit.kind, [place.index for place in culprit.nodes]) == (Kind.CRASH, [14])
    assert set(culprit.received) == {"sum3"}
