"""What the graphs in attributes compute: branches and bodies of If, Loop, Scan and SequenceMap, node by node in numpy.

Only the operators that the cases put there are known. A value is a tensor, a sequence, or an optional of either, which
is what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from onnx import GraphProto, NodeProto, helper, numpy_helper

from epcheck.generators.array import Array

LONGEST = 5000
"""How many iterations a loop is evaluated for: more than a loop that never ends should cost."""

Value: TypeAlias = "Array | list[Array]"


def run(graph: GraphProto, inputs: Sequence[Value], outer: Mapping[str, Value]) -> list[Value]:
    """The outputs of a graph. outer: the values that it reads from the graphs around it.

    Raises KeyError for an operator that is not known here, and for a name that nothing gives.
    """
    known: dict[str, Value] = {**outer, **{t.name: numpy_helper.to_array(t) for t in graph.initializer}}
    known |= dict(zip((item.name for item in graph.input), inputs, strict=True))
    for made in graph.node:
        attributes = {a.name: helper.get_attribute_value(a) for a in made.attribute}
        results = _outputs(made, attributes, known)
        known |= dict(zip(made.output, results, strict=True))
    return [known[output.name] for output in graph.output]


def _outputs(made: NodeProto, attributes: Mapping[str, Any], known: Mapping[str, Value]) -> list[Value]:
    values = [known[name] if name else None for name in made.input]
    match made.op_type:
        case "If":
            taken = attributes["then_branch" if np.all(values[0]) else "else_branch"]
            return run(taken, (), known)
        case "Loop":
            trip, cond, *carried = values
            return loop(attributes["body"], trip, cond, carried, known)  # type: ignore[arg-type]
    return [_OPERATORS[made.op_type](attributes, *values)]


def loop(
    body: GraphProto, trip: Array | None, cond: Array | None, carried: Sequence[Value], outer: Mapping[str, Value]
) -> list[Value]:
    """The final values of what is carried, then what each iteration gave beside it, stacked. None: an omitted input.

    Of no iteration they have the shapes that the body declares. Raises ValueError where the shapes differ, and
    OverflowError after LONGEST iterations.
    """
    values, going, count = list(carried), cond is None or bool(np.all(cond)), 0
    rows: list[list[Array]] = [[] for _ in body.output[1 + len(values) :]]
    while going and (trip is None or count < int(trip)):
        if count == LONGEST:
            raise OverflowError(f"the loop has more than {LONGEST} iterations")
        found = run(body, [np.array(count, np.int64), np.array(going), *values], outer)
        values = found[1 : 1 + len(values)]
        for row, value in zip(rows, found[1 + len(values) :], strict=True):
            row.append(np.asarray(value))
        going = bool(np.all(np.asarray(found[0]))) if cond is not None else True
        count += 1
    return [*values, *(stack_rows(row, body, 1 + len(values) + i) for i, row in enumerate(rows))]


def stack_rows(rows: Sequence[Array], body: GraphProto, position: int, axis: int = 0) -> Array:
    """The values of one output of a body along a new axis. Raises ValueError where their shapes differ."""
    if rows:
        return np.stack(rows, axis)
    declared = body.output[position].type.tensor_type
    shape = [dim.dim_value for dim in declared.shape.dim]
    shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 0)
    return np.zeros(shape, helper.tensor_dtype_to_np_dtype(declared.elem_type))


def copy_value(name: str, output: str) -> NodeProto:
    """The node that gives a value of a body under another name."""
    return helper.make_node("Identity", [name], [output], name=f"copy_{output}")


def tensors_of(values: Sequence[Value]) -> Iterator[Array]:
    """What leaves a case's model for these values: of a sequence its length, int64, and its tensors."""
    for value in values:
        if isinstance(value, list):
            yield np.array(len(value), np.int64)
            yield from value
        else:
            yield value


def _insert(_attributes: Mapping[str, Any], sequence: Sequence[Array], tensor: Array) -> list[Array]:
    return [*sequence, tensor]


def _first(_attributes: Mapping[str, Any], value: Value) -> Value:
    return value


def _construct(_attributes: Mapping[str, Any], *tensors: Array) -> list[Array]:
    return list(tensors)


def _at(_attributes: Mapping[str, Any], sequence: Sequence[Array], position: Array) -> Array:
    return sequence[int(position)]


def _concat(attributes: Mapping[str, Any], *tensors: Array) -> Array:
    return np.concatenate(tensors, attributes["axis"])


def _constant(attributes: Mapping[str, Any]) -> Array:
    return numpy_helper.to_array(attributes["value"])


def _cast(attributes: Mapping[str, Any], value: Array) -> Array:
    return value.astype(helper.tensor_dtype_to_np_dtype(attributes["to"]))


def _gather(attributes: Mapping[str, Any], values: Array, indices: Array) -> Array:
    return np.asarray(np.take(values, indices, attributes.get("axis", 0)))


def _elementwise(function: Callable[..., Any], _attributes: Mapping[str, Any], *values: Array) -> Array:
    return np.asarray(function(*values))


_OPERATORS: Mapping[str, Callable[..., Value]] = {
    "Identity": _first,
    "Optional": _first,
    "OptionalGetElement": _first,
    "SequenceConstruct": _construct,
    "SequenceInsert": _insert,
    "SequenceAt": _at,
    "Concat": _concat,
    "Constant": _constant,
    "Cast": _cast,
    "Gather": _gather,
    "Add": partial(_elementwise, np.add),
    "Less": partial(_elementwise, np.less),
}
"""Those that give one value."""
