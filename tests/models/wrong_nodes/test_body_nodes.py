"""The wrong nodes in the bodies of If, Loop and Scan: each is run alone, and named with the body that it is in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest

from epcheck.models.graph.values import bodies
from epcheck.models.wrong_nodes.all_wrong_nodes import WrongNodes, all_wrong_nodes
from epcheck.models.wrong_nodes.culprit import Kind
from tests.models.in_process_targets import Cpu, Outcome

BRANCHES = """
<ir_version: 9, opset_import: ["": 18]>
g (float[4] x, bool c) => (float[4] y) {
  [before] a = Mul(x, x)
  [if] b = If(c) <
    then_branch = then () => (float[4] t) { [in_1] p = Add(a, x)  [in_2] q = Sub(p, x)  [in_3] t = Abs(q) },
    else_branch = other () => (float[4] e) { [in_4] e = Sub(a, x) }>
  [after] y = Add(b, a)
}
"""

LOOP = """
<ir_version: 9, opset_import: ["": 18]>
g (float[4] x, int64 n) => (float[4] y, float[N, 4] rows) {
  [half] h = Constant<value: tensor = float {0.5}>()
  [yes] go = Constant<value: tensor = bool {1}>()
  [loop] s, rows = Loop(n, go, x) <
    body = turn (int64 i, bool going, float[4] v) => (bool on, float[4] w, float[4] row) {
      [in_1] on = Identity(going)
      [in_2] m = Mul(v, h)
      [in_3] f = Cast<to = 1>(i)
      [in_4] w = Add(m, f)
      [in_5] row = Max(w, f)
    }>
  [after] y = Neg(s)
}
"""

NESTED = """
<ir_version: 9, opset_import: ["": 18]>
g (float[4] x, int64 n) => (float[4] y) {
  [yes] go = Constant<value: tensor = bool {1}>()
  [two] k = Constant<value: tensor = int64 {2}>()
  [loop] y = Loop(n, go, x) <
    body = turn (int64 i, bool going, float[4] v) => (bool on, float[4] w) {
      [in_1] on = Identity(going)
      [in_2] late = Equal(i, k)
      [in_if] w = If(late) <
        then_branch = then () => (float[4] t) { [deep] t = Add(v, x) },
        else_branch = other () => (float[4] e) { [deep_2] e = Mul(v, x) }>
    }>
}
"""

VALUES = {"x": np.array([0.5, -1.5, 2, 3], np.float32)}


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for _, body in bodies(node):
            yield from nodes_of(body)


@dataclass
class Swapped(Cpu):
    """Computes the nodes of these names, in bodies as well, as others: name -> operator."""

    swapped: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        for node in nodes_of(copy.graph):
            node.op_type = self.swapped.get(node.name, node.op_type)
        return super().__call__(copy, feeds, level=level)


def found(text: str, feeds: Mapping[str, Any], **swapped: str) -> WrongNodes:
    return all_wrong_nodes(onnx.parser.parse_model(text), {**VALUES, **feeds}, Swapped(swapped=swapped), Cpu())


def names(result: WrongNodes) -> list[str]:
    return [node.name for culprit in result.culprits for node in culprit.innermost]


@pytest.mark.parametrize(
    ("taken", "wrong", "expected"),
    [
        (True, {"in_2": "Add"}, ["in_2"]),
        (True, {"in_1": "Mul", "in_3": "Neg"}, ["in_1", "in_3"]),
        (False, {"in_4": "Add"}, ["in_4"]),
        (True, {"before": "Add", "in_3": "Neg", "after": "Sub"}, ["before", "in_3", "after"]),
    ],
)
def test_the_nodes_of_a_branch_are_named(taken: bool, wrong: Mapping[str, str], expected: Iterable[str]) -> None:
    result = found(BRANCHES, {"c": np.array(taken)}, **wrong)
    assert names(result) == expected
    (holder,) = [culprit for culprit in result.culprits if culprit.inside]
    branch = "then_branch" if taken else "else_branch"
    assert (holder.nodes[0].name, holder.body, holder.kind) == ("if", branch, Kind.NODE)
    assert all(place.endswith(f"in the {branch} of node 1 `if` (If)") for place in holder.places)


def test_a_fault_in_the_branch_that_is_not_taken_is_none() -> None:
    assert found(BRANCHES, {"c": np.array(True)}, in_4="Add").culprits[0].kind == Kind.RIGHT


@pytest.mark.parametrize(
    ("wrong", "expected", "turn"),
    [({"in_2": "Sub"}, ["in_2"], ""), ({"in_4": "Sub"}, ["in_4"], " (execution 1)"), ({"in_5": "Min"}, ["in_5"], "")],
)
def test_the_nodes_of_a_loop_are_named_in_the_first_turn_that_is_wrong(
    wrong: Mapping[str, str], expected: Iterable[str], turn: str
) -> None:
    """What adds the number of the turn shows from the second on."""
    result = found(LOOP, {"n": np.array(3, np.int64)}, **wrong)
    assert names(result) == expected
    assert f"`loop` (Loop) is wrong by what is in its body{turn}: node " in result.culprits[0].words


def test_a_node_in_a_body_within_a_body_is_named() -> None:
    result = found(NESTED, {"n": np.array(3, np.int64)}, deep="Sub")
    assert names(result) == ["deep"]
    assert result.culprits[0].places == (
        "node 0 `deep` (Add) in the then_branch of node 2 `in_if` (If) in the body of node 2 `loop` (Loop)",
    )


def test_a_node_whose_bodies_are_right_is_at_fault_itself() -> None:
    class Turning(Cpu):
        """Adds 1 to what a Loop gives."""

        def __call__(self, model: onnx.ModelProto, feeds: Mapping[str, Any], *, level: str = "all") -> Outcome:
            outcome = super().__call__(model, feeds, level=level)
            if not any(node.op_type == "Loop" for node in model.graph.node):
                return outcome
            return Outcome(outputs={name: value + np.float32(1) for name, value in outcome.outputs.items()})

    result = all_wrong_nodes(onnx.parser.parse_model(NESTED), {**VALUES, "n": np.array(3, np.int64)}, Turning(), Cpu())
    (culprit,) = result.culprits
    assert (culprit.nodes[0].name, culprit.inside) == ("loop", ())
    assert culprit.words.endswith("; as models of their own its bodies are right")
