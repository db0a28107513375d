"""What the families of element-wise operators share: shapes that broadcast, nodes, refusals, and the way to DirectML.

A family writes one `Rule` for each of its operators: how to draw its inputs, how to compute the truth from exact
values, how far off a result may be, and the DirectML description.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product, takewhile
from typing import Any

import numpy as np

from epcheck.generators import data, graph, schema
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, Sample, expect_refusal
from epcheck.generators.citation import Citation
from epcheck.generators.directml import DataType, OperatorDesc, TensorDesc
from epcheck.generators.directml.lowering import Lowering, pad_rank, padded_sizes
from epcheck.generators.directml.tensor import MAX_RANK
from epcheck.generators.families import borders
from epcheck.generators.node import Attribute, Node, Operand
from epcheck.generators.operator import NotLowered, Operator
from epcheck.generators.truth import Bound, Exact, Output, Outputs, Refusal, Truth, Ulp, ZeroSigns

Shape = tuple[int, ...]
Row = tuple[Any, ...]
Attributes = tuple[tuple[str, Attribute], ...]
Draw = Callable[[tuple[Shape, ...], np.dtype[Any], np.random.Generator], tuple[Array, ...]]
Describe = Callable[[Node, tuple[TensorDesc, ...], TensorDesc], OperatorDesc | None]
BoundOf = Callable[[np.dtype[Any], tuple[Array, ...]], Bound]
"""(dtype of the output, widened inputs) -> bound."""
SignsOf = Callable[[Node, tuple[Array, ...]], ZeroSigns | None]

ANY = "fiub"
INTEGERS = "iu"
FLOATS = "f"


@dataclass(frozen=True, kw_only=True)
class ElementwiseSample(Sample):
    """shapes: of the inputs, drawn by the rule of the operator.

    rows: instead of drawing, the values themselves, a row for each element; rows that a dtype cannot hold are left out.
    boundary: instead of drawing, every combination of the dtype's boundary values that the rule admits; 'denormals' and
    'every' take those values instead. outer: the values of each of two inputs, NaN among them, lie along an axis of its
    own, so that the combinations come of broadcasting; of the second those that may follow any of the first.
    unchecked: rows need not be admitted by the rule, since a newer text defines them.
    kinds, dtypes: the numpy kinds, and if there are any the names, of the dtypes that the sample is about.
    spread: every way for inputs to enter the model. attributes: of the node. mixed: the second input has another dtype,
    which no operator with one type allows. since: words of the operator's text that must be there for the sample to
    make sense, until: words that must not be.
    """

    shapes: tuple[Shape, ...] = ()
    rows: tuple[Row, ...] = ()
    boundary: str = ""
    outer: bool = False
    unchecked: bool = False
    kinds: str = ANY
    dtypes: tuple[str, ...] = ()
    spread: bool = False
    attributes: Attributes = ()
    mixed: bool = False
    since: str = ""
    until: str = ""


def always(*_arrays: Array) -> Any:
    """Every combination of values is defined."""
    return True


def leave_undefined(_node: Node, _values: tuple[Array, ...]) -> ZeroSigns | None:
    """The signs of zeros of an operator of which nobody says what they are."""
    return None


def signs(source: str) -> SignsOf:
    """The source defines the signs of all zeros."""
    return lambda _node, _values: ZeroSigns(source)


def exactly(_dtype: np.dtype[Any], _values: tuple[Array, ...]) -> Bound:
    """The bound of data movement, comparisons and integers."""
    return Exact()


@dataclass(frozen=True)
class Rule:
    """One element-wise operator.

    draw: (shapes, dtype, rng) -> inputs for which the result is defined. compute: (node, inputs) -> the truth, from
    floats widened to float64 and integers in their own type. bound: of floating-point results, by dtype; `Exact` for
    those whose bits are given. describe: (node, input tensors, output tensor) -> the DirectML description.
    admits: which combinations of boundary values have a defined result. result: the dtype of the output, where it is
    not that of the inputs. same_shape: versions whose text has no broadcasting. rejects: why a node is not valid.
    one_type: all inputs have the type T; otherwise the one at `typed` has it. edges: (which, dtype) -> the inputs of a
    sample of boundary values, where they are not every combination. zeros: (node, inputs) -> which zeros have a sign
    that somebody defines.
    """

    name: str
    samples: tuple[ElementwiseSample, ...]
    draw: Draw
    compute: Callable[[Node, tuple[Array, ...]], Array]
    describe: Describe | NotLowered
    bound: BoundOf = exactly
    admits: Callable[..., Any] = always
    domain: str = ""
    result: np.dtype[Any] | None = None
    same_shape: Callable[[int], bool] = lambda _since_version: False
    rejects: Callable[[Node], str | None] = lambda _node: None
    arity: int = 2
    one_type: bool = True
    typed: int = 0
    edges: Callable[[str, np.dtype[Any]], tuple[Array, ...]] | None = None
    zeros: SignsOf = leave_undefined


def bound_ulps(ulps: float, citation: Citation) -> BoundOf:
    """The same bound in ULP for every floating dtype."""
    return lambda dtype, _values: bounds.ulp(ulps, (citation,), dtype)


def bound_one_rounding(dtype: np.dtype[Any], _values: tuple[Array, ...]) -> Bound:
    """1 ULP; the truth itself of a target that keeps to IEEE 754."""
    return replace(bounds.ulp(1.0, (bounds.WEBNN,), dtype), is_one_rounding=True)


def operator(rule: Rule) -> Operator[ElementwiseSample]:
    """The operator that a rule describes."""
    return Operator(
        rule.name,
        partial(_samples, rule),
        partial(bindings, rule),
        partial(node, rule),
        partial(truth, rule),
        rule.describe if isinstance(rule.describe, NotLowered) else partial(lower, rule),
        domain=rule.domain,
    )


def call_plain(function: Callable[..., Any]) -> Callable[[Node, tuple[Array, ...]], Array]:
    """The truth of an operator without attributes."""
    return lambda _node, arrays: np.asarray(function(*arrays))


def _samples(rule: Rule) -> Iterator[ElementwiseSample]:
    yield from rule.samples


def unary_shapes() -> Iterator[ElementwiseSample]:
    """Ranks, sizes of 0 and 1, and more elements than a thread group has."""
    yield ElementwiseSample(name="matrix", shapes=((3, 5),), every_dtype=True, spread=True)
    for rank in range(9):
        yield ElementwiseSample(name=f"rank_{rank}", rank=rank, shapes=(tuple(2 + axis % 2 for axis in range(rank)),))
    yield ElementwiseSample(name="size_1", shapes=((1, 1, 1),))
    yield ElementwiseSample(name="size_0", shapes=((0,),))
    yield ElementwiseSample(name="size_0_inside", shapes=((2, 0, 3),))
    for length in (31, 257, 1025, 4097):
        yield ElementwiseSample(name=f"length_{length}", shapes=((length,),), every_dtype=length == 1025)
    for size in borders.OF_UNARY:
        yield ElementwiseSample(name=f"length_{size}", shapes=((size,),))


def broadcasts() -> Iterator[ElementwiseSample]:
    """Shapes of two inputs: equal, broadcast from either side and from both, empty, and large."""
    pairs: dict[str, tuple[Shape, Shape]] = {
        "a_scalar": ((), (3, 5)),
        "both_scalar": ((), ()),
        "b_one_element": ((3, 5), (1,)),
        "a_one_element_of_higher_rank": ((1, 1, 1), (3, 5)),
        "a_row": ((5,), (3, 5)),
        "b_column": ((3, 5), (3, 1)),
        "a_column": ((3, 1), (3, 5)),
        "ranks_differ": ((2, 3, 4), (3, 1)),
        "b_of_higher_rank": ((3, 1), (2, 3, 4)),
        "inner_axis": ((2, 3, 4), (2, 1, 4)),
        "outer_axis": ((1, 3, 4), (2, 1, 1)),
        "bias_of_channels": ((2, 3, 4, 5), (1, 3, 1, 1)),
        "bias_where_sizes_are_equal": ((2, 3, 3, 3), (3, 1, 1)),
        "row_of_a_square": ((4, 4), (4,)),
        "alternating_rank_5": ((2, 1, 3, 1, 2), (1, 3, 1, 2, 2)),
        "alternating_rank_8": ((2, 1, 2, 1, 2, 1, 2, 1), (1, 2, 1, 2, 1, 2, 1, 3)),
        "rank_8_and_1": ((2, 1, 2, 1, 2, 1, 2, 3), (3,)),
        "size_0": ((0, 3), (0, 3)),
        "size_0_by_1": ((0, 3), (1, 3)),
        "size_0_by_scalar": ((), (2, 0)),
        "size_0_from_1": ((3, 1), (0,)),
        "size_1": ((1, 1), (1, 1)),
        "length_4097": ((4097,), (4097,)),
        "many_rows": ((257, 5), (5,)),
        "many_columns": ((257, 1), (1, 7)),
    }
    yield ElementwiseSample(name="same_shape", shapes=((3, 5), (3, 5)), every_dtype=True, spread=True)
    yield ElementwiseSample(name="b_scalar", shapes=((3, 5), ()), every_dtype=True, spread=True)
    yield ElementwiseSample(name="b_row", shapes=((3, 5), (5,)), spread=True)
    yield ElementwiseSample(name="both_broadcast", shapes=((3, 1), (1, 5)), every_dtype=True, spread=True)
    yield ElementwiseSample(name="length_1025", shapes=((1025,), (1025,)), every_dtype=True)
    for name, shapes in pairs.items():
        rank = max(map(len, shapes))
        yield ElementwiseSample(name=name, shapes=shapes, rank=rank if rank == MAX_RANK else None)
    for rank in range(3, 9):
        shape = tuple(2 + axis % 2 for axis in range(rank))
        yield ElementwiseSample(name=f"same_shape_rank_{rank}", rank=rank, shapes=(shape, shape))
    for size in borders.SIZES:
        yield ElementwiseSample(name=f"length_{size}", shapes=((size,), (size,)))


def refused_pairs() -> Iterator[ElementwiseSample]:
    """Two inputs that no binary operator takes."""
    yield expect_refusal(ElementwiseSample(name="last_axes_differ", shapes=((2, 3), (2, 4))))
    yield expect_refusal(ElementwiseSample(name="first_axes_differ", shapes=((2, 3), (3, 3))))
    yield expect_refusal(ElementwiseSample(name="row_for_columns", shapes=((3, 5), (3,))))
    yield expect_refusal(ElementwiseSample(name="two_dtypes", shapes=((3, 5), (3, 5)), mixed=True))


def bindings(rule: Rule, sample: ElementwiseSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """The first dtype that a sample is about has every sample, the others those worth it; few are spread."""
    text = schema.schema(rule.name, since_version, rule.domain).doc or ""
    if sample.since not in text or (sample.until and sample.until in text):
        return ()
    if not _is_about(rule, sample, np.dtype(dtypes[0])):
        return ()
    earlier = takewhile(lambda name: name != dtypes[0], schema.dtypes(rule.name, since_version, "T", rule.domain))
    if any(_is_about(rule, sample, np.dtype(name)) for name in earlier):
        return (graph.RUNTIME,) if sample.every_dtype else ()
    if not sample.spread:
        return (graph.RUNTIME,)
    return tuple(v for v in graph.BINDINGS if rule.arity > 1 or v != graph.INITIALIZER)


def _is_about(rule: Rule, sample: ElementwiseSample, dtype: np.dtype[Any]) -> bool:
    if dtype.kind not in sample.kinds or (sample.dtypes and dtype.name not in sample.dtypes):
        return False
    return not sample.rows or bool(_list_fitting_rows(rule, sample, dtype))


def formal_names(rule: Rule, since_version: int, count: int) -> tuple[tuple[str, ...], str]:
    """The names of a node's inputs, those of a variadic one numbered, and of its output."""
    definition = schema.schema(rule.name, since_version, rule.domain)
    inputs = list(schema.input_names(rule.name, since_version, rule.domain))
    if schema.signature(rule.name, since_version, rule.domain).variadic[0]:
        inputs = [f"{inputs[-1]}_{index}" for index in range(count)]
    return tuple(inputs), definition.outputs[0].name


def node(rule: Rule, sample: ElementwiseSample, context: CaseContext) -> Node:
    """Inputs of one dtype T and of shapes that broadcast; the last one is what exporters write as an initializer."""
    values = _values(rule, sample, context.dtype, context.rng)
    names, result = formal_names(rule, context.since_version, len(values))
    if sample.mixed:
        other = np.dtype(np.int32 if context.dtype.kind != "i" else np.float32)
        values = (values[0], np.ones(values[1].shape, other), *values[2:])
    last = len(values) - 1
    inputs = tuple(
        Operand(name, value, parameter=last > 0 and index == last)
        for index, (name, value) in enumerate(zip(names, values, strict=True))
    )
    return Node(rule.name, rule.domain, context.since_version, inputs, (result,), dict(sample.attributes))


def _values(rule: Rule, sample: ElementwiseSample, dtype: np.dtype[Any], rng: np.random.Generator) -> tuple[Array, ...]:
    if sample.rows:
        return columns(_list_fitting_rows(rule, sample, dtype), dtype)
    if sample.boundary and rule.edges is not None:
        return rule.edges(sample.boundary, dtype)
    if sample.outer:
        values = np.append(edge_values(sample.boundary, dtype), np.array([np.nan] if dtype.kind == "f" else [], dtype))
        admitted = _admit_values(rule, tuple(np.meshgrid(values, values, indexing="ij")))
        return values[:, None], values[admitted.all(axis=0)]
    if sample.boundary:
        grid = np.meshgrid(*(edge_values(sample.boundary, dtype),) * rule.arity, indexing="ij")
        flat = tuple(part.reshape(-1) for part in grid)
        admitted = _admit_values(rule, flat)
        return tuple(part[admitted] for part in flat)
    if _shape_of_all(sample.shapes) is None:
        return tuple(np.ones(shape, dtype) for shape in sample.shapes)
    return rule.draw(sample.shapes, dtype, rng)


def columns(rows: tuple[Row, ...], dtype: np.dtype[Any]) -> tuple[Array, ...]:
    """One 1-D array for each column; what the dtype cannot hold is infinite."""
    with np.errstate(over="ignore"):
        return tuple(np.array(column, dtype) for column in zip(*rows, strict=True))


def edge_values(which: str, dtype: np.dtype[Any]) -> Array:
    """The boundary values that a sample asks for."""
    return {"denormals": data.denormals, "every": data.every_value}.get(which, data.boundary)(dtype)


def _admit_values(rule: Rule, values: tuple[Array, ...]) -> Array:
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(rule.admits(*values), bool), values[0].shape)


def _list_fitting_rows(rule: Rule, sample: ElementwiseSample, dtype: np.dtype[Any]) -> tuple[Row, ...]:
    """The rows that the dtype can hold and whose result is defined."""
    rows = sample.rows
    if dtype.kind in INTEGERS:
        info = np.iinfo(dtype)
        rows = tuple(row for row in rows if all(v == int(v) and info.min <= v <= info.max for v in row))
    if not rows or sample.unchecked:
        return rows
    return tuple(row for row, good in zip(rows, _admit_values(rule, columns(rows, dtype)), strict=True) if good)


def _shape_of_all(shapes: tuple[Shape, ...]) -> Shape | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def refusal(rule: Rule, node: Node) -> str | None:
    """Why the node is not valid; None when it is."""
    values = operands(node)
    if rule.one_type and len({value.dtype for value in values}) > 1:
        return f"all inputs of {rule.name} have one type T, not {', '.join(str(value.dtype) for value in values)}"
    shapes = tuple(value.shape for value in values)
    if rule.same_shape(node.since_version) and len(set(shapes)) > 1:
        return f"all inputs of {rule.name}-{node.since_version} have one shape, not {shapes}"
    if _shape_of_all(shapes) is None:
        return f"shapes {shapes} cannot be broadcast to each other"
    return rule.rejects(node)


def operands(node: Node) -> tuple[Array, ...]:
    """The values of the inputs that are there."""
    return tuple(operand.value for operand in node.inputs if operand is not None)


def widen_floats(values: tuple[Array, ...]) -> tuple[Array, ...]:
    """Floats as float64, which is exact; the rest as it is."""
    return tuple(value.astype(np.float64) if value.dtype.kind == "f" else value for value in values)


def sum_of_magnitudes(values: tuple[Array, ...]) -> Array:
    """float64 of the broadcast shape: what `bounds.bound_sum` measures a sum by."""
    return np.asarray(sum(np.abs(value) for value in values), np.float64)


def bound_addition(dtype: np.dtype[Any], values: tuple[Array, ...]) -> Bound:
    """The bound of a sum of the inputs."""
    return bounds.bound_sum(len(values), dtype, sum_of_magnitudes(values), roundings=0)


def truth(rule: Rule, node: Node) -> Truth:
    """The rule's formula on exact values, rounded once."""
    reason = refusal(rule, node)
    if reason is not None:
        return Refusal(reason)
    values = operands(node)
    with np.errstate(all="ignore"):
        exact = rule.compute(node, widen_floats(values))
        dtype = rule.result or values[rule.typed].dtype
        bound = rule.bound(dtype, widen_floats(values)) if dtype.kind == "f" else Exact()
    return Outputs((output(node.outputs[0], exact, dtype, bound, rule.zeros(node, values)),))


def output(name: str, exact: Array, dtype: np.dtype[Any], how: Bound, zeros: ZeroSigns | None = None) -> Output:
    """One output of `dtype`: a float within its bound, anything else exactly."""
    if isinstance(how, Ulp):
        return bounds.round_output(name, exact, dtype, how, zeros)
    return Output(name, np.asarray(exact).astype(dtype))


def lower(rule: Rule, node: Node) -> Lowering | None:
    """The inputs broadcast to the output by strides of 0, in at least 4 dimensions."""
    if isinstance(rule.describe, NotLowered) or refusal(rule, node) is not None:
        return None
    values = operands(node)
    shape = np.broadcast_shapes(*(value.shape for value in values))
    if 0 in shape or len(shape) > MAX_RANK:
        return None
    tensors, feeds = zip(*(broadcast(value, shape) for value in values), strict=True)
    result = DataType.of(rule.result or values[rule.typed].dtype)
    description = rule.describe(node, tensors, TensorDesc(result, feeds[0].shape))
    return None if description is None else Lowering(description, feeds)


def broadcast(value: Array, shape: Shape) -> tuple[TensorDesc, Array]:
    """A tensor as the DML EP describes it to an operator whose output has `shape`, and what that operator sees."""
    sizes = padded_sizes(shape)
    values = pad_rank(value, len(sizes))
    if values.shape == sizes:
        return TensorDesc.of(values), values
    packed = [int(np.prod(values.shape[axis + 1 :])) for axis in range(len(sizes))]
    strides = tuple(
        0 if own == 1 and size != 1 else step for own, size, step in zip(values.shape, sizes, packed, strict=True)
    )
    return TensorDesc(DataType.of(value.dtype), sizes, strides), np.broadcast_to(values, sizes)


def binary(desc: Callable[[TensorDesc, TensorDesc, TensorDesc], OperatorDesc]) -> Describe:
    """A description of two inputs and one output."""
    return lambda _node, tensors, result: desc(tensors[0], tensors[1], result)


def unary(desc: Callable[[TensorDesc, TensorDesc], OperatorDesc]) -> Describe:
    """A description of one input and one output."""
    return lambda _node, tensors, result: desc(tensors[0], result)


def whole_range(shapes: tuple[Shape, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> tuple[Array, ...]:
    """Any values of the dtype."""
    return tuple(data.distinct(shape, dtype, rng) for shape in shapes)


def integers_within(low: int, high: int, shape: Shape, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Integers of [low, high], as far as the dtype has them."""
    info = np.iinfo(dtype)
    return rng.integers(max(low, info.min), min(high, info.max), shape, dtype=dtype, endpoint=True)


def every_combination(*columns_: tuple[Any, ...]) -> tuple[Row, ...]:
    """Rows of every combination of the columns' values."""
    return tuple(product(*columns_))
