"""What the operators that only move data share: samples by the schema's own names, nodes, exact truths.

A sample gives attributes and inputs by the names that the schema has for them. Whether a name is an attribute or an
input changes from version to version (axes, pads, split), and some exist only from some version on; so a sample has
cases in every version whose schema has all of its names, and `since` is left for what changed in meaning alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.case import CaseContext, Sample
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.declaration.parameter_space import ANY_VALUE, ParameterSpace, Parts, Values, always
from epcheck.generators.directml.lowering import Lowering
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NotLowered, Operator, spread
from epcheck.generators.truth import Output, Outputs, Refusal, Truth


@dataclass(frozen=True)
class Typed:
    """A value in the dtype of the case: a scalar as int, float or bool, or a nested tuple of them."""

    value: Any


@dataclass(frozen=True)
class Drawn:
    """Random values in the dtype of the case. special: every value that the dtype has a word for. small: integers whose
    sums and products are exact in every dtype. parameter: exporters write it as an initializer."""

    shape: tuple[int, ...]
    special: bool = False
    small: bool = False
    parameter: bool = False


Argument = Attribute | Typed | Drawn
"""A tuple of integers is an int64 input of one dimension where it is an input; an array stands for itself."""


@dataclass(frozen=True, kw_only=True)
class MovementSample(Sample):
    """shape: of the first input, drawn at random unless `arguments` has it. special, small: its values, as in `Drawn`.

    arguments: attribute or input -> value. since, until: the versions in which it has that meaning.
    outputs: their number. kinds: numpy's letters for the dtypes to which it applies.
    """

    shape: tuple[int, ...] = ()
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    special: bool = False
    small: bool = False
    kinds: str = "bfiu"
    since: int = 1
    until: int = 10**6
    outputs: int = 1


class RefusedError(ValueError):
    """The node breaks a rule of the standard; the message says which."""


Result = Callable[[Node], Array | tuple[Array, ...]]
"""The outputs of a valid node; raises RefusedError for any other."""

Lower = Callable[[Node, tuple[Array, ...]], Lowering | None]
"""From a node and its outputs, all of which have elements and at most eight dimensions, to DirectML's description."""


def movement(
    name: str,
    samples: Callable[[], Iterable[MovementSample]],
    result: Result,
    lower: Lower | NotLowered,
    *,
    varied: tuple[str, ...] = ("T",),
    parameters: frozenset[str] | None = None,
    node: Callable[[MovementSample, CaseContext], Node] | None = None,
    established: int | None = None,
) -> Operator[MovementSample]:
    """An operator whose truth is exact.

    parameters: the inputs that exporters write as initializers; None for all but the first.
    established: the version that is tried in every way, where no table of claims has the operator.
    """
    make = node or partial(node_of, name, parameters)
    return Operator(
        name,
        samples,
        partial(bindings, name, established, varied, parameters),
        make,
        partial(truth, result),
        lower if isinstance(lower, NotLowered) else partial(lowering, result, lower),
        varied,
    )


def parameters_of(name: str, since_version: int, parameters: frozenset[str] | None) -> frozenset[str]:
    """The inputs of that version that exporters write as initializers."""
    formals = schema.input_names(name, since_version)
    return frozenset(formals[1:]) if parameters is None else parameters & frozenset(formals)


def bindings(
    name: str,
    established: int | None,
    varied: tuple[str, ...],
    parameters: frozenset[str] | None,
    sample: MovementSample,
    since_version: int,
    dtypes: tuple[str, ...],
) -> tuple[str, ...]:
    """`spread`, without the bindings that would be the same model twice.

    Every way for inputs to enter the model is tried in the established version. Later ones have a few of its samples,
    and all that it lacks.
    """
    fully = established or newest_claimed_version(name)
    formals = frozenset(schema.input_names(name, since_version))
    if not _takes(name, since_version, sample):
        return ()
    if not sample.since <= since_version <= sample.until or np.dtype(dtypes[0]).kind not in sample.kinds:
        return ()
    if since_version > fully and not sample.every_dtype and _is_known_in(name, fully, sample):
        return ()
    first = dtypes == tuple(schema.dtypes(name, since_version, constraint)[0] for constraint in varied)
    wanted = parameters_of(name, since_version, parameters)
    fixed = {key for key in formals & wanted & sample.arguments.keys() if _is_parameter(sample.arguments[key])}
    scalar = not sample.shape and not any(
        _has_dimensions(sample.arguments[key]) for key in formals & sample.arguments.keys()
    )
    if fixed == formals:
        ways = spread(sample, first=first, newest=since_version == fully)
        return tuple(way for way in ways if way in (graph.INITIALIZER, graph.RUNTIME))
    if fixed:
        fed = formals & sample.arguments.keys() - fixed
        scalar = not sample.shape and not any(_has_dimensions(sample.arguments[key]) for key in fed)
        return spread(sample, first=first, newest=since_version == fully, scalar=scalar)
    if not first:
        return (graph.RUNTIME,) if sample.every_dtype else ()
    if since_version != fully:
        return (graph.RUNTIME,)
    return (graph.RUNTIME, graph.CONSTANT) if scalar else (graph.RUNTIME, graph.SYMBOLIC, graph.CONSTANT)


def _is_known_in(name: str, fully: int, sample: MovementSample) -> bool:
    """Whether a version that is tried fully has the sample, so that a later one need not have it again."""
    return sample.since <= fully and _takes(name, fully, sample)


def _takes(name: str, since_version: int, sample: MovementSample) -> bool:
    """Whether the version has the inputs and attributes of the sample."""
    inputs, attributes = schema.input_names(name, since_version), schema.attribute_names(name, since_version)
    return all(key in inputs or key in attributes for key in sample.arguments)


def _is_parameter(argument: Argument) -> bool:
    return not isinstance(argument, Drawn) or argument.parameter


def _has_dimensions(argument: Argument) -> bool:
    return bool(argument.shape) if isinstance(argument, Drawn | np.ndarray) else False


def node_of(name: str, parameters: frozenset[str] | None, sample: MovementSample, context: CaseContext) -> Node:
    """The node of a sample, inputs and attributes named as in the schema of the version."""
    definition = schema.schema(name, context.since_version)
    wanted = parameters_of(name, context.since_version, parameters)
    operands: list[Operand | None] = []
    for formal in definition.inputs:
        argument = sample.arguments.get(formal.name)
        if argument is not None:
            is_parameter = formal.name in wanted and _is_parameter(argument)
            operands.append(Operand(formal.name, make_array(argument, context), parameter=is_parameter))
        else:
            values = Drawn(sample.shape, sample.special, sample.small)
            operands.append(None if operands else Operand(formal.name, draw_values(values, context)))
    while operands[-1] is None:
        operands.pop()
    attributes = {
        key: make_array(value, context) if isinstance(value, Typed | Drawn) else value
        for key, value in sample.arguments.items()
        if key in definition.attributes
    }
    formal_output = definition.outputs[0].name
    outputs = (formal_output,) if sample.outputs == 1 else tuple(f"output_{i}" for i in range(sample.outputs))
    return Node(name, "", context.since_version, tuple(operands), outputs, attributes)


def make_array(argument: Argument, context: CaseContext) -> Array:
    """The value of an input; what has no dtype of its own is int64."""
    match argument:
        case Typed(value):
            return np.array(value, context.dtype)
        case Drawn():
            return draw_values(argument, context)
        case np.ndarray():
            return argument
    return np.array(argument, np.int64)


def draw_values(wanted: Drawn, context: CaseContext) -> Array:
    """The values, of the case's dtype."""
    if wanted.special:
        return np.resize(data.every_value(context.dtype), wanted.shape)
    if wanted.small:
        low = 0 if context.dtype.kind in "bu" else -2
        return context.rng.integers(low, 4, wanted.shape).astype(context.dtype)
    return data.distinct(wanted.shape, context.dtype, context.rng)


def truth(result: Result, node: Node) -> Truth:
    """The outputs to the last bit, or the rule that the node breaks."""
    try:
        arrays = outputs_of(result, node)
    except RefusedError as error:
        return Refusal(str(error))
    names = node.results
    return Outputs(tuple(Output(name, np.ascontiguousarray(a)) if a.ndim else Output(name, a)
                         for name, a in zip(names, arrays, strict=True)))  # fmt: skip


def outputs_of(result: Result, node: Node) -> tuple[Array, ...]:
    """The outputs as a tuple. Raises RefusedError."""
    got = result(node)
    return got if isinstance(got, tuple) else (np.asarray(got),)


def lowering(result: Result, lower: Lower, node: Node) -> Lowering | None:
    """None for a refusal and where a tensor has no elements, or more dimensions than DirectML can describe."""
    try:
        arrays = outputs_of(result, node)
    except RefusedError:
        return None
    tensors = (*(o.value for o in node.inputs if o is not None), *arrays)
    if any(t.ndim > MAX_RANK for t in tensors) or any(a.size == 0 for a in arrays) or first_input(node).size == 0:
        return None
    return lower(node, arrays)


def first_input(node: Node) -> Array:
    """The value of the first input, whatever its name."""
    operand = node.inputs[0]
    assert operand is not None
    return operand.value


def parameter(node: Node, name: str) -> tuple[int, ...] | None:
    """Integers that are an attribute in some versions and an input of one dimension in others; None if left out."""
    if name in node.attributes:
        return node.integers(name, ())
    value = node.value(name)
    return None if value is None else tuple(int(number) for number in value.reshape(-1))


def axis_of(node: Node, rank: int, default: int, name: str = "axis") -> int:
    """The attribute as an axis that is not negative. Raises RefusedError."""
    return normalize_axis(node.integer(name, default), rank, name)


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """An axis that is not negative. Raises RefusedError when it is not within the rank."""
    if not -rank <= axis < rank:
        raise RefusedError(f"{name} {axis} must be within [{-rank}, {rank - 1}] for rank {rank}")
    return axis % rank


def label(value: int) -> str:
    """A number in the name of a sample."""
    return f"minus_{-value}" if value < 0 else str(value)


def shape_of_rank(rank: int) -> tuple[int, ...]:
    """2 and 3 in turns: small, and not symmetric."""
    return tuple(2 + axis % 2 for axis in range(rank))


LENGTHS = (7, 16, 17, 33, 65, 129, 257, 1025, 4097)
"""At which kernels that move data change path."""

AXES = (1, 0, 2, -1)


def make_movement_space(
    node: Callable[[Values, np.random.Generator], Parts],
    choices: Mapping[str, tuple[Any, ...]],
    empty: tuple[str, ...] = ("outer", "inner"),
    is_valid: Callable[[Values], bool] = always,
    extremes: tuple[str, ...] = ANY_VALUE,
) -> ParameterSpace:
    """The space of [outer, length, inner]. empty: which of these may be 0."""
    return ParameterSpace(
        {"outer": 2, "length": 5, "inner": 3},
        node,
        choices,
        {"length": LENGTHS, "inner": LENGTHS},
        empty,
        is_valid,
        extremes=extremes,
        only_moves=True,
    )


def make_ramp(values: Values) -> Array:
    """float32 [outer, length, inner]: 1, 2, 3, ..."""
    shape = tuple(values[name] for name in ("outer", "length", "inner"))
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
