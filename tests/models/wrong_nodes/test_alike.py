"""One finding for one pattern: nodes that fail alike are named together, with all their names, and no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from epcheck.models.wrong_nodes.all_wrong_nodes import all_wrong_nodes
from epcheck.models.wrong_nodes.culprit import Culprit, GraphNode, Kind, join_alike, name_culprits
from tests.models.in_process_targets import Cpu, Fusing, Outcome, Wrong
from tests.models.small_models import feeds as layer_feeds
from tests.models.small_models import floats, layers, model


@dataclass
class Refusing(Cpu):
    """Refuses a session with a node that the test names. asked: also what was asked of it."""

    refuses: Callable[[onnx.NodeProto, onnx.ModelProto], bool] = lambda _node, _model: False
    stage: str = "create"
    message: str = "allowzero is not implemented"

    def __call__(self, proto: onnx.ModelProto, feeds: Any, *, level: str = "all") -> Outcome:
        if any(self.refuses(node, proto) for node in proto.graph.node):
            self.asked.append((tuple(o.name for o in proto.graph.output), level))
            return Outcome(self.stage, self.message, during="session creation")
        return super().__call__(proto, feeds, level=level)


def reshapes(count: int, other: int = 0) -> onnx.ModelProto:
    """Abs and Reshape in turn; every Reshape has allowzero, the `other` last ones another shape."""
    nodes, value = [], "x"
    for at in range(count):
        shape = "wide" if at >= count - other else "flat"
        nodes.append(helper.make_node("Abs", [value], [f"a{at}"], name=f"abs{at}"))
        nodes.append(helper.make_node("Reshape", [f"a{at}", shape], [f"r{at}"], name=f"reshape{at}", allowzero=1))
        value = f"r{at}"
    weights = {"flat": np.array([-1, 4], np.int64), "wide": np.array([-1, 8], np.int64)}
    return model(nodes, [floats("x", 2, 8)], [value], weights)


INPUTS = {"x": np.arange(16, dtype=np.float32).reshape(2, 8)}


@pytest.mark.parametrize("stage", ["create", "run", "crash"])
def test_24_nodes_that_are_refused_alike_are_one_finding_with_all_names(stage: str) -> None:
    candidate = Refusing(refuses=lambda node, _model: node.op_type == "Reshape", stage=stage)
    found = all_wrong_nodes(reshapes(24), INPUTS, candidate, Cpu())
    (culprit,) = found.culprits
    assert (culprit.count, [node.name for node in culprit.nodes]) == (24, [f"reshape{at}" for at in range(24)])
    assert culprit.kind == (Kind.CRASH if stage == "crash" else Kind.REFUSED)
    assert culprit.named == "24 nodes alike: Reshape (`reshape0`, `reshape1`, `reshape2` and 21 more)"
    assert culprit.words.startswith(f"{culprit.named}. The first: node 1 `reshape0` (Reshape) ")
    assert found.remainder == "with the baseline's values in place of theirs the rest of the model is right"
    assert len(candidate.asked) < 20  # halving, then two for each set of shapes


def test_an_error_that_speaks_of_memory_says_whether_memory_was_short() -> None:
    candidate = Refusing(refuses=lambda node, _model: node.name == "reshape1", stage="run",
                         message="Exception(2) tid(ec) 8007000E Out of memory.")  # fmt: skip
    (culprit,) = all_wrong_nodes(reshapes(3), INPUTS, candidate, Cpu()).culprits
    assert culprit.words == (
        "node 3 `reshape1` (Reshape) ends its run with an error: Exception(2) tid(ec) 8007000E Out of memory. (no lack "
        "of memory: its values have 128 bytes; the provider asks for a size that it gets wrong)"
    )
    candidate.message = "80070057 Invalid parameter."
    (other,) = all_wrong_nodes(reshapes(3), INPUTS, candidate, Cpu()).culprits
    assert other.words.endswith("ends its run with an error: 80070057 Invalid parameter.")


def test_only_those_of_the_shape_that_is_refused_are_named() -> None:
    def refuses(node: onnx.NodeProto, proto: onnx.ModelProto) -> bool:
        shapes = {t.name: onnx.numpy_helper.to_array(t).tolist() for t in proto.graph.initializer}
        return node.op_type == "Reshape" and shapes.get(node.input[1]) == [-1, 8]

    (culprit,) = all_wrong_nodes(reshapes(9, other=4), INPUTS, Refusing(refuses=refuses), Cpu()).culprits
    assert [node.name for node in culprit.nodes] == ["reshape5", "reshape6", "reshape7", "reshape8"]


def test_a_node_that_is_refused_for_its_name_alone_stays_alone() -> None:
    candidate = Refusing(refuses=lambda node, _model: node.name == "reshape3")
    (culprit,) = all_wrong_nodes(reshapes(8), INPUTS, candidate, Cpu()).culprits
    assert (culprit.count, [node.name for node in culprit.nodes]) == (1, ["reshape3"])


def test_a_wrong_fusion_is_one_finding_wherever_it_occurs() -> None:
    candidate = Fusing(sums=tuple(f"sum{at}" for at in range(6)))
    found = all_wrong_nodes(layers(6), layer_feeds(), candidate, Cpu())
    (culprit,) = found.culprits
    assert (culprit.kind, culprit.count) == (Kind.FUSION, 6)
    assert [[node.name for node in part] for part in culprit.parts] == [
        [f"n{4 * at + 1}", f"n{4 * at + 2}"] for at in range(6)
    ]
    assert culprit.named == (
        "6 groups of nodes alike: Add and Relu together (`n1` and `n2`, `n5` and `n6`, `n9` and `n10` and 3 more)"
    )


def test_nodes_that_are_wrong_together_at_every_level_are_named_beside_a_wrong_node() -> None:
    class Pair(Fusing):
        def __call__(self, proto: onnx.ModelProto, feeds: Any, *, level: str = "all") -> Outcome:  # noqa: ARG002
            for each in proto.graph.node:
                if each.name == "n25":  # an Add, that is a Sub here
                    each.op_type = "Sub"
            return super().__call__(proto, feeds, level="all")

    found = all_wrong_nodes(layers(8), layer_feeds(), Pair(sums=("sum2",)), Cpu())
    assert [(culprit.kind, [each.name for each in culprit.nodes]) for culprit in found.culprits] == [
        (Kind.UNEXPLAINED, ["n9", "n10"]), (Kind.NODE, ["n25"]),
    ]  # fmt: skip
    assert name_culprits(found.culprits) == "node 9 `n9` (Add), node 10 `n10` (Relu) together, node 25 `n25` (Add)"
    assert found.remainder == "with the baseline's values in place of theirs the rest of the model is right"


def test_other_attributes_are_another_finding() -> None:
    nodes = [helper.make_node("LeakyRelu", [f"v{at}"], [f"v{at + 1}"], name=f"n{at}", alpha=0.1 if at % 2 else 0.2)
             for at in range(6)]  # fmt: skip
    six = model(nodes, [floats("v0", 4)], ["v6"])
    wrong = Wrong(wrong={f"n{at}": lambda _node, value: value * np.float32(1.1) for at in range(6)})
    found = all_wrong_nodes(six, {"v0": np.ones(4, np.float32)}, wrong, Cpu())
    assert [[node.index for node in culprit.nodes] for culprit in found.culprits] == [[0, 2, 4], [1, 3, 5]]
    assert [culprit.effect.node for culprit in found.culprits if culprit.effect] == [
        "node 0 `n0` (LeakyRelu)", "node 1 `n1` (LeakyRelu)",
    ]  # fmt: skip


def node(index: int, operator: str) -> GraphNode:
    return GraphNode(index, f"n{index}", operator, "", (f"v{index}",))


def test_a_headline_counts_the_nodes_that_it_does_not_name() -> None:
    alike = join_alike([Culprit(Kind.NODE, (node(at, "Gelu"),), f"node {at} is wrong") for at in range(5)])
    pair = Culprit(Kind.FUSION, (node(7, "Add"), node(8, "Relu")), "right at level 'basic', wrong at level 'extended'")
    others = [Culprit(Kind.NODE, (node(at, "Conv"),), "it is wrong") for at in (9, 10, 11)]
    assert name_culprits([alike, pair, *others]) == (
        "5 nodes alike: Gelu (`n0`, `n1`, `n2` and 2 more), node 7 `n7` (Add), node 8 `n8` (Relu) together, "
        "node 9 `n9` (Conv) and 2 more"
    )
    assert name_culprits([others[0]]) == "node 9 `n9` (Conv)"


@pytest.mark.parametrize("count", [-1, 0, 3, 1 << 60])
def test_a_count_that_does_not_fit_the_nodes_is_no_fault_of_ours(count: int) -> None:
    two = Culprit(Kind.NODE, (node(0, "Gelu"), node(1, "Gelu")), "it is wrong", count=count)
    assert sum(map(len, two.parts)) == 2
    assert "`n0`" in two.named
    assert Culprit(Kind.NODE, (), "it is wrong", count=count).named == ""
