"""Loop-1 to Loop-25: a body that runs until a count or a condition ends it.

The bodies move data, count and compare, so that the truth is exact; `subgraph.loop` is the page's pseudo-code. What is
carried as a sequence or an optional is made and read by nodes around the one under test, as in `sequence.py`.

Source: the operator's page. What it calls concatenated is stacked along a new first axis, as ONNX's own shape
inference of Loop has it; ReferenceEvaluator joins along the axis 0 that is there. Of a loop without an iteration the
outputs that are stacked have no rows and the shape that the body declares. A loop without a count and a condition never
ends, and a count of two elements has no meaning: neither has a case. Nor are there any of types that numpy cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from epcheck.generators import graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.node import Node, Operand, Surroundings
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.operators.sequence.sequence import (
    LENGTH,
    ONNX_NAMES,
    TENSOR,
    construct,
    read_length,
    read_tensors,
    sequence_type,
)
from epcheck.generators.oracle_math import subgraph
from epcheck.generators.oracle_math.subgraph import copy_value
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("Loop",)

ESTABLISHED = 25
INT64 = np.iinfo(np.int64)
NEEDS = {"appended": "seq(tensor(float))", "optional": "optional(tensor(float))"}
"""Body -> the type that it carries, where that is no tensor."""

COUNTED = ("float32", "float64", "int32", "int64")
"""The dtypes that Add has in every version."""

NOTHING_CARRIED = 11
"""The first version in which a loop may carry nothing; Less of int64, too, is newer than the first one."""

NEWER = ("outer", "grown", "grown_scan", "until")
"""The bodies that Loop-1 does not have."""


@dataclass(frozen=True, kw_only=True)
class LoopSample(Sample):
    """body: see `_body`. trip, cond: None leaves the input out. limit: how many iterations there are until the
    body `until` ends the loop. shape: of X and Y."""

    body: str = "exchange"
    trip: int | None = 3
    cond: bool | None = True
    limit: int = 2
    shape: tuple[int, ...] = (2, 3)
    values: str = "distinct"


def samples() -> Iterator[LoopSample]:
    for trip in (0, 1, 2, 3, 7):
        yield LoopSample(name=f"trips_{trip}", trip=trip, every_dtype=trip == 3)
        yield LoopSample(name=f"trips_{trip}_cond_omitted", trip=trip, cond=None)
    yield LoopSample(name="trips_negative", trip=-1)
    yield LoopSample(name="trips_int64_min_cond_omitted", trip=INT64.min, cond=None)
    yield LoopSample(name="cond_false", cond=False, every_dtype=True)
    yield LoopSample(name="cond_false_trips_omitted", cond=False, trip=None)
    for limit in (1, 2, 5):
        yield LoopSample(name=f"until_{limit}_trips_omitted", body="until", trip=None, limit=limit)
        yield LoopSample(name=f"until_{limit}_of_3_trips", body="until", limit=limit)
    yield LoopSample(name="until_2_of_int64_max_trips", body="until", trip=INT64.max)
    yield LoopSample(name="body_ends_at_once", body="stop", trip=9)
    yield LoopSample(name="body_ends_at_once_trips_omitted", body="stop", trip=None)
    yield LoopSample(name="end_ignored_as_cond_omitted", body="stop", trip=4, cond=None)
    yield LoopSample(name="end_by_iteration_ignored_as_cond_omitted", body="until", trip=5, cond=None)
    yield LoopSample(name="iteration_numbers", body="index", trip=6)
    yield LoopSample(name="iteration_numbers_beyond_1024", body="index", trip=1031, shape=(1,))
    yield LoopSample(name="scan_outputs_alone", body="outer", trip=3, every_dtype=True)
    yield LoopSample(name="scan_outputs_alone_no_trip", body="outer", trip=0)
    yield LoopSample(name="two_scan_outputs", body="two_scans", trip=4)
    yield LoopSample(name="nothing_but_carried", body="carried", trip=3)
    yield LoopSample(name="sums", body="total", trip=5, values="small", every_dtype=True)
    yield LoopSample(name="grows", body="grown", trip=3, every_dtype=True)
    yield LoopSample(name="grows_no_trip", body="grown", trip=0)
    yield LoopSample(name="sequence", body="appended", trip=3, every_dtype=True)
    yield LoopSample(name="sequence_no_trip", body="appended", trip=0)
    yield LoopSample(name="optional", body="optional", trip=2, every_dtype=True)
    yield LoopSample(name="nested", body="nested", trip=4, every_dtype=True)
    yield LoopSample(name="branch", body="branch", trip=4)
    yield LoopSample(name="every_value", shape=(16,), values="every", every_dtype=True)
    yield LoopSample(name="scalars", shape=())
    yield LoopSample(name="size_0", shape=(0, 3))
    yield LoopSample(name="rank_7", shape=(1, 2, 1, 2, 1, 2, 1))
    yield LoopSample(name="more_than_a_thread_group", shape=(3, 1025))
    yield expect_refusal(LoopSample(name="scan_outputs_change_shape", body="grown_scan"))
    for body in ("fewer_outputs", "more_inputs", "cond_of_float", "fewer_inputs"):
        yield expect_refusal(LoopSample(name=body, body=body))


def bindings(sample: LoopSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    if since_version < NOTHING_CARRIED and sample.body in NEWER:
        return ()
    allowed = next(
        c.allowed_type_strs for c in schema.schema("Loop", since_version).type_constraints if c.type_param_str == "V"
    )
    if NEEDS.get(sample.body, "tensor(float)") not in allowed or (sample.body == "total" and dtypes[0] not in COUNTED):
        return ()
    newest = since_version == ESTABLISHED
    known = set(spread(sample, first=dtypes == ("float32",), newest=newest, scalar=not sample.shape))
    if sample.body in ("grown", "appended", "optional"):
        known -= {graph.SYMBOLIC}
    return tuple(binding for binding in graph.BINDINGS if binding in known)


def node(sample: LoopSample, context: CaseContext) -> Node:
    """M int64 and cond bool, scalars; X and Y of the case's dtype; `limit`, int64, where the body reads it."""
    dtype = context.dtype
    x, y = (Operand(name, context.draw(sample.values, sample.shape)) for name in "XY")
    operands = [x] if sample.body in ("outer", "grown", "total", "appended", "optional") else [x, y]
    carried = {"outer": (), "grown": ("X",), "total": ("X",), "appended": ("sequence",), "optional": ("held",)}.get(
        sample.body, ("X", "Y")
    )
    settings = [
        None if value is None else Operand(name, np.array(value, kind), parameter=True)
        for name, value, kind in (("M", sample.trip, np.int64), ("cond", sample.cond, np.bool_))
    ]
    if sample.body == "until":
        operands.append(Operand("limit", np.array(sample.limit, np.int64), parameter=True))
    body = _body(sample, dtype)
    reads = tuple("" if operand is None else operand.name for operand in settings)
    results, types = {f"output_{i}": dtype.name for i in range(max(1, len(body.output) - 1))}, {"V": dtype.name}
    if sample.body in ("index", "two_scans"):
        results[f"output_{len(results) - 1}"] = "int64"
    writes, before, after = tuple(results), tuple[NodeProto, ...](), tuple[NodeProto, ...]()
    if sample.body == "appended":
        count = 1 + (sample.trip or 0)
        before, writes, types["V"] = (construct(("X",), dtype),), ("result",), sequence_type(dtype)
        after = (read_length("result", LENGTH), *read_tensors("result", count))
        results = {LENGTH: "int64", **{f"{TENSOR}{i}": dtype.name for i in range(count)}}
    if sample.body == "optional":
        types["V"], writes = f"optional(tensor({ONNX_NAMES[dtype.name]}))", ("result",)
        before = (helper.make_node("Optional", ["X"], ["held"], name="make_held"),)
        after = (helper.make_node("OptionalGetElement", ["result"], ["output_0"], name="read_output"),)
    around = Surroundings((*reads, *carried), writes, results, {"I": "int64", "B": "bool", **types}, before, after,
                          {"body": body})  # fmt: skip
    inputs = (*(o for o in settings if o is not None), *operands)
    return Node("Loop", "", context.since_version, inputs, tuple(results), surroundings=around)


def _body(sample: LoopSample, dtype: np.dtype[np.generic]) -> GraphProto:
    """The body; every name inside begins with `body_`. It goes on as long as it was told to; but `until` ends after
    `limit` iterations, and `stop` at once."""
    shape: tuple[int | None, ...] = sample.shape
    tensor = _tensor(dtype, shape)
    keep, swap = copy_value("body_cond", "body_go"), [copy_value("body_b", "body_0"), copy_value("body_a", "body_1")]
    pair, scan = {"body_a": tensor, "body_b": tensor}, copy_value("body_a", "body_2")
    moved = {"body_0": tensor, "body_1": tensor}
    index = {"body_3": _tensor(np.dtype(np.int64), ())}
    match sample.body:
        case "exchange":
            return _graph([keep, *swap, scan], pair, {**moved, "body_2": tensor})
        case "until":
            less = helper.make_node("Less", ["body_i", "body_last"], ["body_go"], name="body_less")
            last = helper.make_node("Add", ["limit", "body_less_1"], ["body_last"], name="body_add")
            minus = {"body_less_1": np.array(-1, np.int64)}
            return _graph([last, less, *swap, scan], pair, {**moved, "body_2": tensor}, minus)
        case "stop":
            no = {"body_no": np.array(False)}
            return _graph([copy_value("body_no", "body_go"), *swap, scan], pair, {**moved, "body_2": tensor}, no)
        case "index" | "two_scans":
            scans = {"body_2": tensor} if sample.body == "two_scans" else {}
            nodes = [keep, *swap, *([scan] if scans else []), copy_value("body_i", "body_3")]
            return _graph(nodes, pair, {**moved, **scans, **index})
        case "carried":
            return _graph([keep, *swap], pair, moved)
        case "outer":
            return _graph([keep, copy_value("X", "body_2")], {}, {"body_2": tensor})
        case "total":
            add = helper.make_node("Add", ["body_a", "X"], ["body_0"], name="body_add")
            return _graph(
                [keep, add, copy_value("body_0", "body_2")], {"body_a": tensor}, {"body_0": tensor, "body_2": tensor}
            )
        case "grown" | "grown_scan":
            free = _tensor(dtype, (None, *shape[1:]))
            join = helper.make_node("Concat", ["body_a", "X"], ["body_0"], name="body_join", axis=0)
            if sample.body == "grown":
                return _graph([keep, join], {"body_a": free}, {"body_0": free})
            nodes = [keep, join, copy_value("body_b", "body_1"), copy_value("body_0", "body_2")]
            return _graph(nodes, {"body_a": free, "body_b": tensor}, {"body_0": free, "body_1": tensor, "body_2": free})
        case "appended":
            kind = helper.make_sequence_type_proto(_tensor(dtype, None))
            grow = helper.make_node("SequenceInsert", ["body_a", "X"], ["body_0"], name="body_insert")
            return _graph([keep, grow], {"body_a": kind}, {"body_0": kind})
        case "optional":
            kind = helper.make_optional_type_proto(_tensor(dtype, None))
            return _graph([keep, copy_value("body_a", "body_0")], {"body_a": kind}, {"body_0": kind})
        case "nested" | "branch":
            return _graph([keep, _nest_loop(sample.body, tensor)], pair, moved, {"body_bound": np.array(2, np.int64)})
    return _make_refused(sample.body, tensor, [keep, *swap], pair, moved)


def _nest_loop(body: str, tensor: TypeProto) -> NodeProto:
    """The node that gives `body_0` and `body_1`: a loop of as many iterations as the iteration number, each of which
    exchanges the two; or a branch that exchanges them while the condition holds."""
    if body == "nested":
        names = {"inner_a": tensor, "inner_b": tensor}
        nodes = [
            copy_value("inner_cond", "inner_go"),
            copy_value("inner_b", "inner_0"),
            copy_value("inner_a", "inner_1"),
        ]
        inner = _graph(nodes, names, {"inner_0": tensor, "inner_1": tensor}, prefix="inner")
        reads = ["body_i", "", "body_a", "body_b"]
        return helper.make_node("Loop", reads, ["body_0", "body_1"], name="body_loop", body=inner)
    sides = {
        side: helper.make_graph(
            [copy_value(names[0], f"{side}_0"), copy_value(names[1], f"{side}_1")],
            side,
            [],
            [helper.make_value_info(f"{side}_{i}", tensor) for i in range(2)],
        )
        for side, names in (("then", ("body_b", "body_a")), ("else", ("body_a", "body_b")))
    }
    return helper.make_node(
        "If", ["body_cond"], ["body_0", "body_1"], name="body_if", then_branch=sides["then"], else_branch=sides["else"]
    )


def _make_refused(
    body: str, tensor: TypeProto, nodes: list[NodeProto], pair: dict[str, TypeProto], moved: dict[str, TypeProto]
) -> GraphProto:
    match body:
        case "fewer_outputs":
            return _graph(nodes, pair, {"body_0": tensor})
        case "more_inputs":
            return _graph(nodes, {**pair, "body_c": tensor}, moved)
        case "fewer_inputs":
            return _graph(
                [nodes[0], copy_value("body_a", "body_0"), copy_value("body_a", "body_1")], {"body_a": tensor}, moved
            )
        case "cond_of_float":
            cast = helper.make_node("Cast", ["body_cond"], ["body_go"], name="body_cast", to=TensorProto.FLOAT)
            return _graph([cast, *nodes[1:]], pair, moved, going=TensorProto.FLOAT)
    raise ValueError(f"unknown body '{body}'")


def _tensor(dtype: np.dtype[np.generic], shape: Sequence[int | None] | None) -> TypeProto:
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), shape)


def _graph(
    nodes: Sequence[NodeProto], inputs: Mapping[str, TypeProto], outputs: Mapping[str, TypeProto],
    constants: Mapping[str, Array] | None = None, *, prefix: str = "body", going: int = TensorProto.BOOL,
) -> GraphProto:  # fmt: skip
    first = {
        f"{prefix}_i": helper.make_tensor_type_proto(TensorProto.INT64, ()),
        f"{prefix}_cond": helper.make_tensor_type_proto(TensorProto.BOOL, ()),
    }
    ends = [
        [helper.make_value_info(name, kind) for name, kind in named.items()]
        for named in ({**first, **inputs}, {f"{prefix}_go": helper.make_tensor_type_proto(going, ()), **outputs})
    ]
    held = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    return helper.make_graph(nodes, prefix, ends[0], ends[1], held)


def truth(node: Node) -> Truth:
    """What is carried in the end, and what was stacked; of a sequence its length and tensors."""
    around = node.surroundings
    assert around is not None
    body, carried = around.graphs["body"], around.inputs[2:]
    if len(body.input) != 2 + len(carried):
        return Refusal(f"the body must have {2 + len(carried)} inputs, not {len(body.input)}")
    if len(body.output) < 1 + len(carried):
        return Refusal(f"the body must have at least {1 + len(carried)} outputs, not {len(body.output)}")
    if body.output[0].type.tensor_type.elem_type != TensorProto.BOOL:
        return Refusal("the first output of the body, whether to go on, must be bool")
    outer: dict[str, subgraph.Value] = {o.name: o.value for o in node.inputs if o is not None}
    known = {**outer, "held": node.array("X"), "sequence": [node.array("X")]}
    try:
        found = subgraph.loop(body, node.value("M"), node.value("cond"), [known[name] for name in carried], outer)
    except ValueError as error:
        return Refusal(f"the stacked outputs must have the same shape in every iteration: {error}")
    return Outputs(tuple(map(Output, node.results, subgraph.tensors_of(found))))


OPERATORS = (Operator("Loop", samples, bindings, node, truth, NO_KERNEL, varied=("V",)),)
