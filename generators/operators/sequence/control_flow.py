"""If-1 to If-25.

The branches read `X` and `Y` from the graph around them and give copies of them by Identity, so that the truth is exact
for every dtype. Where they give sequences or optionals, nodes after the one under test make tensors of these, as in
`sequence.py`.

Sources: the operator's ONNX pages. The DML EP has ONNX Runtime's CPU kernel for it under its name; what stands in
a branch is a graph of its own, whose nodes the session places by themselves. Types that numpy cannot hold (bfloat16,
string, 8- and 4-bit floats and integers) have no cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from epcheck.generators import schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.node import Node, Operand, Surroundings
from epcheck.generators.operator import CPU_KERNEL, NO_TENSOR, Operator, spread
from epcheck.generators.operators.sequence.sequence import LENGTH, ONNX_NAMES, read_length, read_tensors, sequence_type
from epcheck.generators.oracle_math import subgraph
from epcheck.generators.oracle_math.subgraph import copy_value
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("If",)

SAME_SHAPE = 1
"""Up to this version both branches must give the same shapes."""

BRANCHES = ("then_branch", "else_branch")


@dataclass(frozen=True, kw_only=True)
class IfSample(Sample):
    """cond: its value or values. shapes: of X and Y. body: what the branches do, see `_branches`."""

    cond: bool | tuple[bool, ...] = True
    shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((2, 3), (2, 3))
    body: str = "copy"
    values: str = "distinct"


def samples() -> Iterator[IfSample]:
    for cond in (True, False):
        side = "then" if cond else "else"
        yield IfSample(name=f"{side}", cond=cond, every_dtype=True)
        yield IfSample(name=f"{side}_two_outputs", cond=cond, body="exchange")
        yield IfSample(name=f"{side}_cond_of_rank_1", cond=(cond,))
        yield IfSample(name=f"{side}_constant", cond=cond, body="constant", every_dtype=cond)
        yield IfSample(name=f"{side}_nested", cond=cond, body="nested")
        yield IfSample(name=f"{side}_other_would_fail", cond=cond, body="guarded")
        yield IfSample(name=f"{side}_different_lengths", cond=cond, shapes=((2, 3), (5, 3)))
        yield IfSample(name=f"{side}_sequence", cond=cond, shapes=((2, 3), (4,)), body="sequence", every_dtype=cond)
        yield IfSample(name=f"{side}_optional", cond=cond, body="optional", every_dtype=not cond)
    yield IfSample(name="every_value", shapes=((16,), (16,)), values="every")
    yield IfSample(name="scalar", rank=0, shapes=((), ()))
    yield IfSample(name="size_0", shapes=((0, 3), (0, 3)))
    yield IfSample(name="rank_8", rank=8, shapes=((1, 2) * 4, (1, 2) * 4), cond=False)
    yield IfSample(name="more_than_a_thread_group", shapes=((3, 1025), (3, 1025)))
    yield IfSample(name="else_size_0", cond=False, shapes=((2, 3), (0, 3)))
    yield expect_refusal(IfSample(name="two_conditions", cond=(True, False)))
    yield expect_refusal(IfSample(name="no_condition", cond=()))
    yield expect_refusal(IfSample(name="outputs_missing", body="fewer"))
    yield expect_refusal(IfSample(name="types_differ", body="types"))


def bindings(sample: IfSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if since_version <= SAME_SHAPE and (sample.shapes[0] != sample.shapes[1] or sample.body == "guarded"):
        return ()
    wanted = {"sequence": "seq(tensor(float))", "optional": "optional(tensor(float))"}.get(sample.body, "tensor(float)")
    if wanted not in _list_allowed(since_version):
        return ()
    newest = since_version == newest_claimed_version("If")
    return spread(sample, first=dtypes == ("float32",), newest=newest, scalar=not any(sample.shapes))


def _list_allowed(since_version: int) -> tuple[str, ...]:
    constraints = schema.schema("If", since_version).type_constraints
    return tuple(next(c.allowed_type_strs for c in constraints if c.type_param_str == "V"))


def node(sample: IfSample, context: CaseContext) -> Node:
    """cond bool of one element; X and Y of any dtype and shape, which the branches read. Outputs: `output` and, of two,
    `output_1`; of a sequence its length and tensors."""
    dtype = context.dtype
    x, y = (_operand(name, shape, sample, context) for name, shape in zip("XY", sample.shapes, strict=True))
    cond = Operand("cond", np.array(sample.cond, bool), parameter=True)
    branches = _branches(sample.body, dtype)
    outputs = ("output", "output_1") if sample.body in ("exchange", "fewer") else ("output",)
    results, types = dict.fromkeys(outputs, dtype.name), {"B": "bool", "V": dtype.name}
    after: tuple[NodeProto, ...] = ()
    if sample.body == "sequence":
        count = 2 if np.all(cond.value) else 1
        types["V"], outputs = sequence_type(dtype), ("result",)
        after = (read_length("result", LENGTH), *read_tensors("result", count))
        results = {LENGTH: "int64", **{f"tensor_{i}": dtype.name for i in range(count)}}
    if sample.body == "optional":
        types["V"], outputs = f"optional(tensor({ONNX_NAMES[dtype.name]}))", ("result",)
        after = (helper.make_node("OptionalGetElement", ["result"], ["output"], name="read_output"),)
    graphs = dict(zip(BRANCHES, branches, strict=True))
    surroundings = Surroundings(("cond",), outputs, results, types, after=after, graphs=graphs)
    return Node("If", "", context.since_version, (cond, x, y), tuple(results), surroundings=surroundings)


def _operand(name: str, shape: tuple[int, ...], sample: IfSample, context: CaseContext) -> Operand:
    return Operand(name, context.draw(sample.values, shape))


def _branches(body: str, dtype: np.dtype[Any]) -> tuple[GraphProto, GraphProto]:
    """Both branches; every name inside begins with that of its branch."""
    element = helper.np_dtype_to_tensor_dtype(dtype)
    tensor = helper.make_tensor_type_proto(element, None)
    match body:
        case "copy" | "types":
            other = tensor if body == "copy" else helper.make_tensor_type_proto(TensorProto.BOOL, None)
            copy = copy_value("X", "then_0"), copy_value("Y" if body == "copy" else "cond", "else_0")
            return _graph("then", [copy[0]], {"then_0": tensor}), _graph("else", [copy[1]], {"else_0": other})
        case "exchange" | "fewer":
            then = [copy_value("X", "then_0"), copy_value("Y", "then_1")]
            otherwise = [copy_value("Y", "else_0"), copy_value("X", "else_1")]
            others = {"else_0": tensor} if body == "fewer" else {"else_0": tensor, "else_1": tensor}
            return _graph("then", then, {"then_0": tensor, "then_1": tensor}), _graph("else", otherwise, others)
        case "constant":
            value = np.array([[0, 1], [1, 1]], dtype)
            then, otherwise = (
                _graph(side, [copy_value(f"{side}_c", f"{side}_0")], {f"{side}_0": tensor}, {f"{side}_c": others})
                for side, others in (("then", value), ("else", ~value if dtype.kind == "b" else value + value))
            )
            return then, otherwise
        case "nested":
            inner = [_graph(f"{s}_inner", [copy_value(n, f"{s}_inner_0")], {f"{s}_inner_0": tensor}) for s, n in
                     (("then", "Y"), ("else", "X"))]  # fmt: skip
            nodes = [
                helper.make_node("If", ["cond"], [f"{s}_0"], name=f"{s}_if", then_branch=inner[0], else_branch=inner[1])
                for s in ("then", "else")
            ]
            return _graph("then", nodes[:1], {"then_0": tensor}), _graph("else", nodes[1:], {"else_0": tensor})
        case "guarded":
            return _make_guarded(tensor)
        case "sequence":
            made = [helper.make_node("SequenceConstruct", list(names), [f"{s}_0"], name=f"{s}_make") for s, names in
                    (("then", "XY"), ("else", "Y"))]  # fmt: skip
            kind = helper.make_sequence_type_proto(tensor)
            return _graph("then", made[:1], {"then_0": kind}), _graph("else", made[1:], {"else_0": kind})
        case "optional":
            wrapped = [helper.make_node("Optional", [n], [f"{s}_0"], name=f"{s}_wrap") for s, n in
                       (("then", "X"), ("else", "Y"))]  # fmt: skip
            kind = helper.make_optional_type_proto(tensor)
            return _graph("then", wrapped[:1], {"then_0": kind}), _graph("else", wrapped[1:], {"else_0": kind})
        case other_body:
            raise ValueError(f"unknown branches '{other_body}'")


def _make_guarded(tensor: TypeProto) -> tuple[GraphProto, GraphProto]:
    """Each branch would fail where the other is taken: there it reads beyond the end of a sequence of one tensor."""
    graphs = []
    for side, name, at_true, at_false in (("then", "X", 0, 9), ("else", "Y", 9, 0)):
        table = numpy_helper.from_array(np.array([at_false, at_true], np.int64), f"{side}_positions")
        nodes = [
            helper.make_node("SequenceConstruct", [name], [f"{side}_sequence"], name=f"{side}_make"),
            helper.make_node("Constant", [], [f"{side}_table"], name=f"{side}_constant", value=table),
            helper.make_node("Cast", ["cond"], [f"{side}_cond"], name=f"{side}_cast", to=TensorProto.INT64),
            helper.make_node(
                "Gather", [f"{side}_table", f"{side}_cond"], [f"{side}_at"], name=f"{side}_gather", axis=0
            ),
            helper.make_node("SequenceAt", [f"{side}_sequence", f"{side}_at"], [f"{side}_0"], name=f"{side}_read"),
        ]
        graphs.append(_graph(side, nodes, {f"{side}_0": tensor}))
    return graphs[0], graphs[1]


def _graph(
    name: str, nodes: list[NodeProto], outputs: dict[str, TypeProto], constants: Mapping[str, Array] | None = None
) -> GraphProto:
    initializers = [numpy_helper.from_array(value, key) for key, value in (constants or {}).items()]
    infos = [helper.make_value_info(key, kind) for key, kind in outputs.items()]
    return helper.make_graph(nodes, name, [], infos, initializers)


def truth(node: Node) -> Truth:
    """The outputs of the branch that `cond` chooses."""
    assert node.surroundings is not None
    cond = node.array("cond")
    if cond.size != 1:
        return Refusal(f"cond must contain a single element, it has {cond.size}")
    then, otherwise = (node.surroundings.graphs[name] for name in BRANCHES)
    if len(then.output) != len(otherwise.output):
        return Refusal("then_branch and else_branch must have the same number of outputs")
    if any(left.type != right.type for left, right in zip(then.output, otherwise.output, strict=True)):
        return Refusal("the outputs of then_branch and else_branch must be of the same type")
    taken = then if cond.item() else otherwise
    values = subgraph.run(taken, (), {o.name: o.value for o in node.inputs if o is not None})
    return Outputs(tuple(map(Output, node.results, subgraph.tensors_of(values))))


OPERATORS = (Operator("If", samples, bindings, node, truth, CPU_KERNEL, varied=("V",), without_rank_9=NO_TENSOR),)
