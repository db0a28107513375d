"""The truth of graphs, against values that the oracles did not make: written by hand, or computed by onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from epcheck.generators.array import Array
from epcheck.generators.fuzzing.graphs import composing, graph_case, graph_document, graph_reduction, graph_truth
from epcheck.generators.fuzzing.graphs.composing import Composer
from epcheck.generators.fuzzing.oracle import Open
from epcheck.generators.graphs.graph_truth import TRAVELLED
from epcheck.generators.graphs.node_graph import NodeGraph, Step
from epcheck.generators.node import Node, Operand
from epcheck.generators.serialization.node_json import DocumentError
from epcheck.generators.truth import Ulp


def step(op: str, version: int, inputs: dict[str, str], output: str, own: str = "output", **attributes: int) -> Step:
    """A node whose inputs are named as in the schema (key) and in the graph (value)."""
    operands = tuple(Operand(name, np.zeros((), np.float32)) for name in inputs)
    return Step(op, Node(op, "", version, operands, (own,), attributes), tuple(inputs.values()), (output,))


def graph(steps: list[Step], outputs: list[str], **sources: Array) -> NodeGraph | Open:
    return graph_truth.judge_graph(steps, [Operand(name, value) for name, value in sources.items()], outputs)


def drawn(*args: object, **sources: Array) -> NodeGraph:
    found = graph(*args, **sources)  # type: ignore[arg-type]
    assert isinstance(found, NodeGraph), found
    return found


X = np.array([-2, -1, 3, 4], np.float32)
ABS = step("Abs", 13, {"X": "x"}, "a", "Y")
SQRT = step("Sqrt", 13, {"X": "a"}, "r", "Y")
ADD = step("Add", 14, {"A": "a", "B": "x"}, "s", "C")


def test_a_diamond_has_the_values_that_a_person_computes() -> None:
    found = drawn([ABS, SQRT, ADD], ["r", "s"], x=X)
    root, total = found.truth.outputs
    assert (root.name, total.name) == ("r", "s")
    assert root.value.tolist() == [np.float32(2**0.5), 1, np.float32(3**0.5), 2]
    assert total.value.tolist() == [0, 0, 6, 8]


def test_errors_of_earlier_nodes_are_allowed_for() -> None:
    """exp(20 y) is off by 20 times as much as y is: right answers would break a bound for the last node alone."""
    y = step("Sqrt", 13, {"X": "x"}, "y", "Y")
    scaled = step("Mul", 14, {"A": "y", "B": "k"}, "m", "C")
    exp = step("Exp", 13, {"input": "m"}, "e")
    found = drawn([y, scaled, exp], ["e"], x=np.array([0.1, 0.13], np.float32), k=np.array(20, np.float32))
    (output,) = found.truth.outputs
    assert isinstance(output.bound, Ulp)
    assert output.bound.citations[0] == TRAVELLED
    unit = np.spacing(output.value).astype(np.float64)
    assert (np.asarray(output.bound.floor) > 20 * unit).all()
    assert (np.asarray(output.bound.floor) < 20_000 * unit).all()


def test_errors_that_cancel_where_all_move_alike_are_allowed_for() -> None:
    """The difference of two roots moves only where the roots move against each other."""
    root = step("Sqrt", 13, {"X": "x"}, "y", "Y")
    matrix = np.array([[1.0], [-1.0]], np.float32)
    product = step("MatMul", 13, {"A": "y", "B": "m"}, "d", "Y")
    found = drawn([root, product], ["d"], x=np.array([[2, 3]], np.float32), m=matrix)
    (output,) = found.truth.outputs
    assert isinstance(output.bound, Ulp)
    assert float(np.max(output.bound.floor)) > 16 * 2 * np.spacing(np.float32(3**0.5))


def test_a_graph_that_small_errors_change_is_open() -> None:
    root = step("Sqrt", 13, {"X": "x"}, "r", "Y")
    floor = step("Cast", 13, {"input": "r"}, "i", to=6)
    found = graph([root, floor], ["i"], x=np.array([4.0], np.float32))
    assert isinstance(found, Open)
    assert found.reason == "small errors change an integer"


def test_values_that_are_no_numbers_are_open() -> None:
    found = graph([step("Log", 13, {"input": "x"}, "y"), step("Abs", 13, {"X": "y"}, "a", "Y")], ["a"], x=X)
    assert found == Open("a value is no ordinary number")


@pytest.fixture(scope="module")
def graphs() -> list[NodeGraph]:
    names = ["Relu", "Add", "Mul", "MatMul", "Transpose", "Softmax", "Conv", "Concat", "ReduceMean", "Slice", "Clip"]
    composer = Composer(composing.templates(1, 150, names), 1)
    found = [made for _ in range(120) if (made := composer.compose()) is not None]
    return found[:40]


def test_graphs_are_chains_diamonds_and_dead_ends(graphs: list[NodeGraph]) -> None:
    assert len(graphs) == 40
    assert {len(made.steps) for made in graphs} >= {2, 3, 4}
    assert max(len(made.steps) for made in graphs) <= 12
    read = [[name for step in made.steps for name in step.inputs if name] for made in graphs]
    assert any(len(names) > len(set(names)) for names in read)
    made_by = [{name for step in made.steps for name in step.outputs} for made in graphs]
    ends = [made - set(names) - set(g.outputs) for made, names, g in zip(made_by, read, graphs, strict=True)]
    assert any(ends)
    assert any(set(g.outputs) & set(names) for g, names in zip(graphs, read, strict=True))


def test_onnxruntime_without_optimisation_is_within_the_bounds(graphs: list[NodeGraph]) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    compared = 0
    for made in graphs:
        built = graph_case.case_of(made).build()
        try:
            session = onnxruntime.InferenceSession(built.model, options, providers=["CPUExecutionProvider"])
            got = session.run(list(made.outputs), dict(built.feeds))
        except Exception as error:
            if "NOT_IMPLEMENTED" in str(error):
                continue
            raise
        for output, value in zip(made.truth.outputs, got, strict=True):
            compared += 1
            assert value.shape == output.value.shape
            if value.dtype.kind == "f":
                np.testing.assert_allclose(value, output.value, rtol=2e-2, atol=1e-2)
            else:
                assert np.array_equal(value, output.value)
    assert compared >= 30


def test_a_graph_comes_back_from_its_line(graphs: list[NodeGraph]) -> None:
    for made in graphs[:20]:
        again = graph_document.decode(graph_document.encode(made))
        assert isinstance(again, NodeGraph)
        assert graph_case.case_of(again).id == graph_case.case_of(made).id
    with pytest.raises(DocumentError, match="not a graph: KeyError: 'graph'"):
        graph_document.decode("{}")


def test_smaller_graphs_are_smaller_and_keep_their_truth(graphs: list[NodeGraph]) -> None:
    large = max(graphs, key=lambda made: len(made.steps))
    found = list(graph_reduction.smaller(large))
    assert all(graph_reduction.measure(made) < graph_reduction.measure(large) for made in found)
    assert min(len(made.steps) for made in found) == 1
    for made in found:
        for output in made.truth.outputs:
            assert np.array_equal(output.value, large.values[output.name])


def test_errors_are_carried_through_nodes_that_add_none() -> None:
    """Tanh, Abs, Abs: only the first is inexact, and the last reads a value that the node before it has moved."""
    tanh, first, second = (
        step("Tanh", 13, {"input": "x"}, "t"),
        step("Abs", 13, {"X": "t"}, "a", "Y"),
        step("Abs", 13, {"X": "a"}, "b", "Y"),
    )
    (output,) = drawn([tanh, first, second], ["b"], x=np.array([-0.5, 0.25, 0.75], np.float32)).truth.outputs
    assert isinstance(output.bound, Ulp)
    assert output.bound.citations[0] == TRAVELLED
    assert (output.bound.floor > 16 * np.spacing(output.value)).all()
