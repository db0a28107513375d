"""Scan-8 to Scan-25: a body that runs over the slices of its inputs.

The bodies move data and add, so that the truth is exact; it is the pages' pseudo-code. Scan-8 has a batch axis before
the scanned one, and lengths of the batches, `sequence_lens`; with which value it pads what is stacked of a shorter
batch its page does not say: those cases stack nothing.

Source: the operator's pages. Of a scan without an iteration the outputs that are stacked have no rows and the shape
that the body declares. Types that numpy cannot hold have no cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from onnx import GraphProto, NodeProto, TypeProto, helper

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.families.movement import RefusedError, normalize_axis
from epcheck.generators.node import Attribute, Node, Operand, Surroundings
from epcheck.generators.operator import NO_KERNEL, Operator, spread
from epcheck.generators.oracle_math import subgraph
from epcheck.generators.oracle_math.subgraph import copy_value
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = ("Scan",)

ESTABLISHED = 25
BATCHED = 8
"""The version with a batch axis, without axes and directions of outputs."""

NEGATIVE_AXES = 11
COUNTED = ("float32", "float64", "int32", "int64")
"""The dtypes that Add has in every version."""

STATES = {"shift": 1, "exchange": 2, "last": 1, "total": 1, "branch": 1}
"""Body -> the number of states; `zip` and `outer` have none."""


@dataclass(frozen=True, kw_only=True)
class ScanSample(Sample):
    """body: see `_body`. length: of the scanned axis. shape: of a slice of it.

    axes, out_axes, backwards, out_backwards: the attributes for inputs and outputs; None leaves them out. lengths: of
    the batches; None leaves the input out. batched: Scan-8 has the sample, and no other version where `only_batched`.
    """

    body: str = "shift"
    length: int = 4
    shape: tuple[int, ...] = (2, 3)
    values: str = "distinct"
    axes: tuple[int, ...] | None = None
    out_axes: tuple[int, ...] | None = None
    backwards: tuple[int, ...] | None = None
    out_backwards: tuple[int, ...] | None = None
    lengths: tuple[int, ...] | None = None
    batches: int = 2
    only_batched: bool = False
    changed: Mapping[str, Attribute] = field(default_factory=dict)
    shorter: bool = False


def samples() -> Iterator[ScanSample]:
    yield ScanSample(name="shift", every_dtype=True)
    yield ScanSample(name="zip", body="zip", every_dtype=True)
    yield ScanSample(name="exchange", body="exchange")
    yield ScanSample(name="nothing_stacked", body="last")
    yield ScanSample(name="outer_scope", body="outer", every_dtype=True)
    yield ScanSample(name="branch", body="branch", length=5)
    yield ScanSample(name="sums", body="total", values="small", every_dtype=True)
    for length in (0, 1, 2, 1031):
        yield ScanSample(name=f"length_{length}", length=length, shape=(2,))
    yield from _axes()
    yield from _directions()
    for lengths in ((4, 4), (3, 1), (1, 4), (0, 2)):
        name = f"sequence_lens_{lengths[0]}_{lengths[1]}"
        yield ScanSample(name=name, body="last", lengths=lengths, only_batched=True, every_dtype=lengths == (3, 1))
    yield ScanSample(name="sequence_lens_whole_stacked", lengths=(4, 4), only_batched=True)
    yield ScanSample(name="batches_5", batches=5, only_batched=True)
    yield ScanSample(name="batches_1", batches=1, only_batched=True)
    yield ScanSample(name="every_value", shape=(16,), values="every", every_dtype=True)
    yield ScanSample(name="scalars", shape=())
    yield ScanSample(name="size_0", shape=(0, 3))
    yield ScanSample(name="rank_7", shape=(1, 2, 1, 2, 1, 2, 1))
    yield ScanSample(name="more_than_a_thread_group", shape=(3, 1025))
    yield expect_refusal(ScanSample(name="lengths_differ", body="zip", shorter=True))
    yield expect_refusal(ScanSample(name="axis_at_rank", axes=(3,)))
    yield expect_refusal(ScanSample(name="axis_below_minus_rank", axes=(-4,)))
    yield expect_refusal(ScanSample(name="out_axis_at_rank", out_axes=(3,)))
    yield expect_refusal(ScanSample(name="two_axes_for_one_input", axes=(0, 0)))
    yield expect_refusal(ScanSample(name="direction_2", backwards=(2,)))
    yield expect_refusal(ScanSample(name="out_direction_2", out_backwards=(2,)))
    yield expect_refusal(ScanSample(name="no_scan_inputs", changed={"num_scan_inputs": 0}))
    yield expect_refusal(ScanSample(name="more_scan_inputs_than_inputs", changed={"num_scan_inputs": 9}))


def _axes() -> Iterator[ScanSample]:
    for axis in (0, 1, 2, -1, -2, -3):
        place = f"{'minus_' if axis < 0 else ''}{abs(axis)}"
        yield ScanSample(name=f"axis_{place}", axes=(axis,), every_dtype=axis == 2)
        yield ScanSample(name=f"out_axis_{place}", out_axes=(axis,), every_dtype=axis == 1)
    for first, second in ((0, 1), (2, 0), (1, 2)):
        yield ScanSample(name=f"axes_{first}_{second}", body="zip", axes=(first, second))
        yield ScanSample(name=f"out_axes_{first}_{second}", body="zip", out_axes=(first, second))
    yield ScanSample(name="every_axis", body="zip", axes=(1, 2), out_axes=(2, 1))
    yield ScanSample(name="length_0_out_axis_1", length=0, axes=(1,), out_axes=(1,))


def _directions() -> Iterator[ScanSample]:
    for flag in (0, 1):
        yield ScanSample(name=f"direction_{flag}", backwards=(flag,), every_dtype=flag == 1)
        yield ScanSample(name=f"out_direction_{flag}", out_backwards=(flag,), every_dtype=flag == 1)
    for first, second in product((0, 1), repeat=2):
        yield ScanSample(name=f"directions_{first}_{second}", body="zip", backwards=(first, second))
        yield ScanSample(name=f"out_directions_{first}_{second}", body="zip", out_backwards=(first, second))
    yield ScanSample(name="both_directions", backwards=(1,), out_backwards=(1,))
    yield ScanSample(name="axes_and_directions", body="zip", axes=(1, 0), out_axes=(0, 2), backwards=(1, 0),
                     out_backwards=(0, 1), every_dtype=True)  # fmt: skip


def bindings(sample: ScanSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    placed = [*(sample.axes or ()), *(sample.out_axes or ())]
    if since_version == BATCHED:
        newer = sample.axes or sample.out_axes or sample.out_backwards
        if newer or sample.body in ("branch", "outer") or sample.length == 0:
            return ()
    elif sample.only_batched or (since_version < NEGATIVE_AXES and any(axis < 0 for axis in placed)):
        return ()
    if sample.body == "total" and dtypes[0] not in COUNTED:
        return ()
    fully = since_version in (ESTABLISHED, BATCHED)
    known = set(spread(sample, first=dtypes == ("float32",), newest=fully)) - {graph.INITIALIZER}
    if not known and dtypes == ("float32",):
        known = {graph.RUNTIME}
    if not known and sample.every_dtype:
        known = {graph.RUNTIME}
    return tuple(binding for binding in graph.BINDINGS if binding in known)


def node(sample: ScanSample, context: CaseContext) -> Node:
    """States `S`, `R` and scan inputs `X`, `Z` of the case's dtype, after `sequence_lens` in Scan-8; `W` is read by the
    body itself."""
    dtype, batched = context.dtype, context.since_version == BATCHED
    states = STATES.get(sample.body, 0)
    scans = 2 if sample.body == "zip" else 1
    front = (sample.batches,) if batched else ()
    operands = [Operand(name, context.draw(sample.values, (*front, *sample.shape))) for name in "SR"[:states]]
    for index, name in enumerate("XZ"[:scans]):
        axis = (sample.axes or (0,) * scans)[min(index, len(sample.axes or (0, 0)) - 1)]
        length = sample.length - (sample.shorter and index)
        shape = list(sample.shape)
        shape.insert(axis if axis >= 0 else max(0, axis + len(shape) + 1), length)
        operands.append(Operand(name, context.draw(sample.values, (*front, *shape))))
    reads = [operand.name for operand in operands]
    if sample.body == "outer":
        operands.append(Operand("W", context.draw(sample.values, sample.shape)))
    if sample.body == "branch":
        operands.append(Operand("cond", np.array(True)))
    if batched:
        reads.insert(0, "" if sample.lengths is None else "sequence_lens")
        if sample.lengths is not None:
            operands.insert(0, Operand("sequence_lens", np.array(sample.lengths, np.int64)))
    body = _body(sample, dtype, states)
    attributes: dict[str, Attribute] = {"num_scan_inputs": scans}
    for key, value in (("scan_input_axes", sample.axes), ("scan_output_axes", sample.out_axes),
                       ("directions" if batched else "scan_input_directions", sample.backwards),
                       ("scan_output_directions", sample.out_backwards)):  # fmt: skip
        if value is not None:
            attributes[key] = value
    results = {f"output_{i}": dtype.name for i in range(len(body.output))}
    types = {"V": dtype.name} | ({"I": "int64"} if batched else {})
    around = Surroundings(tuple(reads), tuple(results), results, types, graphs={"body": body})
    attributes |= sample.changed
    return Node("Scan", "", context.since_version, tuple(operands), tuple(results), attributes, around)


def _body(sample: ScanSample, dtype: np.dtype[np.generic], states: int) -> GraphProto:
    """The body; every name inside begins with `body_`: states s, r, slices x, z, new states 0, 1, stacked outputs."""
    tensor = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(dtype), sample.shape)
    inputs = [f"body_{name}" for name in "sr"[:states]] + (["body_x", "body_z"] if sample.body == "zip" else ["body_x"])
    match sample.body:
        case "shift":
            nodes, outputs = [copy_value("body_x", "body_0"), copy_value("body_s", "body_2")], ["body_0", "body_2"]
        case "exchange":
            nodes = [copy_value("body_r", "body_0"), copy_value("body_x", "body_1"), copy_value("body_s", "body_2")]
            outputs = ["body_0", "body_1", "body_2"]
        case "last":
            nodes, outputs = [copy_value("body_x", "body_0")], ["body_0"]
        case "zip":
            nodes, outputs = [copy_value("body_z", "body_2"), copy_value("body_x", "body_3")], ["body_2", "body_3"]
        case "outer":
            nodes, outputs = [copy_value("W", "body_2"), copy_value("body_x", "body_3")], ["body_2", "body_3"]
        case "total":
            add = helper.make_node("Add", ["body_s", "body_x"], ["body_0"], name="body_add")
            nodes, outputs = [add, copy_value("body_0", "body_2")], ["body_0", "body_2"]
        case "branch":
            nodes, outputs = [copy_value("body_x", "body_0"), _inner(tensor)], ["body_0", "body_2"]
        case other:
            raise ValueError(f"unknown body '{other}'")
    ends = [[helper.make_value_info(name, tensor) for name in names] for names in (inputs, outputs)]
    return helper.make_graph(nodes, "body", ends[0], ends[1])


def _inner(tensor: TypeProto) -> NodeProto:
    """A branch on `cond` of the graph around: it gives the slice, or else the state."""
    sides = {
        side: helper.make_graph(
            [copy_value(name, f"{side}_0")], side, [], [helper.make_value_info(f"{side}_0", tensor)]
        )
        for side, name in (("then", "body_x"), ("else", "body_s"))
    }
    branches = {"then_branch": sides["then"], "else_branch": sides["else"]}
    return helper.make_node("If", ["cond"], ["body_2"], name="body_if", **branches)


def truth(node: Node) -> Truth:
    around = node.surroundings
    assert around is not None
    body, scans = around.graphs["body"], node.integer("num_scan_inputs", 0)
    batched = node.since_version == BATCHED
    names = around.inputs[1:] if batched else around.inputs
    if not 0 < scans <= len(names):
        return Refusal(f"num_scan_inputs must be within [1, {len(names)}]; it is {scans}")
    values = [node.array(name) for name in names]
    outer: dict[str, subgraph.Value] = {o.name: o.value for o in node.inputs if o is not None}
    try:
        if not batched:
            found = _run_scan(node, body, values, outer)
            return Outputs(tuple(map(Output, node.results, found)))
        lengths = node.value("sequence_lens")
        rows = [
            _run_scan(
                node, body, [value[batch] for value in values], outer, None if lengths is None else int(lengths[batch])
            )
            for batch in range(values[-1].shape[0])
        ]
    except RefusedError as error:
        return Refusal(str(error))
    return Outputs(
        tuple(Output(name, np.stack(parts)) for name, parts in zip(node.results, zip(*rows, strict=True), strict=True))
    )


def _flags(node: Node, name: str, count: int) -> tuple[int, ...]:
    flags = node.integers(name, (0,) * count)
    if len(flags) != count:
        raise RefusedError(f"{name} must have {count} elements, not {len(flags)}")
    if "directions" in name and not set(flags) <= {0, 1}:
        raise RefusedError(f"{name} must be 0 or 1, not {flags}")
    return flags


def _run_scan(
    node: Node, body: GraphProto, values: list[Array], outer: Mapping[str, subgraph.Value], length: int | None = None
) -> list[Array]:
    """The final states, and what the iterations stacked. Raises RefusedError."""
    scans = node.integer("num_scan_inputs", 0)
    states, slices = list[subgraph.Value](values[:-scans]), []
    directions = "directions" if node.since_version == BATCHED else "scan_input_directions"
    axes, backwards = _flags(node, "scan_input_axes", scans), _flags(node, directions, scans)
    stacks = len(body.output) - len(states)
    for value, axis, back in zip(values[-scans:], axes, backwards, strict=True):
        rows = np.moveaxis(value, normalize_axis(axis, value.ndim, "scan_input_axes"), 0)[:length]
        slices.append(rows[::-1] if back else rows)
    if len({len(rows) for rows in slices}) > 1:
        raise RefusedError(f"the scanned axes must be equally long; they are {[len(rows) for rows in slices]}")
    places, prepends = _flags(node, "scan_output_axes", stacks), _flags(node, "scan_output_directions", stacks)
    for place, output in zip(places, body.output[len(states) :], strict=True):
        normalize_axis(place, len(output.type.tensor_type.shape.dim) + 1, "scan_output_axes")
    stacked: list[list[Array]] = [[] for _ in range(stacks)]
    for row in zip(*slices, strict=True):
        found = subgraph.run(body, [*states, *row], outer)
        for kept, element in zip(stacked, found[len(states) :], strict=True):
            kept.append(np.asarray(element))
        states = found[: len(states)]
    results = [
        subgraph.stack_rows(kept[::-1] if back else kept, body, len(states) + index, place)
        for index, (kept, place, back) in enumerate(zip(stacked, places, prepends, strict=True))
    ]
    return [*map(np.asarray, states), *results]


OPERATORS = (Operator("Scan", samples, bindings, node, truth, NO_KERNEL, varied=("V",)),)
