"""SequenceMap-17: a body that runs for each tensor of a sequence.

Further inputs are sequences of the same length, of which it gets the tensor at the same place, or tensors, of which it
gets all each time. The bodies move data and join it, so that the truth is exact. Sequences are made of the inputs
`first_0`, ..., `second_0`, ... and read by nodes around the one under test, as in `sequence.py`.

Source: the operator's page, and its function body, which sessions inline where a provider has no kernel. Sequences of
different lengths must be refused; types that numpy cannot hold have no cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto, helper

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Node, Operand, Surroundings
from epcheck.generators.operator import NO_KERNEL, NO_TENSOR, Operator, spread
from epcheck.generators.operators.sequence.sequence import construct, sequence_type
from epcheck.generators.oracle_math import subgraph
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("SequenceMap",)


@dataclass(frozen=True, kw_only=True)
class MapSample(Sample):
    """first, second: the shapes of the sequences' tensors; None for no second one. body: see `_BODIES`."""

    first: tuple[tuple[int, ...], ...] = ((2, 3), (2, 3), (2, 3))
    second: tuple[tuple[int, ...], ...] | None = None
    body: str = "copy"
    values: str = "distinct"


def samples() -> Iterator[MapSample]:
    yield MapSample(name="three_tensors", every_dtype=True)
    yield MapSample(name="one_tensor", first=((2, 3),))
    yield MapSample(name="empty", first=(), every_dtype=True)
    yield MapSample(name="different_shapes", first=((2, 3), (4, 1), (1, 5)), every_dtype=True)
    yield MapSample(name="scalars", first=((), (), ()))
    yield MapSample(name="size_0", first=((0, 3), (2, 3)))
    yield MapSample(name="rank_8", rank=8, first=((1, 2) * 4,) * 2)
    yield MapSample(name="forty_tensors", first=((2,),) * 40)
    yield MapSample(name="more_than_a_thread_group", first=((1025,), (2049,)))
    yield MapSample(name="every_value", first=((16,), (16,)), values="every", every_dtype=True)
    two = ((4, 3), (1, 3), (5, 3))
    yield MapSample(name="two_sequences_first", second=two, body="first")
    yield MapSample(name="two_sequences_second", second=two, body="second", every_dtype=True)
    yield MapSample(name="two_sequences_joined", second=two, body="join", every_dtype=True)
    yield MapSample(name="two_sequences_exchanged", second=two, body="exchange", every_dtype=True)
    yield MapSample(name="two_empty_sequences", first=(), second=(), body="exchange")
    yield MapSample(name="a_tensor_each_time", body="tensor", every_dtype=True)
    yield MapSample(name="a_tensor_joined", body="join_tensor")
    yield MapSample(name="a_sequence_and_a_tensor", second=two, body="three", every_dtype=True)
    yield MapSample(name="outer_scope", body="outer")
    yield MapSample(name="branch", body="branch")
    yield expect_refusal(MapSample(name="second_shorter", second=two[:2], body="join"))
    yield expect_refusal(MapSample(name="second_empty", second=(), body="join"))


_BODIES = {
    "copy": (("a",), ("a",)),
    "first": (("a", "b"), ("a",)),
    "second": (("a", "b"), ("b",)),
    "join": (("a", "b"), ("ab",)),
    "exchange": (("a", "b"), ("b", "a")),
    "tensor": (("a", "t"), ("t",)),
    "join_tensor": (("a", "t"), ("at",)),
    "three": (("a", "b", "t"), ("t", "b", "a")),
    "outer": (("a",), ("T",)),
    "branch": (("a",), ("?",)),
}
"""Body -> its inputs and what it gives: `a` and `b` are tensors of the sequences, `t` is the tensor, `T` the one that
it reads from the graph around; two letters are joined along axis 0; `?` is a branch that gives `a`."""


def bindings(sample: MapSample, _since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Without parameters."""
    known = set(spread(sample, first=dtypes == ("float32",), newest=True, scalar=not any(sample.first)))
    known = {graph.RUNTIME if binding == graph.INITIALIZER else binding for binding in known}
    if not sample.first:
        known &= {graph.RUNTIME}
    return tuple(binding for binding in graph.BINDINGS if binding in known)


def node(sample: MapSample, context: CaseContext) -> Node:
    """`first_0`, ..., `second_0`, ... and `tensor`, of the case's dtype; `cond`, bool. For each sequence that the node
    gives its length, int64, and its tensors."""
    dtype = context.dtype
    takes, gives = _BODIES[sample.body]
    operands = [Operand(f"first_{i}", context.draw(sample.values, s)) for i, s in enumerate(sample.first)]
    operands += [Operand(f"second_{i}", context.draw(sample.values, s)) for i, s in enumerate(sample.second or ())]
    parts = {name: [o.name for o in operands if o.name.startswith(name)] for name in ("first", "second")}
    before = [construct(parts["first"], dtype, "first")]
    if sample.second is not None:
        before.append(construct(parts["second"], dtype, "second"))
    if {"t", "T"} & {*takes, *gives} or sample.body == "join_tensor":
        operands.append(Operand("tensor", context.draw(sample.values, (2, 3))))
    if sample.body == "branch":
        operands.append(Operand("cond", np.array(True)))
    reads = tuple({"a": "first", "b": "second", "t": "tensor"}[name] for name in takes)
    writes = tuple(f"result_{i}" for i in range(len(gives)))
    results: dict[str, str] = {}
    after: list[NodeProto] = []
    for name in writes:
        results |= {f"{name}_length": "int64", **{f"{name}_tensor_{i}": dtype.name for i in range(len(sample.first))}}
        after += _reads(name, len(sample.first))
    types = {"S": sequence_type(dtype), "V": sequence_type(dtype) if "b" in takes else dtype.name}
    around = Surroundings(reads, writes, results, types, tuple(before), tuple(after), {"body": _body(sample, dtype)})
    return Node("SequenceMap", "", context.since_version, tuple(operands), tuple(results), surroundings=around)


def _reads(sequence: str, count: int) -> Iterator[NodeProto]:
    """The nodes that read a sequence's length and its tensors."""
    yield helper.make_node("SequenceLength", [sequence], [f"{sequence}_length"], name=f"read_{sequence}_length")
    for index in range(count):
        at = f"{sequence}_at_{index}"
        yield helper.make_node("Constant", [], [at], name=f"make_{at}", value_int=index)
        yield helper.make_node("SequenceAt", [sequence, at], [f"{sequence}_tensor_{index}"], name=f"read_{at}")


def _body(sample: MapSample, dtype: np.dtype[np.generic]) -> GraphProto:
    """The body; every name inside begins with `body_`."""
    takes, gives = _BODIES[sample.body]
    tensor = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), None)
    nodes = [_make_node(what, f"body_{index}") for index, what in enumerate(gives)]
    ends = [[helper.make_value_info(f"body_{name}", tensor) for name in names] for names in (takes, range(len(gives)))]
    return helper.make_graph(nodes, "body", ends[0], ends[1])


def _make_node(what: str, output: str) -> NodeProto:
    if what == "?":
        sides = {
            f"{side}_branch": helper.make_graph(
                [helper.make_node("Identity", ["body_a"], [f"{side}_0"], name=f"copy_{side}")],
                side, [], [helper.make_empty_tensor_value_info(f"{side}_0")],
            )
            for side in ("then", "else")
        }  # fmt: skip
        return helper.make_node("If", ["cond"], [output], name="body_if", **sides)
    names = ["tensor" if what == "T" else f"body_{letter}" for letter in what]
    if len(names) == 1:
        return helper.make_node("Identity", names, [output], name=f"copy_{output}")
    return helper.make_node("Concat", names, [output], name=f"join_{output}", axis=0)


def _sequence(node: Node, name: str) -> list[Array]:
    return [o.value for o in node.inputs if o is not None and o.name.startswith(f"{name}_")]


def truth(node: Node) -> Truth:
    around = node.surroundings
    assert around is not None
    first = _sequence(node, "first")
    sequences = {"first": first}
    if "second" in around.inputs:
        sequences["second"] = _sequence(node, "second")
    if any(len(tensors) != len(first) for tensors in sequences.values()):
        return Refusal(f"the sequences must be equally long; they have {[len(s) for s in sequences.values()]} tensors")
    outer: dict[str, subgraph.Value] = {o.name: o.value for o in node.inputs if o is not None}
    rows: list[Sequence[subgraph.Value]] = []
    for index in range(len(first)):
        inputs = [sequences[name][index] if name in sequences else outer[name] for name in around.inputs]
        rows.append(subgraph.run(around.graphs["body"], inputs, outer))
    sequences_out = [[np.asarray(row[index]) for row in rows] for index in range(len(around.outputs))]
    return Outputs(tuple(map(Output, node.results, subgraph.tensors_of(sequences_out))))


OPERATORS = (
    Operator("SequenceMap", samples, bindings, node, truth, NO_KERNEL, varied=("S",), without_rank_9=NO_TENSOR),
)
