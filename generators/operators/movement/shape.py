"""Shapes, and tensors made from little: Shape, Size, ConstantOfShape, EyeLike, Range, OneHot, NonZero, Trilu.
com.microsoft has Range and Trilu, too.

ConstantOfShape -> DML_FILL_VALUE_CONSTANT, Range -> DML_FILL_VALUE_SEQUENCE, EyeLike -> DML_DIAGONAL_MATRIX, Trilu ->
DML_DIAGONAL_MATRIX1, OneHot -> DML_ONE_HOT, NonZero -> DML_NONZERO_COORDINATES; Shape and Size are computed on the CPU.
Sources: the operator pages. Left out, because the pages do not define it: Range with a delta of 0, with elements beyond
the dtype or with a quotient that rounding would lift over an integer; OneHot with a depth below 1, with fractions
or with a scalar index (which the shape inference of onnx refuses); NonZero-9 of a scalar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from onnx import helper

from epcheck.generators import graph
from epcheck.generators.array import Array
from epcheck.generators.bounds import bounds
from epcheck.generators.case import CaseContext, expect_refusal
from epcheck.generators.claims import newest_claimed_version
from epcheck.generators.declaration.interaction import Arange, Interaction, Literal
from epcheck.generators.directml.descriptions.movement.filling import (
    DiagonalMatrix,
    DiagonalMatrix1,
    FillValueConstant,
    FillValueSequence,
    NonzeroCoordinates,
    OneHot,
)
from epcheck.generators.directml.lowering import Lowering, pad_rank
from epcheck.generators.directml.tensor import DataType, TensorDesc
from epcheck.generators.families import movement
from epcheck.generators.families.contrib_twin import make_twin
from epcheck.generators.families.movement import (
    Argument,
    Drawn,
    MovementSample,
    RefusedError,
    Typed,
    first_input,
    label,
    shape_of_rank,
)
from epcheck.generators.node import Node, Operand
from epcheck.generators.operator import NO_ELEMENTS, ON_CPU, OTHER_RANK, Operator, declare
from epcheck.generators.truth import Output, Outputs, Refusal, Truth

DECLARES = (
    "Shape",
    "Size",
    "ConstantOfShape",
    "EyeLike",
    "Range",
    "OneHot",
    "NonZero",
    "Trilu",
    "com.microsoft::Range",
    "com.microsoft::Trilu",
)

INT64 = np.iinfo(np.int64)


def _sample(name: str, shape: tuple[int, ...] = (), every_dtype: bool = False, special: bool = False, since: int = 1,
            kinds: str = "bfiu", **arguments: Argument) -> MovementSample:  # fmt: skip
    return MovementSample(
        name=name, shape=shape, arguments=arguments, every_dtype=every_dtype, special=special, since=since, kinds=kinds
    )


def shape_samples() -> Iterator[MovementSample]:
    yield _sample("three_dimensions", (2, 3, 4), every_dtype=True)
    for rank in (0, 1, 2, 4, 5, 8):
        yield replace(_sample(f"rank_{rank}", shape_of_rank(rank), every_dtype=rank == 0), rank=rank)
    yield _sample("size_0", (0, 3))
    yield _sample("size_1", (1, 1, 1))
    yield _sample("large", (1031, 3))
    for name, start in {"1": 1, "minus_1": -1, "at_rank": 3, "beyond_rank": 9, "below_rank": -9, "0": 0}.items():
        yield _sample(f"start_{name}", (2, 3, 4), start=start)
    for name, end in {"1": 1, "minus_1": -1, "at_rank": 3, "beyond_rank": 9, "below_rank": -9, "0": 0}.items():
        yield _sample(f"end_{name}", (2, 3, 4), end=end)
    for start, end in ((1, 2), (-2, -1), (2, 1), (1, 1), (0, 3), (-9, 9)):
        yield _sample(f"from_{label(start)}_to_{label(end)}", (2, 3, 4), start=start, end=end)
    yield _sample("start_of_a_scalar", (), start=0)


def shape_of(node: Node) -> Array:
    """The sizes from `start` to `end`, both clamped to the rank after counting from the back."""
    sizes = first_input(node).shape
    rank = len(sizes)

    def clamp(axis: int) -> int:
        return min(max(axis + rank if axis < 0 else axis, 0), rank)

    start, end = clamp(node.integer("start", 0)), clamp(node.integer("end", rank))
    return np.array(sizes[start : max(start, end)], np.int64)


def size_samples() -> Iterator[MovementSample]:
    yield _sample("three_dimensions", (2, 3, 4), every_dtype=True)
    for rank in (0, 1, 2, 4, 5, 8):
        yield replace(_sample(f"rank_{rank}", shape_of_rank(rank), every_dtype=rank == 0), rank=rank)
    yield _sample("size_0", (3, 0, 2))
    yield _sample("size_0_alone", (0,))
    yield _sample("size_1", (1, 1, 1))
    yield _sample("large", (1031, 3))


def size_of(node: Node) -> Array:
    """The number of elements, a scalar."""
    return np.array(first_input(node).size, np.int64)


def _constant(name: str, shape: tuple[int, ...], every_dtype: bool = False, kinds: str = "bfiu",
              value: Argument | None = None) -> MovementSample:  # fmt: skip
    arguments: dict[str, Argument] = {"input": np.array(shape, np.int64)} | ({} if value is None else {"value": value})
    return MovementSample(name=name, arguments=arguments, every_dtype=every_dtype, kinds=kinds)


def constant_samples() -> Iterator[MovementSample]:
    yield _constant("any_value", (2, 3), every_dtype=True, value=Drawn((1,)))
    yield _constant("value_1", (3,), every_dtype=True, value=Typed((1,)))
    yield _constant("value_omitted", (2, 3))
    for name, value in {"nan": np.nan, "minus_inf": -np.inf, "minus_0": -0.0, "denormal": 1e-45}.items():
        yield _constant(f"value_{name}", (2, 3), kinds="f", value=Typed((value,)))
    yield replace(_constant("scalar", (), value=Typed((3,))), rank=0)
    for rank in range(1, 9):
        yield replace(_constant(f"rank_{rank}", shape_of_rank(rank), value=Typed((2,))), rank=rank)
    yield _constant("size_0", (3, 0), value=Typed((1,)))
    yield _constant("size_1", (1, 1), value=Typed((1,)))
    yield _constant("more_than_a_thread_group", (1031, 3), value=Typed((5,)))
    yield expect_refusal(_constant("negative_size", (2, -1), value=Typed((1,))))
    yield expect_refusal(_constant("two_values", (2, 3), value=Typed((1, 2))))
    yield expect_refusal(_sample("shape_of_rank_2", input=np.array([[2, 3]], np.int64), value=Typed((1,))))


CONSTANT_PARAMETERS = frozenset({"input"})


def constant_of_shape(node: Node) -> Array:
    """The value, or a float32 0, everywhere."""
    shape, value = node.array("input"), node.attributes.get("value", np.zeros(1, np.float32))
    assert isinstance(value, np.ndarray)
    if shape.ndim != 1 or any(size < 0 for size in shape):
        raise RefusedError("the input must be 1-D, and all values must be >= 0")
    if value.size != 1:
        raise RefusedError("value must be a one-element tensor")
    return np.full(tuple(int(size) for size in shape), value.reshape(())[()])


def lower_constant(_node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """The value in decimal."""
    result = pad_rank(outputs[0])
    value = result.reshape(-1)[0]
    return Lowering(FillValueConstant(TensorDesc.of(result), DataType.of(result.dtype), _decimal(value)), ())


def _decimal(value: Any) -> str:
    return str(int(value) if isinstance(value, np.bool_) else value)


DTYPES = ("float16", "float32", "float64", "bool", *(f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)))


def eye_samples() -> Iterator[MovementSample]:
    yield _sample("square", (3, 3), every_dtype=True)
    yield _sample("upper", (3, 4), every_dtype=True, k=1)
    for rows, columns in ((3, 5), (5, 3), (1, 1), (1, 4), (4, 1), (33, 35)):
        yield _sample(f"{rows}_by_{columns}", (rows, columns))
    for k in (0, 2, -1, -2, 3, -3, 4, -4, 2**31 - 1, -(2**31)):
        yield _sample(f"k_{label(k)}", (4, 5), k=k)
    yield _sample("size_0", (0, 3))
    yield _sample("special_values_ignored", (3, 5), special=True)
    for dtype in DTYPES:
        yield _sample(f"to_{dtype}", (2, 3), k=1, dtype=_onnx_type(dtype))
    yield expect_refusal(_sample("rank_1", (3,)))
    yield expect_refusal(replace(_sample("rank_3", (2, 3, 3)), rank=3))


def _onnx_type(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def eye_like(node: Node) -> Array:
    """Ones where column - row is k; of the input's dtype unless `dtype` says another."""
    values = first_input(node)
    if values.ndim != 2:
        raise RefusedError(f"the input must be 2-D; it has rank {values.ndim}")
    return _diagonal(values.shape, node.integer("k", 0)).astype(_eye_dtype(node))


def _diagonal(shape: tuple[int, ...], k: int) -> Array:
    rows, columns = np.indices(shape[-2:])
    return np.asarray(columns - rows == k)


def _eye_dtype(node: Node) -> np.dtype[Any]:
    if "dtype" not in node.attributes:
        return first_input(node).dtype
    return np.dtype(helper.tensor_dtype_to_np_dtype(node.integer("dtype", 1)))


def lower_eye(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """Rank padded to four."""
    return Lowering(DiagonalMatrix(TensorDesc.of(pad_rank(outputs[0])), node.integer("k", 0), 1.0), ())


@dataclass(frozen=True, kw_only=True)
class RangeSample(MovementSample):
    """start, limit, delta: exact; text stands for the ends of an integer dtype. only: the dtypes that can hold them.
    constant: it comes with initializers, too; such a node does not depend on anything."""

    start: float | str
    limit: float | str
    delta: float | str
    only: tuple[str, ...] = ()
    constant: bool = False


def _range(name: str, start: float | str, limit: float | str, delta: float | str, kinds: str = "fi",
           **members: Any) -> RangeSample:  # fmt: skip
    return RangeSample(name=name, start=start, limit=limit, delta=delta, kinds=kinds, **members)


def range_samples() -> Iterator[RangeSample]:
    yield _range("ascending", 3, 9, 3, every_dtype=True, constant=True)
    yield _range("descending", 10, 4, -2, every_dtype=True)
    yield _range("by_1", 0, 7, 1)
    yield _range("last_step_cut", 0, 10, 4, every_dtype=True)
    yield _range("descending_cut", 5, -6, -3, every_dtype=True)
    yield _range("across_zero", -4, 5, 2)
    yield _range("one_element", 2, 3, 5)
    yield _range("empty_at_limit", 3, 3, 1, every_dtype=True)
    yield _range("empty_behind", 5, 3, 1)
    yield _range("empty_ahead_descending", 3, 5, -1)
    yield _range("more_than_a_thread_group", 0, 1031, 1, every_dtype=True)
    yield _range("fraction_0_5", 0, 3, 0.5, "f", every_dtype=True)
    yield _range("fraction_minus_0_25", 1, -1, -0.25, "f", every_dtype=True)
    yield _range("fraction_0_1", 0, 1, 0.1, "f", every_dtype=True)
    yield _range("fraction_start", 0.75, 4, 1, "f")
    yield _range("many_small_steps", 0, 10, 0.0099, "f")
    yield _range("large_start", 2.0**20, 2.0**20 + 8, 1, "f", only=("float32", "float64"))
    yield _range("upper_end", "max-3", "max", 1, "i", every_dtype=True)
    yield _range("lower_end", "min+3", "min", -1, "i", every_dtype=True)
    yield _range("whole_range", "min", "max", "max//2", "i", every_dtype=True, constant=True)
    yield _range("beyond_2_24", 2**24 + 1, 2**24 + 6, 2, "i", every_dtype=True, only=("int32", "int64"))
    yield _range("beyond_2_53", 2**53 + 1, 2**53 + 9, 3, "i", every_dtype=True, only=("int64",))
    yield expect_refusal(_range("two_starts", 0, 3, 1, constant=True))


def range_bindings(sample: RangeSample, since_version: int, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """All inputs are parameters; versions later than those that providers have get a few samples."""
    if since_version > newest_claimed_version("Range") and not sample.every_dtype:
        return ()
    if np.dtype(dtypes[0]).kind not in sample.kinds or (sample.only and dtypes[0] not in sample.only):
        return ()
    if not (sample.every_dtype or (dtypes == ("float32",) and since_version == newest_claimed_version("Range"))):
        return ()
    if since_version == newest_claimed_version("Range") and sample.constant:
        return graph.INITIALIZER, graph.RUNTIME
    return (graph.RUNTIME,)


def range_node(sample: RangeSample, context: CaseContext) -> Node:
    """start, limit and delta are scalars of the case's dtype."""
    numbers = {name: _number(getattr(sample, name), context.dtype) for name in ("start", "limit", "delta")}
    if sample.refused:  # two starts
        numbers["start"] = np.repeat(numbers["start"], 2)
    operands = tuple(Operand(name, value, parameter=True) for name, value in numbers.items())
    return Node("Range", "", context.since_version, operands, ("output",))


def _number(value: float | str, dtype: np.dtype[Any]) -> Array:
    if not isinstance(value, str):
        return np.array(value, dtype)
    info = np.iinfo(dtype)
    named = {"max": info.max, "max-3": info.max - 3, "max//2": info.max // 2, "min": info.min, "min+3": info.min + 3}
    return np.array(named[value], dtype)


def range_truth(node: Node) -> Truth:
    """start + i delta in exact arithmetic, for i below ceil((limit - start) / delta).

    Exact where the dtype has every element; otherwise the bound of as many additions, since implementations may add
    up what the page multiplies.
    """
    arrays = [node.array(name) for name in ("start", "limit", "delta")]
    if any(array.ndim for array in arrays):
        return Refusal("start, limit and delta must be scalars")
    start, limit, delta = (Fraction(array.item()) for array in arrays)
    dtype = arrays[0].dtype
    exact = [start + i * delta for i in range(max(ceil((limit - start) / delta), 0))]
    values = np.array([_round_to(value, dtype) for value in exact], dtype)
    if all(Fraction(value.item()) == true for value, true in zip(values, exact, strict=True)):
        return Outputs((Output("output", values),))
    wide = np.array([float(value) for value in exact])
    magnitude = abs(float(start)) + np.arange(len(exact)) * abs(float(delta))
    return Outputs((bounds.round_output("output", wide, dtype, bounds.bound_sum(len(exact), dtype, magnitude)),))


def _round_to(exact: Fraction, dtype: np.dtype[Any]) -> Any:
    return dtype.type(int(exact)) if dtype.kind == "i" else dtype.type(float(exact))


def lower_range(node: Node) -> Lowering | None:
    """start and delta in decimal; the number of elements is the output's size."""
    truth = range_truth(node)
    if isinstance(truth, Refusal) or not isinstance(truth, Outputs) or truth.outputs[0].value.size == 0:
        return None
    result = pad_rank(truth.outputs[0].value)
    desc = FillValueSequence(
        TensorDesc.of(result), DataType.of(result.dtype), str(node.array("start")), str(node.array("delta"))
    )
    return Lowering(desc, ())


def _one_hot(name: str, indices: Any, depth: Any, dtype: str = "int64", since: int = 1, every_dtype: bool = False,
             values: Argument | None = None, **arguments: Argument) -> MovementSample:  # fmt: skip
    inputs: dict[str, Argument] = {
        "indices": np.array(indices, dtype),
        "depth": depth if isinstance(depth, np.ndarray) else np.array(depth, np.int64),
        "values": Typed((0, 1)) if values is None else values,
    }
    return MovementSample(name=name, since=since, every_dtype=every_dtype, arguments=inputs | arguments)


NEGATIVE_INDICES = 11
"""OneHot-9 takes indices in [0, depth) only; from 11 on they count from the back, too."""


def one_hot_samples() -> Iterator[MovementSample]:
    yield _one_hot("defaults", (0, 2, 1), 3, every_dtype=True)
    yield _one_hot("any_values", (1, 3, 0), 4, every_dtype=True, values=Drawn((2,), parameter=True))
    for axis in (0, 1, 2, -1, -2, -3):
        since = NEGATIVE_INDICES if axis < -1 else 1
        yield _one_hot(f"axis_{label(axis)}", ((0, 1, 4), (2, 3, 3)), 5, since=since, axis=axis, every_dtype=axis == 0)
    yield _one_hot("out_of_range", (0, 5, 2, 7), 5)
    yield _one_hot("negative_indices", (-1, 2, -3), 3, since=NEGATIVE_INDICES)
    yield _one_hot("negative_indices_axis_0", ((-1, 2), (-3, 0)), 3, since=NEGATIVE_INDICES, axis=0)
    yield _one_hot("negative_out_of_range", (-6, -5, 0), 5, since=NEGATIVE_INDICES)
    yield _one_hot("int64_extremes", (INT64.min, INT64.max, 1, 2**32 + 1), 3)
    yield _one_hot("depth_1", (0, 1), 1)
    yield _one_hot("depth_of_rank_1", (0, 2), np.array([4], np.int64))
    for dtype in ("int32", "uint32", "uint64", "int8", "uint8", "float32"):
        yield _one_hot(f"{dtype}_indices", ((1, 0), (3, 2)), 4, dtype)
    for dtype in ("int32", "uint8", "float32", "float64", "float16", "uint64"):
        yield _one_hot(f"{dtype}_depth", (1, 0, 3), np.array(4, dtype))
    yield _one_hot("no_indices", (), 3)
    for rank in (3, 5, 7):
        indices = np.arange(np.prod(shape_of_rank(rank))).reshape(shape_of_rank(rank)) % 4
        yield replace(_one_hot(f"rank_{rank}", indices, 3), rank=rank)
        yield replace(_one_hot(f"rank_{rank}_axis_0", indices, 3, axis=0), rank=rank)
    yield _one_hot("more_than_a_thread_group", np.arange(103) % 11, 11)
    yield _one_hot("large_depth", (1030, 0), 1031)
    yield _one_hot("on_below_off", (0, 1), 3, values=Typed((5, 2)))
    yield expect_refusal(_one_hot("axis_beyond_rank", (0, 1), 3, axis=2))
    yield expect_refusal(_one_hot("axis_below_rank", (0, 1), 3, since=NEGATIVE_INDICES, axis=-3))
    yield expect_refusal(_one_hot("three_values", (0, 1), 3, values=Typed((0, 1, 1))))
    yield expect_refusal(_one_hot("two_depths", (0, 1), np.array([3, 3], np.int64)))


def one_hot(node: Node) -> Array:
    """on_value where the place along the new axis is the index, off_value elsewhere."""
    indices, depth, values = (node.array(name) for name in ("indices", "depth", "values"))
    if values.shape != (2,) or depth.size != 1:
        raise RefusedError("values must have two elements, depth one")
    classes, axis = int(depth.reshape(())[()]), node.integer("axis", -1)
    rank = indices.ndim + 1
    if not -rank <= axis < rank:
        raise RefusedError(f"axis {axis} must be within [{-rank}, {rank - 1}]")
    places = np.arange(classes).reshape([-1 if i == axis % rank else 1 for i in range(rank)])
    wanted = np.expand_dims(indices.astype(object) if indices.dtype == np.uint64 else indices.astype(np.int64), axis)
    hot = places == wanted
    if node.since_version >= NEGATIVE_INDICES:
        hot = hot | (places - classes == wanted)
    return np.asarray(np.where(hot.astype(bool), values[1], values[0]))


def lower_one_hot(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """The indices get the new axis with a size of 1; rank padded to four."""
    indices, values, axis = node.array("indices"), node.array("values"), node.integer("axis", -1)
    rank = indices.ndim + 1
    tensors = (pad_rank(np.expand_dims(indices, axis)), pad_rank(values), pad_rank(outputs[0]))
    places, pair, result = map(TensorDesc.of, tensors)
    desc = OneHot(places, pair, result, axis=axis % rank + tensors[0].ndim - rank)
    return Lowering(desc, tensors[:2])


SCALARS = 13
"""NonZero-13 is the first page that says what comes out for a scalar."""


def non_zero_samples() -> Iterator[MovementSample]:
    yield _sample("sparse", (3, 4), every_dtype=True, X=Typed(((0, 1, 0, 2), (0, 0, 0, 0), (3, 0, 0, 1))))
    yield _sample("dense", (3, 5), every_dtype=True)
    yield _sample("special_values", (20,), special=True, every_dtype=True)
    yield _sample("all_zero", (2, 3), X=Typed(((0, 0, 0), (0, 0, 0))), every_dtype=True)
    yield _sample("negative_zero", (3,), X=Typed((-0.0, 0.0, 1.0)), kinds="f")
    yield _sample("nan", (3,), X=Typed((np.nan, 0.0, np.inf)), kinds="f")
    yield _sample("denormals", (3,), X=Typed((1e-45, 0.0, -1e-45)), kinds="f")
    yield _sample("one_element", (1,), X=Typed((2,)))
    yield _sample("one_zero", (1,), X=Typed((0,)))
    yield _sample("first_only", (4,), X=Typed((1, 0, 0, 0)))
    yield _sample("last_only", (2, 3), X=Typed(((0, 0, 0), (0, 0, 1))))
    yield replace(_sample("scalar", (), since=SCALARS, X=Typed(3)), rank=0)
    yield _sample("scalar_zero", (), since=SCALARS, X=Typed(0))
    yield _sample("size_0", (0, 3))
    for rank in (3, 4, 5, 8):
        shape = shape_of_rank(rank)
        values = (np.arange(np.prod(shape)) % 3).reshape(shape)
        yield replace(_sample(f"rank_{rank}", shape, X=Typed(values.tolist())), rank=rank)
    yield _sample("more_than_a_thread_group", (1031,), X=Typed(tuple(i % 2 for i in range(1031))))
    yield _sample("many_rows", (300, 5), X=Typed(tuple(tuple((i + j) % 3 for j in range(5)) for i in range(300))))


def non_zero(node: Node) -> Array:
    """The coordinates of the elements that are not 0, one column for each, in row-major order; NaN is not 0."""
    values = node.array("X")
    if values.ndim == 0:
        return np.zeros((0, int(values != 0)), np.int64)
    return np.array(np.nonzero(values), np.int64)


def lower_non_zero(node: Node, _outputs: tuple[Array, ...]) -> Lowering | None:
    """The operator fills a table with room for every element; the provider then cuts and transposes it."""
    values = node.array("X")
    desc = NonzeroCoordinates(
        TensorDesc.of(values),
        TensorDesc(DataType.UINT32, (1,)),
        TensorDesc(DataType.UINT32, (values.size, values.ndim)),
    )
    return Lowering(desc, (values,))


def trilu_samples() -> Iterator[MovementSample]:
    yield _sample("default", (3, 4), every_dtype=True)
    yield _sample("special_values", (5, 5), special=True, every_dtype=True)
    yield _sample("lower_special_values", (5, 5), special=True, every_dtype=True, upper=0)
    for upper in (1, 0):
        side = "upper" if upper else "lower"
        yield _sample(side, (4, 5), upper=upper)
        yield _sample(f"{side}_tall", (5, 3), upper=upper)
        for k in (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 7, -7):
            yield _sample(f"{side}_k_{label(k)}", (4, 5), upper=upper, k=np.array(k, np.int64), every_dtype=k == 1)
        for name, k in {"int32_max": 2**31 - 1, "int32_min": -(2**31)}.items():
            yield _sample(f"{side}_k_{name}", (3, 3), upper=upper, k=np.array(k, np.int64))
        for rank in (3, 4, 5, 8):
            ranked = _sample(f"{side}_rank_{rank}", shape_of_rank(rank), upper=upper, k=np.array(-1, np.int64))
            yield replace(ranked, rank=rank)
        yield _sample(f"{side}_one_row", (1, 5), upper=upper, k=np.array(2, np.int64))
        yield _sample(f"{side}_one_column", (5, 1), upper=upper, k=np.array(-2, np.int64))
        yield _sample(f"{side}_one_element", (1, 1), upper=upper)
        yield _sample(f"{side}_size_0", (0, 4), upper=upper)
        yield _sample(f"{side}_size_0_batch", (0, 3, 3), upper=upper)
        yield _sample(f"{side}_more_than_a_thread_group", (2, 33, 35), upper=upper)
    yield _sample("k_without_upper", (3, 4), k=np.array(-1, np.int64))
    yield expect_refusal(_sample("rank_1", (4,)))
    yield expect_refusal(_sample("scalar"))


def trilu(node: Node) -> Array:
    """0 below (above, for upper = 0) the k-th diagonal of each matrix, whatever stood there."""
    values, diagonal = first_input(node), node.value("k")
    if values.ndim < 2:
        raise RefusedError(f"the input must have rank 2 or more; it has {values.ndim}")
    k = 0 if diagonal is None else int(diagonal.reshape(())[()])
    rows, columns = np.indices(values.shape[-2:])
    kept = columns - rows >= k if node.integer("upper", 1) else columns - rows <= k
    return np.where(kept, values, values.dtype.type(0))


def lower_trilu(node: Node, outputs: tuple[Array, ...]) -> Lowering | None:
    """0 is filled in from diagonal DiagonalFillBegin up to, and without, DiagonalFillEnd; rank padded to four."""
    values, diagonal = pad_rank(first_input(node)), node.value("k")
    k = 0 if diagonal is None else int(diagonal.reshape(())[()])
    upper = node.integer("upper", 1)
    if values.ndim > 4 or k == 2**31 - 1:
        return None
    desc = DiagonalMatrix1(
        TensorDesc.of(values),
        TensorDesc.of(pad_rank(outputs[0])),
        DataType.of(values.dtype),
        "0",
        -(2**31) if upper else k + 1,
        k if upper else 2**31 - 1,
    )
    return Lowering(desc, (values,))


_DATA_ONLY: frozenset[str] = frozenset()

INTERACTIONS: Mapping[str, tuple[Interaction, ...]] = {
    "Trilu": (
        Interaction("tall_lower_above_the_diagonal", (Arange((5, 3), 1), Literal(1, "int64")), {"upper": 0}),
    ),
    "EyeLike": (
        Interaction("tall_below_the_diagonal", (Arange((5, 3)),), {"k": -1}),
        Interaction("tall_far_below_the_diagonal", (Arange((5, 3)),), {"k": -3}),
    ),
}  # fmt: skip

RANGE = Operator("Range", range_samples, range_bindings, range_node, range_truth, lower_range)
TRILU = movement.movement("Trilu", trilu_samples, trilu, lower_trilu)

OPERATORS = declare(
    (
        *(
            replace(
                movement.movement(name, own_samples, result, ON_CPU),
                without_rank_9=NO_ELEMENTS,
                without_rank_dtypes=NO_ELEMENTS,
            )
            for name, own_samples, result in (("Shape", shape_samples, shape_of), ("Size", size_samples, size_of))
        ),
        replace(
            movement.movement(
                "ConstantOfShape",
                constant_samples,
                constant_of_shape,
                lower_constant,
                varied=("T2",),
                parameters=CONSTANT_PARAMETERS,
            ),
            without_rank_9=OTHER_RANK,
        ),
        (movement.movement("EyeLike", eye_samples, eye_like, lower_eye, varied=("T1",))),
        RANGE,
        movement.movement("OneHot", one_hot_samples, one_hot, lower_one_hot, varied=("T3",)),
        movement.movement("NonZero", non_zero_samples, non_zero, lower_non_zero, parameters=_DATA_ONLY),
        TRILU,
        make_twin(RANGE, 11),
        make_twin(TRILU, 14),
    ),
    interactions=INTERACTIONS,
)
