"""Rewrite rules: how their text is read, which preconditions are broken, and whether the data tells a wrong rewrite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

import numpy as np
import pytest

from epcheck.generators.array import Array
from epcheck.generators.graphs import graph_truth
from epcheck.generators.graphs.rewrite_rule import (
    ALGEBRA,
    RewriteRule,
    TextGraph,
    chain,
    make_sizes_equal,
    read_equal_sizes,
    read_graph,
    write_graph,
)
from epcheck.generators.graphs.rules import data_movement, neighbours, numbers, products, quantizers
from epcheck.generators.graphs.sketch import Sketch
from epcheck.generators.sources import graphs
from epcheck.generators.truth import Outputs

RULES = [rule for module in (data_movement, numbers, products, quantizers, neighbours) for rule in module.rules()]
NAMED = {rule.name: rule for rule in RULES}


def evaluate(graph: TextGraph, opset: int) -> list[Array]:
    """The outputs of the graph, node by node, with data from one seed."""
    sketch = Sketch(np.dtype("float32"), np.random.default_rng(0), opset)
    write_graph(graph, sketch)
    values = {operand.name: operand.value for operand in sketch.sources}
    for step in sketch.steps:
        truth = graph_truth.judge_node(step.key, step.reading(values))
        assert isinstance(truth, Outputs)
        values |= {name: output.value for name, output in graph_truth.name_outputs(step, truth).items()}
    return [values[name] for name in sketch.outputs]


def outputs(name: str, variant: str = "") -> tuple[list[Array], list[Array]]:
    """The values that a graph is given, and its outputs."""
    rule = NAMED[name]
    graph = rule.read((rule.broken | rule.applies)[variant] if variant else ())
    sketch = Sketch(np.dtype("float32"), np.random.default_rng(0), rule.opset)
    write_graph(graph, sketch)
    return [operand.value for operand in sketch.sources], evaluate(graph, rule.opset)


def same(left: list[Array], right: list[Array]) -> bool:
    return len(left) == len(right) and all(
        a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)
        for a, b in zip(left, right, strict=True)
    )


def list_data(graph: TextGraph) -> list[tuple[str, str, tuple[int, ...]]]:
    """What is drawn for a graph: constants of the text are not."""
    return [(each.name, each.dtype, each.shape) for each in graph.tensors if each.values is None or not each.parameter]


def broken_alike() -> Iterator[tuple[RewriteRule, str]]:
    """A rule and a precondition, where the broken graph takes the same data as the one that the rule applies to."""
    for rule in RULES:
        for name, texts in rule.broken.items():
            if list_data(rule.read(texts)) == list_data(rule.read()):
                yield rule, name


def test_there_are_some_hundred_rules_and_each_has_a_name_and_a_source() -> None:
    assert len(NAMED) == len(RULES) > 450
    files = {rule.source for rule in RULES} - {ALGEBRA, neighbours.MODELS}
    assert {PurePosixPath(file).suffix for file in files} == {".cc", ".cpp"}
    assert len(files) > 60


def test_a_graph_that_breaks_a_precondition_has_another_answer() -> None:
    alike = list(broken_alike())
    assert len(alike) > 400
    untold = [
        f"{rule.name}: {name}"
        for rule, name in alike
        if same(evaluate(rule.read(), rule.opset), evaluate(rule.read(rule.broken[name]), rule.opset))
    ]
    assert untold == []


def test_constants_stand_where_a_node_reads_them() -> None:
    graph = read_graph('(float[2] x) => (y) <float[3] w> { y = A<k="b, c">(x, [[1, 2], [-3, 4]], , 0.5, uint8 7) }', {})
    assert [(t.name, t.dtype, t.shape, t.values, t.parameter) for t in graph.tensors] == [
        ("x", "float32", (2,), None, False),
        ("c0", "int64", (2, 2), (1, 2, -3, 4), True),
        ("c1", "float32", (), (0.5,), True),
        ("c2", "uint8", (), (7,), True),
    ]
    (node,) = graph.nodes
    assert (node.operator, node.inputs, node.outputs) == ("A", ("x", "c0", "", "c1", "c2"), ("y",))
    assert node.attributes == {"k": "b, c"}
    assert graph.outputs == ("y",)


def test_every_node_has_a_reader() -> None:
    for rule in RULES:
        for texts in ((), *rule.broken.values(), *rule.applies.values()):
            graph = rule.read(texts)
            read = {*graph.outputs, *(name for node in graph.nodes for name in node.inputs)}
            assert [node.operator for node in graph.nodes if read.isdisjoint(node.outputs)] == [], rule.name


def test_a_text_that_is_not_there_once_is_refused() -> None:
    rule = chain(
        "one", ALGEBRA, "float[2] x", "Neg(_)", "Neg(_)", broken={"none": ("Abs", "Relu"), "two": ("Neg", "Abs")}
    )
    with pytest.raises(ValueError, match="the graph of one has 'Abs' 0 times and not once"):
        rule.read(rule.broken["none"])
    with pytest.raises(ValueError, match="has 'Neg' 2 times"):
        rule.read(rule.broken["two"])


def test_what_is_broken_of_every_rule() -> None:
    rule = chain("two", ALGEBRA, "float[2,3] x", "Neg(_)", "Add(_, w)", "Mul(_, 2.0)", weights="float[3] w")
    made = {sample.name: sample for sample in rule.samples()}
    assert list(made) == [
        "two", "two_a_read_twice", "two_b_leaves", "two_constants_are_inputs", "two_weights_read_twice",
    ]  # fmt: skip
    assert Counter(sample.kind for sample in made.values()) == {"rule": 1, "broken": 4}
    sketches = {}
    for name, sample in made.items():
        sketches[name] = Sketch(np.dtype("float32"), np.random.default_rng(0))
        sample.write(sketches[name])
    assert sketches["two_b_leaves"].outputs == ["v2_0", "v1_0"]
    assert [step.node.op_type for step in sketches["two_a_read_twice"].steps] == ["Neg", "Add", "Flatten", "Mul"]
    assert [operand.parameter for operand in sketches["two"].sources] == [False, True, True]
    assert [operand.parameter for operand in sketches["two_constants_are_inputs"].sources] == [False] * 3
    read = sketches["two_weights_read_twice"].steps[2]
    assert (read.node.op_type, read.inputs) == ("Mul", ("w1", "x3"))


def test_two_transposes_that_go_on() -> None:
    (x,), (y,) = outputs("transpose_transpose", "goes_on")
    assert np.array_equal(y, x.transpose(1, 2, 0).transpose(1, 2, 0))
    assert y.shape == (4, 2, 3)


def test_ranges_that_gather_around_the_end() -> None:
    (x, start, end, step), (y,) = outputs("range_gather_around_the_end")
    assert [int(each) for each in (start, end, step)] == [-2, 2, 1]
    assert np.array_equal(y, x[[-2, -1, 0, 1]])
    (x, *_), (y,) = outputs("range_gather_downwards_to_the_first")
    assert np.array_equal(y, x[[2, 1, 0]])


def test_a_layer_normalization_with_the_mean_on_the_left() -> None:
    (x, scale, bias, *_), (y,) = outputs("layer_normalization", "the_other_way")
    wide = x.astype(np.float64)
    away = wide.mean(-1, keepdims=True) - wide
    assert np.allclose(y, away / np.sqrt((away**2).mean(-1, keepdims=True) + 0.001) * scale + bias, atol=1e-5)


def test_weights_that_are_padded() -> None:
    (x, weight, *_), (y,) = outputs("pad_of_weights")
    wide = np.pad(weight, ((0, 0), (0, 0), (0, 1), (1, 0))).astype(np.float64)
    image = np.pad(x[0].astype(np.float64), ((0, 0), (1, 0), (1, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(image, wide.shape[2:], axis=(1, 2))
    assert np.allclose(y[0], np.einsum("chwij,ocij->ohw", windows, wide), atol=1e-5)


def test_values_beyond_the_range_go_on_to_other_nodes() -> None:
    made = {sample.sample: sample for sample in graphs.samples()}
    graph = graphs.judge_sample(made["graph_rule_float16_relu"], "float32", "an id")
    (y,) = graph.truth.outputs
    assert y.value.ravel().tolist()[:2] == [0.25, 0.0]
    assert np.isnan(y.value.ravel()[2])
    assert y.value.ravel()[3] == np.inf


def test_a_copy_has_one_size_in_tensors_and_in_constants_that_are_shapes() -> None:
    text = "(float[2,3,1] x) => (y) { a = Reshape(x, [3, -1, 0]) b = Transpose<perm=[2,0,1]>(a) y = Slice(b, [0, 3]) }"
    copy = make_sizes_equal(read_graph(text, {}), 4)
    assert [(t.name, t.shape, t.values) for t in copy.tensors] == [
        ("x", (4, 4, 1), None), ("c0", (3,), (4, -1, 0)), ("c1", (2,), (0, 4)),
    ]  # fmt: skip
    assert copy.nodes == read_graph(text, {}).nodes
    axes = read_graph("(float[2,3] x) => (y) { y = ReduceSum(x, [0, 1]) }", {})
    assert make_sizes_equal(axes, 4).tensors[1] == axes.tensors[1]


def test_a_copy_with_equal_sizes_tells_a_transpose_that_is_dropped() -> None:
    assert read_equal_sizes()["transpose_transpose_goes_on"] == 4
    made = {sample.sample: sample for sample in graphs.samples()}
    assert len([name for name in made if name.endswith("_equal_sizes")]) == len(read_equal_sizes()) > 700
    graph = graphs.judge_sample(made["graph_broken_transpose_transpose_goes_on_equal_sizes"], "float32", "an id")
    (x,), (y,) = graph.sources, graph.truth.outputs
    assert y.value.shape == x.value.shape == (4, 4, 4)
    assert np.array_equal(y.value, x.value.transpose(2, 0, 1))
    assert not np.array_equal(y.value, x.value)
