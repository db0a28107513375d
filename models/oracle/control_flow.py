"""The outputs of If, Loop, Scan and SequenceMap, whose attributes hold graphs. Source: their ONNX operator pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import onnx

from epcheck.generators.array import Array
from epcheck.models.graph.feed import Feed
from epcheck.models.oracle.node import OracleError, describe_node

Run = Callable[[onnx.GraphProto, Mapping[str, Feed]], tuple[Feed, ...]]
"""Evaluates a body on its inputs by name; returns its outputs in order."""

MOST_ITERATIONS = 100_000
"""Iterations of one Loop at most: a model may ask for INT64_MAX and end by its condition."""


def evaluate(node: onnx.NodeProto, inputs: Sequence[Feed], run: Run) -> tuple[Feed, ...]:
    """The outputs of If, Loop, Scan, SequenceMap. Raises OracleError."""
    match node.op_type:
        case "If":
            return run(_graph(node, "then_branch" if _flag(inputs[0]) else "else_branch"), {})
        case "Loop":
            return _loop(node, inputs, run)
        case "Scan":
            return _scan(node, inputs, run)
        case "SequenceMap":
            return _sequence_map(node, inputs, run)
    raise OracleError(f"{describe_node(node)} has a graph in an attribute, which is not understood")


def _graph(node: onnx.NodeProto, name: str) -> onnx.GraphProto:
    found: onnx.GraphProto | None = next((a.g for a in node.attribute if a.name == name), None)
    if found is None:
        raise OracleError(f"{describe_node(node)} has no {name}")
    return found


def _flag(value: Feed) -> bool:
    return bool(np.asarray(value).reshape(-1)[0])


def _loop(node: onnx.NodeProto, inputs: Sequence[Feed], run: Run) -> tuple[Feed, ...]:
    body = _graph(node, "body")
    limit = None if inputs[0] is None else int(np.asarray(inputs[0]).reshape(-1)[0])
    going = len(inputs) < 2 or inputs[1] is None or _flag(inputs[1])
    carried: list[Feed] = list(inputs[2:])
    collected: list[list[Array]] = [[] for _ in body.output[1 + len(carried) :]]
    iteration = 0
    while going and (limit is None or iteration < limit):
        if iteration == MOST_ITERATIONS:
            raise OracleError(f"{describe_node(node)} goes on beyond {MOST_ITERATIONS} iterations")
        values = (np.array(iteration, np.int64), np.array(going), *carried)
        results = run(body, dict(zip((value.name for value in body.input), values, strict=True)))
        going, carried = _flag(results[0]), list(results[1 : 1 + len(carried)])
        for rows, value in zip(collected, results[1 + len(carried) :], strict=True):
            rows.append(np.asarray(value))
        iteration += 1
    scanned = [
        _stack_rows(node, rows, value) for rows, value in zip(collected, body.output[1 + len(carried) :], strict=True)
    ]
    return (*carried, *scanned)


def _stack_rows(node: onnx.NodeProto, rows: Sequence[Array], value: onnx.ValueInfoProto) -> Array:
    if rows:
        return np.stack(rows)
    kind = value.type.tensor_type
    if not kind.HasField("shape") or any(not dim.HasField("dim_value") for dim in kind.shape.dim):
        raise OracleError(
            f"{describe_node(node)} does nothing, and does not say what shape of nothing '{value.name}' has"
        )
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    wide = np.dtype(np.float64) if dtype.kind == "f" else dtype
    return np.zeros((0, *(dim.dim_value for dim in kind.shape.dim)), wide)


def _scan(node: onnx.NodeProto, inputs: Sequence[Feed], run: Run) -> tuple[Feed, ...]:
    """Scan since version 9; before, it had a batch dimension."""
    body, count = _graph(node, "body"), _integers(node, "num_scan_inputs", 1)[0]
    states, scanned = list(inputs[: len(inputs) - count]), [np.asarray(value) for value in inputs[-count:]]
    axes = _integers(node, "scan_input_axes", count)
    columns = [
        np.flip(np.moveaxis(value, axis, 0), 0) if backward else np.moveaxis(value, axis, 0)
        for value, axis, backward in zip(scanned, axes, _integers(node, "scan_input_directions", count), strict=True)
    ]
    names, outputs = [value.name for value in body.input], len(body.output) - len(states)
    collected: list[list[Array]] = [[] for _ in range(outputs)]
    for row in zip(*columns, strict=True):
        results = run(body, dict(zip(names, (*states, *map(np.asarray, row)), strict=True)))
        states = list(results[: len(states)])
        for rows, value in zip(collected, results[len(states) :], strict=True):
            rows.append(np.asarray(value))
    return (*states, *_lay_out_results(node, collected, body.output[len(states) :]))


def _lay_out_results(
    node: onnx.NodeProto, collected: Sequence[Sequence[Array]], values: Sequence[onnx.ValueInfoProto]
) -> Iterator[Array]:
    axes = _integers(node, "scan_output_axes", len(collected))
    backward = _integers(node, "scan_output_directions", len(collected))
    for rows, value, axis, turned in zip(collected, values, axes, backward, strict=True):
        stacked = _stack_rows(node, rows[::-1] if turned else rows, value)
        yield np.moveaxis(stacked, 0, axis)


def _integers(node: onnx.NodeProto, name: str, count: int) -> tuple[int, ...]:
    """An attribute that is an integer or a list of them; zeros where it is left out."""
    for attribute in node.attribute:
        if attribute.name == name:
            return tuple(attribute.ints) or (attribute.i,)
    return (0,) * count


def _sequence_map(node: onnx.NodeProto, inputs: Sequence[Feed], run: Run) -> tuple[Feed, ...]:
    """The body for each element; what is no sequence is the same for all."""
    body, first = _graph(node, "body"), inputs[0]
    if not isinstance(first, list):
        raise OracleError(f"{describe_node(node)} has no sequence")
    results = [
        run(body, {formal.name: value[index] if isinstance(value, list) else value
                   for formal, value in zip(body.input, inputs, strict=True)})
        for index in range(len(first))
    ]  # fmt: skip
    return tuple([outputs[place] for outputs in results] for place in range(len(body.output)))
