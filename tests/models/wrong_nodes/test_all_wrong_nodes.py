"""`all_wrong_nodes`: every fault is named in one search, with what it does to the outputs, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from epcheck.models.wrong_nodes.all_wrong_nodes import WrongNodes, all_wrong_nodes
from epcheck.models.wrong_nodes.culprit import Kind
from epcheck.models.wrong_nodes.options import Limits, SearchOptions
from tests.models.in_process_targets import Change, Cpu, Failing, Fusing, Outcome, Wrong
from tests.models.small_models import feeds, floats, layers, model

LAYERS = layers(8)
RIGHT = "with the baseline's values in place of theirs the rest of the model is right"


def larger(by: float) -> Change:
    return lambda _node, value: value * np.float32(by)


def named(found: WrongNodes) -> list[list[int]]:
    return [[node.index for node in part] for culprit in found.culprits for part in culprit.parts]


@pytest.mark.parametrize("places", [(5,), (3, 4), (0, 15, 31), (2, 3, 17, 29), (1, 8, 9, 22, 30)])
def test_every_wrong_node_is_named_and_no_other(places: Sequence[int]) -> None:
    candidate = Wrong(wrong={f"n{place}": larger(1.01) for place in places})
    found = all_wrong_nodes(LAYERS, feeds(), candidate, Cpu())
    assert sorted(named(found)) == [[place] for place in places]
    assert {culprit.kind for culprit in found.culprits} == {Kind.NODE}
    assert (found.harmless, found.remainder) == ((), RIGHT)


def test_the_effect_of_a_node_is_what_its_error_alone_does_to_the_output() -> None:
    nodes = [helper.make_node("Mul", ["x", "half"], ["a"], name="n0"),
             helper.make_node("Add", ["a", "x"], ["b"], name="n1"),
             helper.make_node("Neg", ["x"], ["c"], name="n2")]  # fmt: skip
    two = model(nodes, [floats("x", 4)], ["b", "c"], {"half": np.full(1, 0.5, np.float32)})
    candidate = Wrong(wrong={"n0": larger(1.3), "n2": larger(1.01)})
    found = all_wrong_nodes(two, {"x": np.ones(4, np.float32)}, candidate, Cpu())
    effects = [culprit.effect for culprit in found.culprits]
    assert [(e.output, round(e.error, 6), e.matters) for e in effects if e] == [("b", 0.1, True), ("c", 0.01, True)]
    assert effects[0] is not None
    assert effects[0].words.startswith("alone it changes 'b' by 0.1, ")
    assert effects[0].times == pytest.approx(0.1 / effects[0].allowed)


def test_a_wrong_node_without_effect_is_not_at_fault() -> None:
    nodes = [helper.make_node("Mul", ["x", "tiny"], ["a"], name="n0"),
             helper.make_node("Add", ["a", "x"], ["b"], name="n1"),
             helper.make_node("Exp", ["b"], ["c"], name="n2")]  # fmt: skip
    small = model(nodes, [floats("x", 4)], ["c"], {"tiny": np.full(1, 1e-9, np.float32)})
    found = all_wrong_nodes(
        small, {"x": np.ones(4, np.float32)}, Wrong(wrong={"n0": larger(1.5), "n2": larger(1.5)}), Cpu()
    )
    assert named(found) == [[2]]
    assert [culprit.nodes[0].name for culprit in found.harmless] == ["n0"]
    assert found.harmless[0].effect is not None
    assert not found.harmless[0].effect.matters


def test_wrong_fusions_and_wrong_nodes_are_named_together() -> None:
    class Both(Fusing):
        def __call__(self, proto: Any, values: Any, *, level: str = "all") -> Outcome:
            for node in proto.graph.node:
                if node.name == "n25":  # an Add, that is a Sub here
                    node.op_type = "Sub"
            return super().__call__(proto, values, level=level)

    found = all_wrong_nodes(layers(8), feeds(), Both(sums=("sum2", "sum5")), Cpu())
    assert named(found) == [[9, 10], [21, 22], [25]]
    assert [(culprit.kind, culprit.count) for culprit in found.culprits] == [(Kind.FUSION, 2), (Kind.NODE, 1)]
    assert found.remainder == RIGHT


def test_what_is_wrong_beside_a_node_that_ends_the_session_is_named_too() -> None:
    class Both(Failing):
        def __call__(self, proto: Any, values: Any, *, level: str = "all") -> Outcome:
            if any(node.name == self.name for node in proto.graph.node):
                return super().__call__(proto, values, level=level)
            return Wrong(wrong={"n25": larger(1.01)})(proto, values, level=level)

    found = all_wrong_nodes(LAYERS, feeds(), Both(name="n17"), Cpu())
    assert [(c.kind, [node.index for node in c.nodes]) for c in found.culprits] == [
        (Kind.CRASH, [17]), (Kind.NODE, [25]),
    ]  # fmt: skip
    assert found.culprits[0].effect is None


def test_an_honest_target_has_none() -> None:
    found = all_wrong_nodes(LAYERS, feeds(), Wrong(), Cpu())
    assert [(culprit.kind, culprit.nodes) for culprit in found.culprits] == [(Kind.RIGHT, ())]


def test_limits_are_said() -> None:
    candidate = Wrong(wrong={f"n{place}": larger(1.01) for place in (3, 17)})
    found = all_wrong_nodes(LAYERS, feeds(), candidate, Cpu(), SearchOptions(limits=Limits(sessions=8)))
    assert named(found) == [[3]]
    assert found.remainder == "more nodes may be wrong: search limit reached"


def test_a_node_in_float16_is_named_where_the_bound_of_its_operator_is_loose() -> None:
    """The bound of a long sum in float16 holds for any order, and is wider than a missing bias."""
    rng = np.random.default_rng(3)
    weights = {"w": rng.standard_normal((512, 4)).astype(np.float16), "b": np.full(4, 2, np.float16)}
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="n0")]
    gemm = model(nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2, 512])], [], weights)
    gemm.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT16, [2, 4]))
    values = {"x": rng.standard_normal((2, 512)).astype(np.float16)}
    found = all_wrong_nodes(gemm, values, Wrong(wrong={"n0": lambda _n, v: v - np.float16(2)}), Cpu())
    assert named(found) == [[0]]
    assert "times as far as the baseline and one rounding of its format; allowed are 8 times" in found.culprits[0].words
    assert found.culprits[0].effect is not None
    assert found.culprits[0].effect.matters


def test_a_model_without_a_node_has_none_that_is_wrong() -> None:
    """As one of functions with empty bodies is (found by benchmarks/attacks/models.py)."""
    empty = model([], [floats("x", 4)], ["y"])
    found = all_wrong_nodes(empty, {"x": np.ones(4, np.float32)}, Cpu(), Cpu())
    assert [culprit.kind for culprit in found.culprits] == [Kind.UNEXPLAINED]
    assert found.culprits[0].words == "it is no node; it cannot be narrowed down: the model has no node"
